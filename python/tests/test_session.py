"""Session lineages in cookies (spec SESS)."""

from __future__ import annotations

import time
from typing import Any

import antipode
import antipode.asgi
import antipode.session
import antipode.wsgi
import pytest
from antipode import Lineage, WriteId
from antipode._model.errors import ConfigurationError
from antipode._trust.seal import open_seal, seal
from antipode.session import Arrival, Cookie, Entry, Visit, join_from, keep_in
from hypothesis import given
from hypothesis import strategies as st
from scopes import Counts
from session_browser import EPOCH, KEYS, Browser, block
from starlette.testclient import TestClient
from werkzeug.test import Client

pytestmark = pytest.mark.usefixtures("own_propagators")

NAME = "antipode"


@pytest.fixture(autouse=True)
def _keys() -> None:
    antipode.configure(keys=KEYS, trust="private")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


@pytest.fixture(params=["asgi", "wsgi"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return Browser(request.param, Cookie(secure=False))


def cookie_of(response: Any) -> str | None:
    """The value of the cookie that a response sets, with its attributes."""
    found = [each for each in cookies_of(response) if "; Max-Age=0;" not in each]
    assert len(found) <= 1
    return found[0].partition("=")[2] if found else None


def cookies_of(response: Any) -> list[str]:
    """All that a response sets."""
    headers = response.headers
    lines: list[str] = headers.get_list("set-cookie") if hasattr(headers, "get_list") else headers.getlist("set-cookie")
    assert all(line.startswith(f"{NAME}.") for line in lines)
    return lines


def test_the_next_request_depends_on_what_the_last_one_wrote(browser: Browser) -> None:
    """SESS-2, SESS-3: also at an edge, where nothing of the caller's is taken (TRUST-4)."""
    browser.get("/7")
    browser.get("/0")
    browser.get("/9")
    browser.get("/0")
    assert browser.seen == [Lineage(), Lineage([block(7)]), Lineage([block(7)]), Lineage([block(9)])]


OTHER = WriteId.position("orders", EPOCH, 3)


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_what_the_caller_knows_too_is_kept(kind: str) -> None:
    """SESS-3: a service between that hands on the user's cookie, and has the session's writes in its own lineage."""
    browser = Browser(kind, Cookie(secure=False), edge=False)
    first = cookies_of(browser.get("/7"))[0].split(";")[0]
    environment = {"environ_overrides": {"REMOTE_ADDR": "127.0.0.1"}} if kind == "wsgi" else {}
    client = browser._new_client() if kind == "asgi" else Client(browser.app, use_cookies=False)
    if kind == "asgi":
        client = TestClient(browser.app, client=("127.0.0.1", 5000))
    browser.write = lambda number: antipode.append(OTHER)  # type: ignore[method-assign]
    known = Lineage([block(7)]).serialize()
    response = client.get("/1", headers={"cookie": first, "baggage": f"antipode={known}"}, **environment)
    del browser.write
    assert response.headers["antipode-lineage"] == Lineage([OTHER]).serialize()
    browser.get("/0", cookies_of(response)[0].split(";")[0])
    assert browser.seen[-1] == Lineage([block(7), OTHER])


def test_what_was_removed_is_not_kept(browser: Browser) -> None:
    """SESS-3."""

    def write(number: int) -> None:
        antipode.remove(block(7))
        antipode.append(OTHER)

    browser.get("/7")
    browser.write = write  # type: ignore[method-assign]
    browser.get("/1")
    del browser.write
    browser.get("/0")
    assert browser.seen[-1] == Lineage([OTHER])


def test_requests_side_by_side_keep_what_each_wrote(browser: Browser) -> None:
    """SESS-14: and the next answer makes one cookie of theirs."""
    start = cookies_of(browser.get("/7"))[0].split(";")[0]
    one = cookies_of(browser.get("/8", start))
    browser.write = lambda number: antipode.append(OTHER)  # type: ignore[method-assign]
    two = cookies_of(browser.get("/1", start))
    del browser.write
    for answer in (one, two):
        assert [line.split("=")[0] for line in answer[1:]] == [start.split("=")[0]]
        assert all(line.partition("=")[2].startswith("; Max-Age=0; Path=/") for line in answer[1:])
    both = [answer[0].split(";")[0] for answer in (one, two)]
    tidied = cookies_of(browser.get("/0", "; ".join(both)))
    assert browser.seen[-1] == Lineage([block(8), OTHER])
    assert {line.split("=")[0] for line in tidied[1:]} == {name.split("=")[0] for name in both}
    browser.get("/0", tidied[0].split(";")[0])
    assert browser.seen[-1] == Lineage([block(8), OTHER])
    assert cookies_of(browser.get("/0", tidied[0].split(";")[0])) == []


def test_entries_side_by_side_keep_what_each_wrote() -> None:
    """SESS-14: of a session at the server."""
    kept: dict[str, Any] = {}
    entry = Entry(lambda _: kept)
    with antipode.scope() as one:
        first = Visit(entry, {}, [], one)
        with antipode.scope() as two:
            second = Visit(entry, {}, [], two)
            antipode.append(OTHER)
            second.set_cookies()
        antipode.append(block(7))
        first.set_cookies()
    with antipode.scope() as scope:
        join_from(kept)
        assert scope.lineage == Lineage([block(7), OTHER])


def test_hooks_side_by_side_keep_what_each_wrote() -> None:
    """SESS-14: of a session at the server, by the application's own hooks; what joined nothing removes nothing."""
    kept: dict[str, Any] = {}
    with antipode.scope():
        join_from(kept)
        with antipode.scope():
            join_from(kept)
            antipode.append(OTHER)
            keep_in(kept)
        keep_in(kept)  # it has nothing to add
    with antipode.scope():
        antipode.append(block(7))
        keep_in(kept)
    with antipode.scope() as scope:
        join_from(kept)
        assert scope.lineage == Lineage([block(7), OTHER])
        antipode.remove(OTHER)
        keep_in(kept)
    with antipode.scope() as scope:
        join_from(kept)
        assert scope.lineage == Lineage([block(7)])


def test_without_a_session_nothing_is_kept(browser: Browser) -> None:
    """SESS-1, and a request that adds nothing sets nothing (SESS-3)."""
    assert cookie_of(browser.get("/0")) is None
    assert cookie_of(browser.get("/7")) is not None
    assert cookie_of(browser.get("/0")) is None
    for kind in ("asgi", "wsgi"):
        other = Browser(kind, Entry(lambda _: None))
        assert cookie_of(other.get("/7")) is None
        other.get("/0")
        assert other.seen[-1] == Lineage()


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_a_failed_request_keeps_what_it_wrote(kind: str) -> None:
    """SESS-6: at an edge, too, where nothing goes back to the caller itself."""
    if kind == "wsgi":
        pytest.importorskip("werkzeug")
    browser = Browser(kind, Cookie(secure=False))
    failed = browser.get("/fail/7")
    if failed is None:  # werkzeug's client has no response then; the header was sent, as the next test's server shows
        return
    assert failed.status_code == 500
    assert cookie_of(failed) is not None
    browser.get("/0")
    assert browser.seen[-1] == Lineage([block(7)])


def test_a_failed_wsgi_request_sets_the_cookie() -> None:
    """SESS-6."""
    sent: list[tuple[str, list[tuple[str, str]]]] = []

    def fails(environ: Any, start_response: Any) -> Any:
        antipode.append(block(7))
        raise ValueError("broken")

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        sent.append((status, headers))
        return lambda data: None

    with pytest.raises(ValueError, match="broken"):
        list(antipode.wsgi.Middleware(fails, edge=True, session=Cookie())({"REQUEST_METHOD": "GET"}, start_response))
    [(status, headers)] = sent
    assert status == "500 Internal Server Error"
    assert [name for name, _ in headers] == ["Content-Type", "Content-Length", "Set-Cookie"]


def test_the_cookie(browser: Browser) -> None:
    """SESS-8, SESS-9: no lineage's seal opens it, and none is one."""
    value, *attributes = (cookie_of(browser.get("/7")) or "").split("; ")
    assert attributes == ["Max-Age=300", "Path=/", "HttpOnly", "SameSite=Lax"]
    assert open_seal(value, KEYS, time.time()).state == "bad"
    assert open_seal(value, KEYS, time.time()).text == Lineage([block(7)]).serialize()
    other = cookie_of(Browser("asgi", Cookie(path="/a", domain="example.org", same_site="Strict")).get("/7")) or ""
    assert other.split("; ")[1:] == [
        "Max-Age=300",
        "Path=/a",
        "Domain=example.org",
        "HttpOnly",
        "SameSite=Strict",
        "Secure",
    ]


def test_what_is_made_up_is_dropped_and_counted(browser: Browser, counts: Counts) -> None:
    """SESS-10: a lineage that is sealed as such is no cookie, either; and no strict barrier fails for it."""
    text = Lineage([block(7)]).serialize()
    for value in (text, seal(text, KEYS, time.time(), 300), f"{text}~_.h.one.9999999999.{'0' * 32}", "", "x" * 5000):
        browser.get("/0", f"{NAME}={value}")
        assert browser.seen[-1] == Lineage()
        assert browser.seen[-1].is_complete()
    assert counts.of("antipode.lineage.dropped", direction="session_in") == 5


def test_an_old_one_is_as_none(browser: Browser, counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    """SESS-4."""
    value = (cookie_of(browser.get("/7")) or "").split(";")[0]
    later = time.time() + 301
    monkeypatch.setattr("antipode.session.time.time", lambda: later)
    browser.get("/0", f"{NAME}={value}")
    assert browser.seen[-1] == Lineage()
    assert counts.of("antipode.lineage.dropped", direction="session_in") == 0


def test_several_cookies_are_joined(browser: Browser) -> None:
    """SESS-11: of two paths or domains, one of them no more than a try."""
    first = (cookie_of(browser.get("/7")) or "").split(";")[0]
    other = Browser("asgi", Cookie(secure=False))
    second = (cookie_of(other.get("/9")) or "").split(";")[0]
    browser.get("/0", f'a=b; {NAME}={first};{NAME}="{second}"; {NAME}=nonsense; {NAME}')
    assert browser.seen[-1] == Lineage([block(9)])


@pytest.mark.parametrize(
    "header", ["cache-control=public", "cache-control=s-maxage=60", "cdn-cache-control=max-age=60"]
)
def test_a_response_that_a_shared_cache_may_keep_sets_none(
    browser: Browser, caplog: pytest.LogCaptureFixture, header: str
) -> None:
    """SESS-12, PROP-34."""
    assert cookie_of(browser.get(f"/7?{header}")) is None
    assert "shared caches may keep the response" in caplog.text


def test_mode_off_leaves_sessions_alone(browser: Browser) -> None:
    """SESS-7."""
    value = (cookie_of(browser.get("/7")) or "").split(";")[0]
    antipode.configure(mode="off")
    assert cookie_of(browser.get("/9", f"{NAME}={value}")) is None
    assert browser.seen[-1] == Lineage()


def test_what_does_not_fit_is_marked(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """SESS-5: whatever the budget."""
    antipode.configure(budget_bytes=4087)
    many = [WriteId(f"store-{n}", f"key-{n}", antipode.Opaque("v" * 60)) for n in range(100)]
    monkeypatch.setattr(browser, "write", lambda number: antipode.append(*many))
    response = browser.get("/7")
    value = (cookie_of(response) or "").split(";")[0]
    assert 900 < len(value) <= len(NAME) + 18 + 1024
    monkeypatch.undo()
    browser.get("/0", f"{NAME}={value}")
    assert not browser.seen[-1].is_complete()


def test_without_a_key_no_cookie_is_made() -> None:
    """SESS-8."""
    antipode.configure(keys=None)
    with pytest.raises(ConfigurationError, match="ANTIPODE_KEYS_FILE"):
        Cookie()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"name": ""},
        {"path": "/;x"},
        {"domain": "a\r\nb"},
        {"same_site": "Any"},
        {"same_site": "None", "secure": False},
        {"name": "__Host-mine", "path": "/a"},
        {"name": "__host-mine", "secure": False},
    ],
)
def test_no_such_cookie(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        Cookie(**wrong)


@given(st.lists(st.text(st.characters(max_codepoint=255, exclude_characters="\r\n")), max_size=4))
def test_no_cookie_breaks_a_request(lines: list[str]) -> None:
    antipode.configure(keys=KEYS, trust="private")
    arrival = Arrival({}, (*lines, *(f"{NAME}={line}" for line in lines), *(f"{NAME}.{line}" for line in lines)))
    assert Cookie(secure=False).load(arrival) == Lineage()


def test_no_sibling_host_can_plant_the_default_one() -> None:
    """SESS-9."""
    made = {
        line.partition(".")[0]: line.split("; ")[2:]
        for cookie in (Cookie(), Cookie(secure=False), Cookie(path="/a"))
        for line in cookie.keep(Arrival({}, ()), Lineage(), Lineage([block(7)]))
    }
    assert made == {
        "__Host-antipode": ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"],
        "antipode": ["Path=/a", "HttpOnly", "SameSite=Lax", "Secure"],
    }


def test_a_cookie_of_another_subject_is_dropped(counts: Counts) -> None:
    """SESS-15: over log-out and log-in, and from somebody who has no subject."""
    users: list[str | None] = ["alice"]
    cookie = Cookie(secure=False, bind=lambda request: users[0])
    [line] = cookie.keep(Arrival({}, ()), Lineage(), Lineage([block(7)]))
    arrival = Arrival({}, (line.split(";")[0],))
    assert cookie.load(arrival) == Lineage([block(7)])
    for other in ("bob", None, "alice "):
        users[0] = other
        assert cookie.load(arrival) == Lineage()
        assert not cookie.load(arrival).incomplete
    assert Cookie(secure=False).load(arrival) == Lineage()
    assert counts.of("antipode.lineage.dropped", direction="session_in") == 7


def test_log_out_forgets(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """SESS-15: its cookies end with the response, also one that is no good, and what was written is not kept."""
    value = (cookie_of(browser.get("/7")) or "").split(";")[0]

    def log_out(number: int) -> None:
        antipode.append(block(number))
        antipode.session.forget()

    monkeypatch.setattr(browser, "write", log_out)
    answer = browser.get("/9", f"{NAME}={value}; {NAME}.x=nonsense")
    ended = [line for name, line in answer.headers.items() if name.lower() == "set-cookie"]
    assert sum(line.count("Max-Age=0") for line in ended) == 2
    kept: dict[str, Any] = {}
    with antipode.scope():
        antipode.append(block(7))
        antipode.session.keep_in(kept)
        antipode.session.forget()
        antipode.session.keep_in(kept)
    assert kept == {}
    with pytest.raises(ConfigurationError):
        antipode.session.forget()


def test_the_response_to_a_caller_inside_has_the_sessions_lineage_too() -> None:
    """SESS-2: the caller has not seen it."""
    browser = Browser("asgi", Cookie(secure=False), edge=False)
    browser.get("/7")
    assert browser.get("/0").headers["antipode-lineage"] == Lineage([block(7)]).serialize()
