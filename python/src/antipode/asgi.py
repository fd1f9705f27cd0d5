"""ASGI middleware: a scope for every request, filled from its headers; its additions go back (spec PROP).

app = antipode.asgi.Middleware(app)          # around the whole application, FastAPI's and Starlette's too

The header leaves with the first piece of the body, so that it holds what was written until then: on asyncio, and at
most a second after the application gave it, for the reader of a stream may wait for the header alone. One that leaves
by itself says that the lineage is incomplete (PROP-16).

A WebSocket or a stream of events has one scope for its whole life; `with antipode.message_scope(text):` gives one of
its messages its own (SCOPE-8). Its header carries back what was written before it left, a message what it holds itself.

`app.add_middleware(antipode.asgi.Middleware)` works as well, but puts it inside of what answers for errors there: where
a request that has written fails, its own plain answer goes out in place of the application's error page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from antipode._base.call_site import skip_packages
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.history import recorder
from antipode._facade.answering import MOST_OCTETS, PATH, Answer, Question, refusal
from antipode._propagation.carriers import (
    BAGGAGE_HEADER,
    CARRIERS,
    FORWARDING,
    JMS_PROPERTY,
    LINEAGE_HEADER,
    InboundHeaders,
    read,
    without_member,
)
from antipode._propagation.shared_caches import is_shared
from antipode._trust.trust import Caller, is_hop, peer_of, trust_settings
from antipode.propagation import Inbound, JoinedRequest, instrument, joined
from antipode.session import Session, Visit

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
RawHeaders = Iterable[tuple[bytes, bytes]]

_MARK: Final = "antipode.inbound"
_TRAILERS: Final = "http.response.trailers"
_LINEAGE: Final = LINEAGE_HEADER.encode()
_BAGGAGE: Final = BAGGAGE_HEADER.encode()
_DENIAL: Final = "websocket.http.response"
_STARTS: Final = frozenset({"http.response.start", "websocket.accept", f"{_DENIAL}.start"})
_LONGEST_HOLD_S: Final = 1.0
_ALONE: Final = "antipode.alone"
"""In a start that an inner middleware has held long enough."""
_SET_COOKIE: Final = b"set-cookie"
_OURS: Final = frozenset(name.encode() for name in (*CARRIERS, JMS_PROPERTY)) - {_BAGGAGE}
_READ: Final = frozenset(name.encode() for name in (*CARRIERS, *FORWARDING))

skip_packages("starlette", "fastapi", "uvicorn", "anyio")


class Middleware:
    """Opens a scope for each HTTP request and WebSocket; of several in one another, WSGI's too, the outermost does.

    `edge=True` says that callers of this application are outside: nothing of theirs is taken and nothing goes
    back to them. `session` says where a user's lineage is kept for the next request (`antipode.session`); nowhere
    without it. `answers_waits=True`: services that have no access to our stores may ask whether writes are visible here
    (`antipode.delegated`). Raises ConfigurationError where the settings of trust are wrong.
    """

    def __init__(
        self, app: App, *, edge: bool | None = None, session: Session | None = None, answers_waits: bool = False
    ) -> None:
        self._app = app
        self._edge = edge
        self._session = session
        self._answers_waits = answers_waits
        trust_settings()
        instrument()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Runs the application in the request's scope."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, partial(_before_the_end, send))
            return
        mark = scope.get(_MARK)
        if scope["type"] not in {"http", "websocket"} or (mark is not None and self._session is None):
            await self._app(scope, receive, send)
            return
        relevant = [header for header in scope["headers"] if header[0].lower() in _READ]
        came = read(relevant)
        if self._answers_waits and scope["type"] == "http" and _path(scope) == PATH:
            await _reply(send, await self._answer_wait(scope, receive, came))
            return
        inbound: Inbound | JoinedRequest | None = joined(came, mark, "asgi")
        if inbound is None:
            inbound = Inbound(came, _caller(scope, receive, came), edge=self._edge, protocol="asgi")
        inner = {**scope, _MARK: inbound}
        inbound.scope.endpoint = partial(_endpoint, inner)
        if came.texts:
            inner["headers"] = without_lineage(scope["headers"])
        visit = None
        if self._session is not None and not inbound.has_session:
            inbound.has_session = True
            cookies = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"cookie"]
            visit = Visit(self._session, scope, cookies, inbound.scope)
        answer = _Answer(inbound, scope, send, visit)
        try:
            with inbound.active():
                await self._app(inner, receive, answer.send)
            await answer.release()
        except Exception:
            await answer.say_what_was_written()
            raise
        finally:
            answer.close()
            inbound.close()

    async def _answer_wait(self, scope: AsgiScope, receive: Receive, came: InboundHeaders) -> Answer:
        """What a service hears that asks whether writes are visible here (DELEG-2)."""
        if scope["method"] != "POST":
            return refusal(405, "want POST")
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return refusal(400, "the asker has gone")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MOST_OCTETS:
                return refusal(413, f"want at most {MOST_OCTETS} octets")
        return await Question(body, _caller(scope, receive, came), edge=self._edge).answer_async()


def _path(scope: AsgiScope) -> str:
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path") or "")


async def _reply(send: Send, answer: Answer) -> None:
    headers = [(name.encode(), value.encode()) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _before_the_end(send: Send, message: Message) -> None:
    """What a server hears last. Some end by a signal then, which runs no exit hook: records go to disk first."""
    if message["type"].startswith("lifespan.shutdown."):
        records.end()
        recorder.end()
    await send(message)


def _endpoint(scope: AsgiScope) -> str:
    """The route that the framework has found by now; the path itself may hold keys (REC-7, REC-8)."""
    method = scope.get("method", "WEBSOCKET")
    found = getattr(scope.get("route"), "path", None)
    if not isinstance(found, str):
        endpoint = scope.get("endpoint")
        name = getattr(endpoint, "__qualname__", None)
        found = None if name is None else f"{getattr(endpoint, '__module__', '')}.{name}"
    return f"{method} {found}" if found else f"{method} request"


def _caller(scope: AsgiScope, receive: Receive, came: InboundHeaders) -> Caller:
    """Return who sends the request: the socket's peer, and what a server or middleware shows in its place (TRUST-33).

    Servers that trust a proxy put a forwarding header's address there. Where the server's connection cannot be seen
    (behind a middleware that has a `receive` of its own), an address that a header names is not believed.
    """
    shown, port = scope.get("client") or (None, None)
    connection = getattr(getattr(receive, "__self__", None), "transport", None)  # uvicorn's
    peer = None if connection is None else peer_of(connection.get_extra_info("socket"))
    if peer is not None:
        return Caller(peer, came.forwarded, shown)
    server = scope.get("server")
    if shown is None and server and server[1] is None:
        return Caller("unix:", came.forwarded)
    return Caller(shown, came.forwarded, hidden=shown is not None and (port == 0 or is_hop(shown, came.forwarded)))


def _may_stream(start: Message) -> bool:
    """Return whether a response's length is not known when it starts."""
    return all(name.lower() != b"content-length" for name, _ in start.get("headers") or ())


def without_lineage(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """Raw request headers without the lineage: nothing behind the middleware passes it on unjudged (TRUST-5)."""
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        lower = name.lower()
        if lower == _BAGGAGE:
            rest = without_member(value.decode("latin-1")).encode("latin-1")
            if rest:
                kept.append((name, rest))
        elif lower not in _OURS:
            kept.append((name, value))
    return kept


class _Answer:
    """Puts the scope's additions into the header of the response, and what comes later into its trailer."""

    def __init__(self, inbound: Inbound | JoinedRequest, scope: AsgiScope, send: Send, visit: Visit | None) -> None:
        self._inbound = inbound
        self._visit = visit
        self._send = send
        self._method: str = scope.get("method", "GET")
        self._public = False
        self._started = False
        self._own_trailers = False
        self._held: Message | None = None
        """The start of the response, while nothing of its body is there."""
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: asyncio.Task[None] | None = None
        """Sends the header that nothing follows."""
        self._kind = "http.response"
        if scope["type"] == "websocket":
            self._kind = _DENIAL if _DENIAL in (scope.get("extensions") or {}) else ""
        self._may_trail = (
            isinstance(inbound, Inbound)  # the outermost middleware answers, and the trailer is its own
            and _TRAILERS in (scope.get("extensions") or {})
            and any(name.lower() == b"te" and b"trailers" in value.lower() for name, value in scope["headers"])
        )

    async def send(self, message: Message) -> None:
        kind = message["type"]
        await self.release()
        if kind in _STARTS:
            is_alone = bool(message.get(_ALONE))
            if kind == f"{self._kind}.start" and not is_alone:
                if not self._started and self._hold(message):
                    return
                is_alone = _may_stream(message)
            message = self._start(message, is_alone=is_alone)
        elif kind == "websocket.close":
            self._started = True
        await self._send(message)
        if kind == "http.response.body" and self._own_trailers and not message.get("more_body"):
            await self._send(self._trailers())

    def _hold(self, message: Message) -> bool:
        """Keep the start until something follows, or a second; return False where nothing can wake us then."""
        loop = asyncio._get_running_loop()
        if loop is None:
            return False
        self._held = message
        self._timer = loop.call_later(_LONGEST_HOLD_S, self._leave)
        return True

    def _leave(self) -> None:
        self._leaving = asyncio.ensure_future(self._send_held(is_alone=True))

    async def release(self) -> None:
        """Send the start that is held; something follows it, or the response is over."""
        if self._leaving is not None:
            await self._leaving
            self._leaving = None
        if self._held is not None:
            await self._send_held()

    async def _send_held(self, *, is_alone: bool = False) -> None:
        message = self._held
        self.close()
        if message is not None:
            start = self._start(message, is_alone=is_alone)
            if is_alone and isinstance(self._inbound, JoinedRequest):
                start[_ALONE] = True
            await self._send(start)

    def close(self) -> None:
        """Drop what is held: the application has ended, and its header would come behind the server's own."""
        self._held = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def say_what_was_written(self) -> None:
        """The application has failed before its header left; the server would answer without its additions (PROP-13).

        Where there are any, the answer is made here; the server gets the error all the same, after a whole response. A
        start that is still held is not sent: the server answers for the error.
        """
        self.close()
        if self._started or not self._kind:
            return
        said = self._said()
        if not said:
            return
        body = b"Internal Server Error"
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode()), *said]
        with suppress(Exception):  # the connection may be gone; what the application raised goes on
            await self._send({"type": f"{self._kind}.start", "status": 500, "headers": headers})
            await self._send({"type": f"{self._kind}.body", "body": body})

    def _said(self, status: int = 0, *, replaces: bool = False, is_alone: bool = False) -> list[tuple[bytes, bytes]]:
        """Our headers: what was written since the request came in, for the caller and for the user's next request."""
        text = self._inbound.response_text(public=self._public, status=status, replaces=replaces, is_alone=is_alone)
        cookies = [] if self._visit is None else self._visit.set_cookies(public=self._public)
        said = [] if text is None else [(_LINEAGE, text.encode("ascii"))]
        return said + [(_SET_COOKIE, cookie.encode("ascii")) for cookie in cookies]

    def _start(self, message: Message, *, is_alone: bool) -> Message:
        self._started = True
        headers = list(message.get("headers") or ())
        status = message.get("status", 0)
        self._public = is_shared(headers, self._method, status)
        is_set = any(name.lower() == _LINEAGE for name, _ in headers)
        if is_set and self._inbound.withholds(self._public):
            headers = [header for header in headers if header[0].lower() != _LINEAGE]
        headers += self._said(status, replaces=is_set, is_alone=is_alone)
        self._own_trailers = self._may_trail and not message.get("trailers")
        changed = {**message, "headers": headers}
        changed.pop(_ALONE, None)
        if self._own_trailers:
            changed["trailers"] = True
        return changed

    def _trailers(self) -> Message:
        text = self._inbound.response_text(public=self._public)
        headers = [] if text is None else [(_LINEAGE, text.encode("ascii"))]
        return {"type": _TRAILERS, "headers": headers, "more_trailers": False}
