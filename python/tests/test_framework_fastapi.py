"""The page of FastAPI, run by uvicorn: python/docs/frameworks/fastapi.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import antipode
import antipode.httpx
import httpx
import pytest
from antipode import Lineage
from pages import imported
from web import asgi_server, wait_until
from websockets.sync.client import connect

pytestmark = pytest.mark.usefixtures("own_propagators")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ModuleType]:
    with imported("fastapi.md", tmp_path) as get:
        yield get("app")


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with antipode.httpx.wrap(httpx.Client(trust_env=False, timeout=10)) as client:
        yield client


def test_a_write_is_there_when_a_later_request_reads(page: ModuleType, http: httpx.Client) -> None:
    with asgi_server(page.app) as port, antipode.scope() as scope:
        url = f"http://127.0.0.1:{port}/posts/1"
        assert http.get(url).status_code == 404
        assert http.post(url, params={"body": "hello"}).json() == {"id": 1}
        assert list(scope.lineage.stores) == ["blog-posts"]
        assert http.get(url).json() == "hello"  # region B is behind: the barrier has waited
        with antipode.scope():
            assert http.post(f"{url}?wrong=1").status_code == 422


def test_work_that_outlives_the_request(page: ModuleType, http: httpx.Client) -> None:
    with asgi_server(page.app) as port, antipode.scope() as scope:
        http.post(f"http://127.0.0.1:{port}/posts/1/index")
        wait_until(lambda: page.posts.get("index:1") == b"done", "it has run")
        assert scope.lineage == Lineage()


def test_a_websocket(page: ModuleType) -> None:
    with antipode.scope():
        page.posts.set("post:1", "first")
        text = antipode.serialize()
    with asgi_server(page.app) as port, connect(f"ws://127.0.0.1:{port}/talk", proxy=None) as client:
        client.send(text)
        assert client.recv(10) == "first"


def test_a_stream_of_events(page: ModuleType, http: httpx.Client) -> None:
    with asgi_server(page.app) as port, antipode.scope() as scope:
        with http.stream("GET", f"http://127.0.0.1:{port}/events") as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert lines[1::2] == ["data: 0", "data: 1", "data: 2"]
        assert scope.lineage == Lineage()
        for number, line in enumerate(lines[::2]):
            with antipode.message_scope(line.removeprefix("id: ")):
                assert antipode.barrier(timeout=5).complete
            assert page.posts_b.get(f"event:{number}") == b"told"
