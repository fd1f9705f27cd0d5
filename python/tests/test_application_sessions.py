"""Session lineages in sessions of the application (spec SESS-13, SESS-14)."""

from __future__ import annotations

import time
from typing import Any

import antipode
import antipode.asgi
import antipode.session
import antipode.wsgi
import pytest
from antipode import Lineage
from antipode._model.errors import ConfigurationError
from antipode.session import Entry, join_from, keep_in
from flask import Flask, session
from scopes import Counts
from session_browser import KEYS, Browser, block
from starlette.middleware.sessions import SessionMiddleware
from starlette.testclient import TestClient
from werkzeug.test import Client

pytestmark = pytest.mark.usefixtures("own_propagators")


@pytest.fixture(autouse=True)
def _keys() -> None:
    antipode.configure(keys=KEYS, trust="private")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


def test_starlettes_session() -> None:
    """SESS-13: its middleware stands outside of ours."""
    browser = Browser("asgi", Entry(lambda scope: scope["session"]))
    browser._client = TestClient(SessionMiddleware(browser.app, secret_key="secret", https_only=False))
    browser.get("/7")
    browser.get("/0")
    assert browser.seen == [Lineage(), Lineage([block(7)])]


def test_a_session_that_is_made_too_late_is_an_error() -> None:
    browser = Browser("asgi", Entry(lambda scope: scope["session"]))
    with pytest.raises(ConfigurationError, match="outside of antipode's"):
        TestClient(browser.app).get("/7")


@pytest.fixture
def flask_user() -> tuple[Client, list[Lineage]]:
    """A Flask application with its own hooks and signed sessions, and one user of it."""
    app = Flask(__name__)
    app.secret_key = "secret"
    seen: list[Lineage] = []
    app.before_request(lambda: join_from(session))

    @app.after_request
    def keep(response: Any) -> Any:
        keep_in(session)
        return response

    @app.route("/<int:number>")
    def write(number: int) -> str:
        scope = antipode.current_scope()
        assert scope is not None
        seen.append(scope.lineage)
        if number:
            antipode.append(block(number))
        return "done"

    app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app)  # type: ignore[method-assign]
    return Client(app), seen


def test_flasks_session(flask_user: tuple[Client, list[Lineage]]) -> None:
    client, seen = flask_user
    client.get("/7")
    first = client.get("/0")
    assert seen == [Lineage(), Lineage([block(7)])]
    assert "set-cookie" not in first.headers, "what is only read lives no longer (SESS-3)"


def test_an_entry_that_is_old_or_no_entry(counts: Counts) -> None:
    """SESS-4, SESS-13."""
    text = Lineage([block(7)]).serialize()
    with antipode.scope() as scope:
        join_from({})
        join_from({"antipode": {"lineage": text, "until": time.time() - 1}})
        assert scope.lineage == Lineage()
        join_from({"antipode": {"lineage": text, "until": time.time() + 1}})
        assert scope.lineage == Lineage([block(7)])
    for entry in (
        "text",
        7,
        {"lineage": text},
        {"lineage": 7, "until": time.time() + 1},
        {"lineage": "~", "until": 1e18},
    ):
        with antipode.scope() as scope:
            join_from({"antipode": entry})
            assert not scope.lineage.is_complete()
    assert counts.of("antipode.lineage.dropped", direction="session_in") == 5


def test_outside_any_scope_there_is_nothing_to_keep() -> None:
    with pytest.raises(ConfigurationError, match="no scope"):
        join_from({})
    with pytest.raises(ConfigurationError, match="no scope"):
        keep_in({})
