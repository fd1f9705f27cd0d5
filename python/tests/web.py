"""Real HTTP servers on loopback for tests, and the services that run in them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from werkzeug.serving import make_server

DEADLINE_S = 10.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition with a deadline; never longer, and never by a fixed sleep."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {DEADLINE_S} s: {what}"
        time.sleep(0.005)


def wait_until_logged(words: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Waits until a server has said so, by logging or on standard error."""
    errors = ""

    def logged() -> bool:
        nonlocal errors
        errors += capfd.readouterr().err
        return words in errors + caplog.text

    wait_until(logged, f"the server has logged {words!r}")


@contextmanager
def asgi_server(app: Any, host: str = "127.0.0.1", **options: Any) -> Iterator[int]:
    """Serves an ASGI application with uvicorn in a thread; gives the port."""
    listener = socket.create_server((host, 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off", **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "uvicorn is up")
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        listener.close()
        assert not thread.is_alive()


@contextmanager
def wsgi_server(app: Any, host: str = "127.0.0.1") -> Iterator[int]:
    """Serves a WSGI application with werkzeug in threads; gives the port."""
    server = make_server(host, 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(DEADLINE_S)
        server.server_close()
        assert not thread.is_alive()
