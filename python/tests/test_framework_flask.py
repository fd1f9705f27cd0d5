"""The page of Flask, run by werkzeug's server: python/docs/frameworks/flask.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import antipode
import antipode.requests
import pytest
import requests
from antipode import Lineage
from pages import imported
from streamed import until
from web import wsgi_server

pytestmark = pytest.mark.usefixtures("own_propagators")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ModuleType]:
    with imported("flask.md", tmp_path) as get:
        yield get("app")


def test_a_write_is_there_when_a_later_request_reads(page: ModuleType) -> None:
    session = antipode.requests.wrap(requests.Session())
    with wsgi_server(page.app) as port, antipode.scope() as scope:
        url = f"http://127.0.0.1:{port}/posts/1"
        assert session.get(url, timeout=10).status_code == 404
        assert session.post(f"{url}/hello", timeout=10).json() == {"id": 1}
        assert list(scope.lineage.stores) == ["blog-posts"]
        assert session.get(url, timeout=10).text == "hello"


def test_what_is_not_there_in_time_is_the_applications_answer(page: ModuleType) -> None:
    session = antipode.requests.wrap(requests.Session())
    with wsgi_server(page.app) as port, antipode.scope() as scope:
        url = f"http://127.0.0.1:{port}/posts/2"
        import stores  # type: ignore[import-not-found]

        stores.store.freeze("b")
        session.post(f"{url}/hello", timeout=10)
        before = scope.lineage
        answer = session.get(url, timeout=10)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert scope.lineage == before
        stores.store.heal("b")
        until(lambda: session.get(url, timeout=10).text == "hello", "it is there")


def test_a_stream_of_events(page: ModuleType) -> None:
    with wsgi_server(page.app) as port, antipode.scope() as scope:
        session = antipode.requests.wrap(requests.Session())
        lines = [line for line in session.get(f"http://127.0.0.1:{port}/events", timeout=10).text.split("\n") if line]
        assert lines[1::2] == ["data: 0", "data: 1", "data: 2"]
        assert scope.lineage == Lineage()
        with antipode.message_scope(lines[4].removeprefix("id: ")):
            assert antipode.barrier(timeout=5).complete
        assert page.posts_b.get("event:2") == b"told"


def test_the_test_client(page: ModuleType) -> None:
    answer = page.app.test_client().post("/posts/3/hello")
    assert Lineage.deserialize(answer.headers["antipode-lineage"]).stores == ["blog-posts"]
