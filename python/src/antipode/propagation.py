"""How a lineage travels with requests and comes back with responses (paper 6.2, spec PROP).

The four functions `extract_request`, `inject_request`, `extract_response` and `inject_response` serve any
transport; our middlewares and client hooks are made of them. None raises for what a header holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from opentelemetry import baggage
from opentelemetry import context as otel

from antipode._base import logs
from antipode._base.observers import events
from antipode._base.settings import Mode, settings
from antipode._model import display
from antipode._model.lineage import EMPTY
from antipode._model.wire import unwrap_header
from antipode._propagation.carriers import (
    BAGGAGE_KEY,
    CARRIERS,
    JMS_PROPERTY,
    LINEAGE_HEADER,
    NOTHING,
    Headers,
    InboundHeaders,
    pairs,
    read,
    rewrite,
)
from antipode._propagation.gate import give, leaving, lineage_outside, take
from antipode._propagation.propagator import (
    AntipodePropagator,
    application_formats,
    approve,
    approved,
    arrived,
    instrument,
    uninstrument,
)
from antipode._propagation.shared_caches import NOT_MODIFIED, is_shared
from antipode._scope.context import activate, in_context, this_process
from antipode._scope.lost_writes import orphan
from antipode._scope.scope import Scope, current_scope
from antipode._trust.trust import (
    Caller,
    Direction,
    Purpose,
    TrustSettings,
    judge_request_out,
    judge_response_in,
    outgoing_text,
    report,
    trust_settings,
    warn_of_forwarded,
)

__all__ = [
    "JMS_PROPERTY",
    "LINEAGE_HEADER",
    "AntipodePropagator",
    "Inbound",
    "approve",
    "approved",
    "arrived",
    "extract_request",
    "extract_response",
    "inject_request",
    "inject_response",
    "instrument",
    "merge_response",
    "prepare_request",
    "uninstrument",
]

GATEWAYS: Final = frozenset({502, 503, 504, *range(520, 528), 530})
"""Statuses that a gateway gives by itself, of a call that may have reached the callee (PROP-31)."""
_TOLD: Final = GATEWAYS | {NOT_MODIFIED}
"""Statuses with which it is said that nothing was added: without a header that would not be known (PROP-13)."""
_INBOUND: Final = otel.create_key("antipode-inbound")


class Inbound:
    """One request that came in: its scope, and what its response may carry back.

    A middleware makes one for every request, whether or not it brought a lineage (PROP-22), runs the application
    in `context()`, asks `response_text()` when the header leaves, and calls `close()` at the end.
    """

    __slots__ = ("_caller", "_edge", "_reported", "has_session", "protocol", "scope")

    def __init__(
        self,
        came: InboundHeaders = NOTHING,
        peer: Caller | str | None = None,
        *,
        edge: bool | None = None,
        protocol: str = "",
    ) -> None:
        """`peer` is the socket's peer, or what a middleware knows of the caller.

        `edge` is a middleware's own word, which can only add to the setting. `protocol`: its own, asgi or wsgi.
        """
        self.protocol = protocol
        self.has_session = False
        instrument()
        events.on_request_begun()
        caller = self._caller = peer if isinstance(peer, Caller) else Caller(peer, came.forwarded)
        self._edge = edge
        self._reported = EMPTY
        if not came.texts:
            self.scope = Scope(kind="request")
            return
        trust = self._trust()
        taken = take(
            came.texts,
            lambda text: caller.judge_request(text, trust),
            Direction.REQUEST_IN,
            caller.peer or "",
        )
        self.scope = Scope(taken.lineage, kind="request")
        taken.note_in(self.scope)

    def _trust(self) -> TrustSettings:
        return trust_settings().at_edge(self._edge)

    def context(self) -> otel.Context:
        """The current Context with this request in it, and without a lineage in OpenTelemetry's baggage.

        An instrumentation outside of the middleware may have put it there, unjudged (TRUST-5).
        """
        context = otel.set_value(_INBOUND, self, in_context(self.scope))
        if baggage.get_baggage(BAGGAGE_KEY, context) is not None:
            context = baggage.remove_baggage(BAGGAGE_KEY, context)
        return context

    def active(self) -> AbstractContextManager[Scope]:
        """Runs the block in this request's scope, without closing it."""
        return activate(self.scope, self.context())

    def may_answer(self) -> bool:
        """Whether a lineage may go to this caller at all; where not, what the application set is taken out."""
        return self._caller.judge_response(self._trust()).accepted

    def withholds(self, public: bool) -> bool:
        """Return whether what the application itself put into our header is taken out."""
        return public or not self.may_answer()

    def response_text(
        self, *, public: bool = False, status: int = 0, replaces: bool = False, is_alone: bool = False
    ) -> str | None:
        """The header's value for what the scope added since it was last asked; None where none is to be sent.

        From now on what is written comes late, and is counted (PROP-13, PROP-16). `public`: shared caches may keep the
        response, which says then that something is missing. `replaces`: a lineage is there already; a shared response
        loses it. `is_alone`: the header leaves before the body, and something may be written in between.
        """
        self.scope.sent = True
        if settings().mode is Mode.OFF:
            return None
        added = self.scope.additions()
        new = added.added_to(self._reported)
        self._reported = added
        told = None  # what the caller has already is not said again, and is what it depends on all the same (HIST-30)
        if settings().history and self.scope.lineage:
            told = self.scope.lineage
        if public and (new or replaces):
            logs.warn(
                "response shared",
                "what a request wrote goes back to nobody: shared caches may keep the response.",
                count_as="dropped",
                code="AP404",
            )
            new = EMPTY.marked_incomplete()
        elif public:
            told = None
        elif is_alone:
            new = new.marked_incomplete()
        if not new and told is None and (replaces or status not in _TOLD):  # a lineage that is there says it already
            return None
        trust = self._trust()
        decision = self._caller.judge_response(trust)
        if not decision.accepted:
            if new or told is not None:
                report(decision, Direction.RESPONSE_OUT)
            return None
        text = give(new, trust, Direction.RESPONSE_OUT, self.scope, told)
        return outgoing_text(EMPTY.serialize(), trust, Purpose.RESPONSE) if text is None else text

    def close(self) -> None:
        """Ends the request's scope; closing twice is harmless."""
        self.scope.stop()


class JoinedRequest:
    """This very request, to a middleware inside of the one that opened its scope (PROP-33): that one answers for it."""

    __slots__ = ("_outer", "has_session", "protocol", "scope")

    def __init__(self, outer: Inbound | JoinedRequest, protocol: str) -> None:
        self._outer = outer
        self.has_session: bool = outer.has_session
        self.protocol = protocol
        self.scope: Scope = outer.scope

    def active(self) -> AbstractContextManager[Scope]:
        """Runs the block in the request's scope, also where the way in here did not take the Context along."""
        return activate(self.scope, self.context())

    def context(self) -> otel.Context:
        """Return the current Context with this request in it, as an inner middleware has it."""
        return otel.set_value(_INBOUND, self, self._outer.context())

    def withholds(self, public: bool) -> bool:
        """Return False: the outer middleware takes out what may not leave, and answers for it."""
        return False

    def response_text(
        self, *, public: bool = False, status: int = 0, replaces: bool = False, is_alone: bool = False
    ) -> None:
        """Return None: the outer middleware's answer carries the additions."""

    def close(self) -> None:
        """Do nothing: the scope ends with the outer middleware's request."""


def joined(came: InboundHeaders, mark: Inbound | JoinedRequest | None, protocol: str) -> JoinedRequest | None:
    """Return the request as a middleware of this protocol has it inside of another; None where none is (PROP-33).

    `mark` is what one of the same protocol has left in the request. One of another protocol is known by the Context,
    unless the request brings a lineage: that one would have taken it out, so it is another request.
    """
    if mark is not None:
        return JoinedRequest(mark, protocol)
    outer = otel.get_current().get(_INBOUND)
    if came.texts or not isinstance(outer, Inbound | JoinedRequest) or outer.protocol == protocol:
        return None
    return None if outer.scope.closed or outer.scope.process is not this_process() else JoinedRequest(outer, protocol)


@contextmanager
def extract_request(headers: Headers, peer: str | None = None, *, edge: bool | None = None) -> Iterator[Scope]:
    """Opens the scope of a request that came in with these headers, for the block.

    `peer` is the address of the socket's peer as the server gives it, `unix:` for a Unix socket; None is not believed.
    """
    inbound = Inbound(read(headers), peer, edge=edge)
    try:
        with inbound.active() as scope:
            yield scope
    finally:
        inbound.close()


def inject_response(
    headers: MutableMapping[str, str], *, public: bool | None = None, method: str = "", status: int = 0
) -> None:
    """Puts what this request's scope added into the response's headers, before they leave.

    `public` says that shared caches may keep the response; by default its headers, the request's method and the
    response's status say it (PROP-34, PROP-39).
    """
    inbound = otel.get_current().get(_INBOUND)
    if not isinstance(inbound, Inbound):
        return
    if public is None:
        public = is_shared(headers, method, status)
    before = [value for name, value in pairs(headers) if name == LINEAGE_HEADER]
    text = inbound.response_text(public=public, status=status, replaces=bool(before))
    withheld = inbound.withholds(public)
    if text is None and not (withheld and before):
        return
    # Werkzeug's headers are no mapping: they iterate over pairs, and name a header as often as it has lines.
    for name in dict.fromkeys(name for name in headers.keys() if name.lower() == LINEAGE_HEADER):  # noqa: SIM118
        del headers[name]
    if text is not None:
        headers[LINEAGE_HEADER] = text if withheld else ",".join([*before, text])


def inject_request(headers: MutableMapping[str, str], host: str) -> None:
    """Puts the current scope's lineage into a request's headers, if `host` is approved (TRUST-15).

    Raises PendingWriteError under `on_pending=raise`, nothing else.
    """
    spelled = {name.lower(): name for name in headers}

    def get(name: str) -> str | None:
        found = spelled.get(name)
        return None if found is None else headers[found]

    for name, value in prepare_request(host, get, headers.items()).changes.items():
        if value is not None:
            headers[spelled.get(name, name)] = value
        elif name in spelled:
            del headers[spelled[name]]


def extract_response(headers: Headers, host: str) -> None:
    """Joins what a response from `host` brought back into the current scope, if it is believed (PROP-14)."""
    texts = [value for name, value in pairs(headers) if name == LINEAGE_HEADER]
    if texts:
        merge_response(texts, host)


# What client hooks are made of


class Outgoing:
    """What a client hook does to one request: header changes (None: to be removed), and the text that leaves."""

    __slots__ = ("changes", "text")

    def __init__(self, changes: dict[str, str | None], text: str | None) -> None:
        self.changes = changes
        self.text = text


_AS_IT_IS: Final = Outgoing({}, None)


def prepare_request(host: str, get: Callable[[str], str | None], headers: Iterable[tuple[str, str]]) -> Outgoing:
    """Judges a request to `host` and says what its headers must become.

    `get` gives a header by its lower-case name, lines joined by commas; `headers` are all of them, for the
    sender's word on forwarding headers (TRUST-30). An older lineage never travels on to a host that is not
    approved, as with a redirect (TRUST-26).
    """
    scope = current_scope()
    trust = trust_settings()
    decision = judge_request_out(host, trust)
    if not decision.accepted:
        if scope is not None and scope.lineage:
            report(decision, Direction.REQUEST_OUT)
        return Outgoing(rewrite(get, None, application_formats()), None)
    if scope is None:
        return _without_scope(get, trust)
    text = give(leaving(scope, answered=True, target=host), trust, Direction.REQUEST_OUT, scope)
    if text is not None:
        warn_of_forwarded(host, headers, trust)
    return Outgoing(rewrite(get, text, application_formats()), text)


def _without_scope(get: Callable[[str], str | None], trust: TrustSettings) -> Outgoing:
    """Return what a request outside any scope must become; a lineage that the application put there stays."""
    if any(read([(name, value)]).texts for name in CARRIERS if (value := get(name)) is not None):
        return _AS_IT_IS
    text = give(lineage_outside(Direction.REQUEST_OUT.words), trust, Direction.REQUEST_OUT)
    return _AS_IT_IS if text is None else Outgoing(rewrite(get, text, application_formats()), text)


def unanswered(host: str, error: BaseException | str) -> None:
    """A call may have reached `host` and brought no answer: what the callee wrote is missing here (PROP-27)."""
    scope = current_scope()
    if scope is not None and is_expected(scope, host):
        mark_unanswered(scope, host, error if isinstance(error, str) else type(error).__name__)


def is_expected(scope: Scope | None, host: str) -> bool:
    """Whether a lineage is expected back from `host`: it is approved, and there is a scope to join it."""
    return scope is not None and settings().mode is not Mode.OFF and judge_request_out(host, trust_settings()).accepted


def mark_unanswered(scope: Scope, host: str, words: str) -> None:
    """A call of which a lineage was expected brought no answer (PROP-27)."""
    scope.mark_incomplete(
        "unanswered", detail=f"a call to {display.shown(host)} brought no answer: {display.escaped(words)}"
    )


def merge_response(values: Iterable[str], host: str) -> None:
    """Joins the `antipode-lineage` values of a response or trailer, at least one, into the current scope."""
    if settings().mode is Mode.OFF:
        return
    texts = unwrap_header(values) or [""]
    trust = trust_settings()
    taken = take(texts, lambda text: judge_response_in(host, text, trust), Direction.RESPONSE_IN, host)
    scope = current_scope()
    if scope is not None:
        taken.note_in(scope)
        scope.merge(taken.lineage)
        return
    taken.tell()
    for store in taken.lineage.stores:
        orphan(store)
