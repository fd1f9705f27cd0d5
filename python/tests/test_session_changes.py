"""Sessions that change under a request: cleared, kept by another request meanwhile, the mode switched (spec SESS)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import antipode
import antipode.asgi
import antipode.session
import antipode.wsgi
import httpx
import pytest
from antipode import Lineage, WriteId
from antipode.session import Arrival, Cookie, Entry, Visit, join_from, keep_in
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

pytestmark = pytest.mark.usefixtures("own_propagators")

ONE = WriteId.position("user-acl", "8371ab90c2d4e6f1", 1)
OTHER = WriteId.position("orders", "8371ab90c2d4e6f1", 3)


@pytest.fixture(autouse=True)
def _keys() -> None:
    antipode.configure(keys={"one": b"k" * 32}, trust="private")


def held(kept: dict[str, Any]) -> Lineage:
    with antipode.scope() as scope:
        join_from(kept)
        return scope.lineage


async def test_clearing_the_session_keeps_its_lineage() -> None:
    """SESS-16: a log-in clears the session and adds nothing; a log-out says so."""

    async def register(_: Request) -> Response:
        antipode.append(ONE)
        return PlainTextResponse("")

    async def log_in(request: Request) -> Response:
        request.session.clear()
        request.session["user"] = 7
        return PlainTextResponse("")

    async def log_out(request: Request) -> Response:
        request.session.clear()
        antipode.session.forget()
        return PlainTextResponse("")

    async def page(_: Request) -> Response:
        return PlainTextResponse(antipode.serialize())

    handlers = (register, log_in, log_out, page)
    app: Any = Starlette(routes=[Route(f"/{handler.__name__}", handler) for handler in handlers])
    app = antipode.asgi.Middleware(app, session=Entry(lambda scope: scope["session"]))
    app = SessionMiddleware(app, secret_key="x" * 32)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x.test") as client:
        seen = [(await client.get(path)).text for path in ("/register", "/log_in", "/page", "/log_out", "/page")]
    assert (seen[2], seen[4]) == (Lineage([ONE]).serialize(), "1")


class Rows(dict[str, Any]):
    """A session at a server, with another request that keeps between this one's look and its own write."""

    between: Callable[[], None] | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        between, self.between = self.between, None
        if between is not None:
            between()
        super().__setitem__(name, value)


def keep_side_by_side(keep: Callable[[Rows, WriteId], None]) -> Rows:
    kept = Rows()
    with antipode.scope():
        antipode.append(WriteId.position("before", "e", 1))
        keep_in(kept, has_rows=True)
    kept.between = lambda: keep(kept, OTHER)
    keep(kept, ONE)
    return kept


def by_hooks(kept: Rows, write: WriteId) -> None:
    with antipode.scope():
        join_from(kept)
        antipode.append(write)
        keep_in(kept, has_rows=True)


def by_a_middleware(kept: Rows, write: WriteId) -> None:
    with antipode.scope() as scope:
        visit = Visit(Entry(lambda _: kept, has_rows=True), {}, [], scope)
        antipode.append(write)
        visit.set_cookies()


@pytest.mark.parametrize("keep", [by_hooks, by_a_middleware])
def test_each_row_is_stored_by_itself(keep: Callable[[Rows, WriteId], None]) -> None:
    """SESS-17: what another request keeps meanwhile is not undone; the next one makes them one."""
    kept = keep_side_by_side(keep)
    assert sorted(held(kept).stores) == ["before", "orders", "user-acl"]
    assert len(kept) == 2
    with antipode.scope() as scope:
        if keep is by_hooks:
            join_from(kept)
            keep_in(kept, has_rows=True)
            keep_in(kept, has_rows=True)
        else:
            Visit(Entry(lambda _: kept, has_rows=True), {}, [], scope).set_cookies()
    assert sorted(held(kept).stores) == ["before", "orders", "user-acl"]
    assert len(kept) == 1


def test_rows_end_with_the_session() -> None:
    """SESS-15."""
    kept = keep_side_by_side(by_hooks)
    with antipode.scope():
        antipode.session.forget()
        keep_in(kept, has_rows=True)
    assert kept == {}


def test_an_entry_of_a_session_that_is_saved_as_a_whole_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """SESS-17."""

    class Saved(dict[str, Any]):
        session_key = "abc"

    with antipode.scope():
        antipode.append(ONE)
        keep_in(Saved())
    assert "keep_in(rows, has_rows=True)" in caplog.text


@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_a_cookie_that_was_not_loaded_is_not_ended(mode: str) -> None:
    """SESS-18: the request comes under `off`, and leaves under `enforce`."""

    def app(environ: Any, start_response: Any) -> Any:
        antipode.configure(mode="enforce")
        if environ["PATH_INFO"] in {"/1", "/2"}:
            antipode.append(ONE if environ["PATH_INFO"] == "/1" else OTHER)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [antipode.serialize().encode()]

    middleware = antipode.wsgi.Middleware(app, session=Cookie(secure=False))
    transport = httpx.WSGITransport(middleware, remote_addr="127.0.0.1")
    with httpx.Client(transport=transport, base_url="http://x.test") as client:
        client.get("/1")
        antipode.configure(mode=mode)
        client.get("/2")
        left = Lineage.deserialize(client.get("/").text)
    assert sorted(left.stores) == ["orders", "user-acl"]
    assert left.is_complete() is (mode == "enforce")


def test_a_mode_that_leaves_off_in_mid_request_leaves_a_gap() -> None:
    """SCOPE-26: also where the mode was another when the scope began; one that has ended stays as it was."""
    with antipode.scope() as ended:
        pass
    with antipode.scope() as scope:
        antipode.configure(mode="off")
        with antipode.detached_scope() as detached:
            antipode.configure(mode="dry-run")
            antipode.configure(mode="enforce")
        assert not scope.lineage.is_complete()
        assert not detached.lineage.is_complete()
        assert [gap.reason for gap in scope.gaps] == ["mode"]
        antipode.configure(mode="enforce")
    assert ended.lineage.is_complete()
    with antipode.scope() as scope:
        antipode.configure(mode="dry-run")
        antipode.configure(mode="enforce")
        assert scope.lineage.is_complete()


def test_no_scope_is_whole_where_the_mode_has_left_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCOPE-26: marked before, for a barrier of another thread; and after, for what was opened in between."""
    antipode.configure(mode="off")
    module = sys.modules["antipode._base.settings"]
    install, opened = module._install, list[antipode.Scope]()

    def install_now(resolved: Any) -> Any:
        assert not scope.lineage.is_complete()
        opened.append(antipode.Scope())
        return install(resolved)

    with antipode.scope() as scope:
        monkeypatch.setattr(module, "_install", install_now)
        antipode.configure(mode="enforce")
        assert [[gap.reason for gap in each.gaps] for each in (scope, *opened)] == [["mode"], ["mode"]]


def test_a_scope_that_is_being_made_is_none_yet() -> None:
    """SCOPE-26: another thread is in the middle of it; the scopes behind it are marked all the same."""
    antipode.configure(mode="off")
    half = antipode.Scope.__new__(antipode.Scope)
    with antipode.scope() as scope:
        antipode.configure(mode="enforce")
        assert not scope.lineage.is_complete()
    assert not vars(half)


@pytest.mark.parametrize("line", ["{0}", "a=1, {0}", "{0},b=2", "{0}, {0}"])
def test_lines_that_a_server_joined_by_a_comma(line: str) -> None:
    """SESS-11."""
    cookie = Cookie(secure=False)
    arrival = Arrival({}, ())
    set_cookie = cookie.keep(arrival, Lineage(), Lineage([ONE]))[0].split(";")[0]
    assert cookie.load(Arrival({}, (line.format(set_cookie),))) == Lineage([ONE])
