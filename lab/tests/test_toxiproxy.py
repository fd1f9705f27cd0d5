"""Toxiproxy: a link whose receiver goes away while its lag is changed."""

from __future__ import annotations

import http.client
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from antipode_lab.toxiproxy import Toxiproxy, install

_RESET = struct.pack("ii", 1, 0)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


@pytest.fixture
def toxiproxy() -> Iterator[Toxiproxy]:
    port = free_port()
    process = subprocess.Popen(
        [str(install()), "-host", "127.0.0.1", "-port", str(port)], env={**os.environ, "LOG_LEVEL": "error"}
    )
    try:
        found = Toxiproxy(port)
        until(found.answers)
        yield found
    finally:
        process.kill()
        process.wait()


def is_busy(toxiproxy: Toxiproxy) -> bool:
    """Whether somebody has the lock of a proxy's toxics."""
    connection = http.client.HTTPConnection("127.0.0.1", toxiproxy.port, timeout=0.5)
    try:
        connection.request("GET", "/proxies")
        connection.getresponse().read()
    except TimeoutError:
        return True
    finally:
        connection.close()
    return False


def test_a_link_whose_receiver_goes_away_while_its_lag_is_changed(toxiproxy: Toxiproxy) -> None:
    """It hung for good, and with it every request about its proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = free_port()
        words = {"listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{server.getsockname()[1]}", "enabled": True}
        toxiproxy._call("POST", "/proxies", {"name": "link", **words})
        toxiproxy.add_lags("link")
        client = socket.create_connection(("127.0.0.1", port))
        sender, _ = server.accept()
        sender.settimeout(1)
        with sender, pytest.raises(TimeoutError):
            sender.sendall(bytes(1 << 28))  # until everything between is full
        changing = threading.Thread(target=toxiproxy.set_lag, args=("link", 5), daemon=True)
        changing.start()
        until(lambda: is_busy(toxiproxy))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        client.close()
        changing.join(20)
        assert not changing.is_alive()
        assert not is_busy(toxiproxy)
