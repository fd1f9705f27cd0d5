"""A call that brought no answer leaves the caller incomplete: what the callee wrote is missing (spec PROP-27)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import antipode
import antipode.httpx
import antipode.requests
import httpx
import pytest
import requests


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes requests and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            taken.append(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)
    for connection in taken:
        connection.close()


def by_requests(url: str) -> None:
    with pytest.raises(requests.RequestException):
        antipode.requests.wrap(requests.Session()).get(url, timeout=0.2)


def by_httpx(url: str) -> None:
    with antipode.httpx.wrap(httpx.Client(timeout=0.2)) as client, pytest.raises(httpx.TransportError):
        client.get(url)


def by_async_httpx(url: str) -> None:
    async def call() -> None:
        async with antipode.httpx.wrap(httpx.AsyncClient(timeout=0.2)) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(url)

    asyncio.run(call())


CALLS = pytest.mark.parametrize("call", [by_requests, by_httpx, by_async_httpx])


@CALLS
def test_a_call_without_an_answer_is_a_loss(call: Callable[[str], None], silent: str) -> None:
    with antipode.scope() as scope:
        call(silent)
        assert scope.lineage.incomplete == {""}
        [gap] = scope.gaps
        assert gap.reason == "unanswered"
        assert "127.0.0.1" in gap.detail


@CALLS
def test_a_call_that_never_left_is_none(call: Callable[[str], None]) -> None:
    with antipode.scope() as scope:
        call("http://127.0.0.1:1/")  # nobody listens there
        assert scope.lineage.is_complete()


def test_a_call_to_a_host_that_gets_no_lineage_is_none(silent: str) -> None:
    antipode.configure(trust="none")
    with antipode.scope() as scope:
        by_requests(silent)
        assert scope.lineage.is_complete()


def test_submodules_are_there_without_an_import_of_their_own() -> None:
    code = (
        "import antipode; antipode.asgi.Middleware, antipode.memory.Store, antipode.requests.wrap, antipode.shim.Shim"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        antipode.nothing_of_the_kind  # noqa: B018
