"""WSGI middleware: a scope for every request, filled from its headers; its additions go back (spec PROP).

flask_app.wsgi_app = antipode.wsgi.Middleware(flask_app.wsgi_app)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from antipode._base.call_site import skip_packages
from antipode._facade.answering import MOST_OCTETS, PATH, Answer, Question, refusal
from antipode._propagation.carriers import CARRIERS, FORWARDING, LINEAGE_HEADER, InboundHeaders, read, without_member
from antipode._propagation.shared_caches import is_shared
from antipode._trust.trust import Caller, is_hop, peer_of, trust_settings
from antipode.propagation import Inbound, JoinedRequest, instrument, joined
from antipode.session import Session, Visit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_MARK: Final = "antipode.inbound"
_READ: Final = {f"HTTP_{name.upper().replace('-', '_')}": name for name in (*CARRIERS, *sorted(FORWARDING))}
_BAGGAGE: Final = "HTTP_BAGGAGE"
_OURS: Final = ("HTTP_ANTIPODE_LINEAGE", "HTTP_UBERCTX_ANTIPODE")

skip_packages("flask", "werkzeug", "django", "gunicorn", "wsgiref")


class Middleware:
    """Opens a scope for each request; of several in one another, ASGI's too, the outermost does.

    `edge=True` says that callers of this application are outside: nothing of theirs is taken and nothing goes
    back to them. `session` says where a user's lineage is kept for the next request (`antipode.session`); nowhere
    without it. `answers_waits=True`: services that have no access to our stores may ask whether writes are visible here
    (`antipode.delegated`). The scope ends with the response's iterable. Raises ConfigurationError where the settings
    of trust are wrong.
    """

    def __init__(
        self,
        app: WSGIApplication,
        *,
        edge: bool | None = None,
        session: Session | None = None,
        answers_waits: bool = False,
    ) -> None:
        self._app = app
        self._edge = edge
        self._session = session
        self._answers_waits = answers_waits
        trust_settings()
        instrument()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Runs the application in the request's scope."""
        mark = environ.get(_MARK)
        if mark is not None and self._session is None:
            return self._app(environ, start_response)
        came = read([(name, environ[key]) for key, name in _READ.items() if environ.get(key) is not None])
        if self._answers_waits and environ.get("PATH_INFO") == PATH:
            return _reply(start_response, self._answer_wait(environ, came))
        inbound: Inbound | JoinedRequest | None = joined(came, mark, "wsgi")
        if inbound is None:
            inbound = Inbound(came, _caller(environ, came), edge=self._edge, protocol="wsgi")
        environ[_MARK] = inbound
        inbound.scope.endpoint = partial(_endpoint, environ)
        if came.texts:
            _strip(environ)
        visit = None
        if self._session is not None and not inbound.has_session:
            inbound.has_session = True
            visit = Visit(self._session, environ, [environ.get("HTTP_COOKIE", "")], inbound.scope)
        return _Answer(inbound, visit, self._app, environ, start_response)

    def _answer_wait(self, environ: WSGIEnvironment, came: InboundHeaders) -> Answer:
        """What a service hears that asks whether writes are visible here (DELEG-2)."""
        if environ.get("REQUEST_METHOD") != "POST":
            return refusal(405, "want POST")
        length = environ.get("CONTENT_LENGTH") or "0"
        if not (length.isascii() and length.isdecimal()) or len(length) > 9 or int(length) > MOST_OCTETS:
            return refusal(413, f"want at most {MOST_OCTETS} octets")
        body = environ["wsgi.input"].read(int(length))
        return Question(body, _caller(environ, came), edge=self._edge).answer()


_STATUS: Final = {
    200: "200 OK",
    400: "400 Bad Request",
    403: "403 Forbidden",
    405: "405 Method Not Allowed",
    429: "429 Too Many Requests",
}


def _reply(start_response: StartResponse, answer: Answer) -> list[bytes]:
    start_response(_STATUS.get(answer.status, "413 Content Too Large"), answer.headers)
    return [answer.body]


def _endpoint(environ: WSGIEnvironment) -> str:
    """The route that the framework has found by now (Flask says it); the path itself may hold keys (REC-7, REC-8)."""
    rule = getattr(getattr(environ.get("werkzeug.request"), "url_rule", None), "rule", None)
    return f"{environ.get('REQUEST_METHOD', '')} {rule or 'request'}".lstrip()


def _caller(environ: WSGIEnvironment, came: InboundHeaders) -> Caller:
    """Return who sends the request: the socket's peer, and what a server or middleware shows in its place (TRUST-33).

    Gunicorn and werkzeug show their socket, and werkzeug's ProxyFix what it has replaced. Elsewhere an address that a
    forwarding header names is not believed.
    """
    shown = environ.get("REMOTE_ADDR") or None
    peer = peer_of(environ.get("gunicorn.socket") or environ.get("werkzeug.socket"))
    if peer is not None:
        return Caller(peer, came.forwarded, shown)
    before = environ.get("werkzeug.proxy_fix.orig")
    if isinstance(before, dict) and before.get("REMOTE_ADDR"):
        peer = before["REMOTE_ADDR"]
    hidden = is_hop(peer or shown or "", came.forwarded)
    return Caller(peer or shown, came.forwarded, None if peer is None else shown, hidden=hidden)


def _strip(environ: WSGIEnvironment) -> None:
    """Takes the lineage out: nothing behind the middleware passes it on unjudged (TRUST-5)."""
    for key in _OURS:
        environ.pop(key, None)
    if _BAGGAGE in environ:
        rest = without_member(environ[_BAGGAGE])
        if rest:
            environ[_BAGGAGE] = rest
        else:
            del environ[_BAGGAGE]


class _Answer(Iterator[bytes]):
    """The response: each step of the application runs in the scope, which ends with `close`.

    The header is handed to the server as late as it may be, before the first piece of the body, so that it
    holds what the application wrote until then.
    """

    def __init__(
        self,
        inbound: Inbound | JoinedRequest,
        visit: Visit | None,
        app: WSGIApplication,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> None:
        self._inbound = inbound
        self._visit = visit
        self._start_response = start_response
        self._held: tuple[str, list[tuple[str, str]], Any] | None = None
        self._write: Callable[[bytes], object] | None = None
        self._closed = False
        self._method: str = environ.get("REQUEST_METHOD", "")
        try:
            with inbound.active():
                self._body = app(environ, self._start)
                self._pieces = iter(self._body)
        except BaseException as error:
            self._answer_for(error)
            inbound.close()
            raise

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        if self._write is not None:
            # The header has left already: the server raises what `exc_info` holds, as the protocol wants.
            return self._start_response(status, headers, exc_info)
        self._held = (status, headers, exc_info)
        return self._write_now

    def _write_now(self, data: bytes) -> object:
        self._send_header()
        return None if self._write is None else self._write(data)

    def _send_header(self) -> None:
        if self._write is not None or self._held is None:
            return
        status, headers, exc_info = self._held
        headers = list(headers)
        code = int(status[:3]) if status[:3].isdecimal() else 0
        public = is_shared(headers, self._method, code)
        is_set = any(name.lower() == LINEAGE_HEADER for name, _ in headers)
        if is_set and self._inbound.withholds(public):
            headers = [header for header in headers if header[0].lower() != LINEAGE_HEADER]
        headers += self._said(code, public=public, replaces=is_set)
        if exc_info is None:
            self._write = self._start_response(status, headers)
        else:
            self._write = self._start_response(status, headers, exc_info)

    def __next__(self) -> bytes:
        """The next piece of the body, made in the request's scope."""
        try:
            with self._inbound.active():
                piece = next(self._pieces)
        except StopIteration:
            self._send_header()
            raise
        except BaseException as error:
            self._answer_for(error)
            raise
        self._send_header()
        return piece

    def _said(self, status: int = 0, *, public: bool = False, replaces: bool = False) -> list[tuple[str, str]]:
        """Our headers: what was written since the request came in, for the caller and for the user's next request."""
        text = self._inbound.response_text(public=public, status=status, replaces=replaces)
        cookies = [] if self._visit is None else self._visit.set_cookies(public=public)
        said = [] if text is None else [(LINEAGE_HEADER, text)]
        return said + [("Set-Cookie", cookie) for cookie in cookies]

    def _answer_for(self, error: BaseException) -> None:
        """The application has failed before its header left; the server would answer without its additions (PROP-13).

        Where there are any, the answer is made here; the server gets the error all the same, after a whole response.
        So a debugger belongs inside of the middleware: the page of one outside comes too late.
        """
        if self._write is not None or not isinstance(error, Exception):
            return
        said = self._said()
        if not said:
            return
        body = b"Internal Server Error"
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *said]
        with suppress(Exception):  # the connection may be gone; what the application raised goes on
            self._write = self._start_response("500 Internal Server Error", headers)
            self._write(b"" if self._method == "HEAD" else body)

    def close(self) -> None:
        """Ends the response, and with it the request's scope; closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                with self._inbound.active():
                    close()
        finally:
            self._inbound.close()
