"""The OpenTelemetry propagator: goes round the application's own and carries the lineage in their formats.

Extracting moves the lineage out of OpenTelemetry's baggage into a key of our own. Injecting writes it only where
a client hook has put its approval into the Context: a propagator knows neither peer nor host (spec PROP, TRUST).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus

from opentelemetry import baggage, propagate
from opentelemetry import context as otel
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)

from antipode._base import logs
from antipode._base.otel_context import hold
from antipode._base.settings import Trust
from antipode._propagation.carriers import (
    BAGGAGE_HEADER,
    BAGGAGE_KEY,
    CARRIERS,
    JAEGER_HEADER,
    JAEGER_TRACE_HEADER,
    LINEAGE_HEADER,
    Formats,
    read,
    with_member,
)
from antipode._propagation.gate import give, leaving, lineage_outside, take
from antipode._scope.context import in_context, scope_in
from antipode._scope.scope import Scope, current_scope
from antipode._trust.trust import Caller, Decision, Direction, judge_request_out, report, trust_settings

_APPROVAL: Final = otel.create_key("antipode-approval")
_ARRIVED: Final = otel.create_key("antipode-arrived")
_LONGEST_MEMBER: Final = 4096
"""What OpenTelemetry for Python leaves out when it injects baggage, in bytes."""


class _Approval(NamedTuple):
    """A client hook's word on this very call: the text that may leave, or None for nothing."""

    text: str | None
    written: bool = False
    """Whether a propagator further out writes it: those further in leave everything as it is."""


class AntipodePropagator(TextMapPropagator):
    """Carries the lineage beside, or round, the application's own propagators.

    With `inner` it goes round that one (`instrument()` does so with the global one). Without, as the entry point
    `antipode` of OTEL_PROPAGATORS, it stands beside the others and should be listed last.
    """

    def __init__(self, inner: TextMapPropagator | None = None) -> None:
        self._inner = inner

    def extract(
        self,
        carrier: CarrierT,
        context: otel.Context | None = None,
        getter: Getter[CarrierT] = default_getter,
    ) -> otel.Context:
        """The Context with the lineage moved out of baggage; raises nothing of its own (PROP-3, PROP-12).

        A scope is opened here only where trust needs no peer (`all`, `key`); else a middleware opens it.
        """
        given = context
        if self._inner is not None:
            context = self._inner.extract(carrier, context, getter)
        if context is None:
            context = otel.get_current()
        if baggage.get_baggage(BAGGAGE_KEY, context) is not None:
            context = baggage.remove_baggage(BAGGAGE_KEY, context)
        running = current_scope() if given is None else scope_in(given)
        # One that has ended is another request's: asyncio may hand its Context on (python/cpython#140947).
        if running is not None and not running.closed:
            # Some propagators begin with an empty Context: the scope of our middleware must not fall out of it.
            return context if scope_in(context) is running else in_context(running, context)
        lines = [(name, getter.get(carrier, name)) for name in CARRIERS]
        texts = read([(name, values) for name, values in lines if values]).texts
        if not texts:
            return context
        trust = trust_settings()
        if trust.edge or trust.trust not in {Trust.ALL, Trust.KEY}:
            return otel.set_value(_ARRIVED, texts, context)
        nobody = Caller()
        taken = take(texts, lambda text: nobody.judge_request(text, trust), Direction.REQUEST_IN, "a propagator")
        scope = Scope(taken.lineage, kind="request")
        taken.note_in(scope)
        return in_context(scope, context)

    def inject(
        self,
        carrier: CarrierT,
        context: otel.Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        """Writes the lineage where this very call was approved, or under `trust=all` (TRUST-25)."""
        if context is None:
            context = otel.get_current()
        approval = context.get(_APPROVAL)
        if isinstance(approval, _Approval) and approval.written:
            if self._inner is not None:
                self._inner.inject(carrier, context, setter)
            return
        text = _approved_text(context)
        if text is not None and scope_in(context) is None:
            text = _given_text(carrier) or text
        if self._inner is None:
            self._beside(carrier, context, setter, text)
        else:
            self._round(self._inner, carrier, context, setter, text)

    @property
    def fields(self) -> set[str]:
        """The headers that it may set."""
        own = {LINEAGE_HEADER}
        return own if self._inner is None else own | self._inner.fields

    def _round(
        self,
        inner: TextMapPropagator,
        carrier: CarrierT,
        context: otel.Context,
        setter: Setter[CarrierT],
        text: str | None,
    ) -> None:
        # What stands in baggage under our key was put there by nobody of ours.
        quiet = otel.set_value(_APPROVAL, _Approval(None, written=True), baggage.remove_baggage(BAGGAGE_KEY, context))
        formats = formats_of(inner)
        if text is None:
            inner.inject(carrier, quiet, setter)
            return
        fits = formats.baggage and with_member(_encoded(quiet), text) is not None
        inner.inject(carrier, baggage.set_baggage(BAGGAGE_KEY, text, quiet) if fits else quiet, setter)
        if formats.jaeger:
            setter.set(carrier, JAEGER_HEADER, text)
        if not fits and (formats.baggage or not formats.jaeger):
            setter.set(carrier, LINEAGE_HEADER, text)

    def _beside(self, carrier: CarrierT, context: otel.Context, setter: Setter[CarrierT], text: str | None) -> None:
        if text is None:
            return
        behind_baggage, jaeger = _beside_what(self)
        line = with_member(_encoded(context), text) if behind_baggage else None
        if line is not None:
            setter.set(carrier, BAGGAGE_HEADER, line)
        if jaeger:
            setter.set(carrier, JAEGER_HEADER, text)
        if line is None and (behind_baggage or not jaeger):
            setter.set(carrier, LINEAGE_HEADER, text)


def _given_text(carrier: Any) -> str | None:
    """Return the lineage that the application put there itself (SCOPE-31); None where one cannot be seen."""
    try:
        texts = read(carrier if isinstance(carrier, Mapping) else list(carrier)).texts
    except (TypeError, ValueError, AttributeError):
        return None
    return texts[0] if len(texts) == 1 else None


def _encoded(context: otel.Context) -> str:
    """The application's baggage as OpenTelemetry's W3C propagator spells it, without ours and without a limit."""
    members = [
        f"{quote_plus(str(key))}={quote_plus(str(value))}"
        for key, value in baggage.get_all(context).items()
        if key != BAGGAGE_KEY
    ]
    return ",".join(member for member in members if len(member) <= _LONGEST_MEMBER)


def _beside_what(own: AntipodePropagator) -> tuple[bool, bool]:
    """Whether the global propagators write baggage before this one has its turn, and not after; and Jaeger's format."""
    listed = list(getattr(propagate.get_global_textmap(), "_propagators", ()))
    if own not in listed:
        return False, False
    place = listed.index(own)
    before = any(BAGGAGE_HEADER in other.fields for other in listed[:place])
    after = any(BAGGAGE_HEADER in other.fields for other in listed[place + 1 :])
    return before and not after, any(JAEGER_TRACE_HEADER in other.fields for other in listed)


def _approved_text(context: otel.Context) -> str | None:
    approval = context.get(_APPROVAL)
    if isinstance(approval, _Approval):
        return approval.text
    trust = trust_settings()
    scope = scope_in(context)
    if trust.trust is Trust.ALL and not trust.edge:
        lineage = lineage_outside(Direction.REQUEST_OUT.words) if scope is None else leaving(scope, answered=True)
        return give(lineage, trust, Direction.REQUEST_OUT, scope)
    if scope is not None and scope.lineage and trust.trust is not Trust.NONE:
        logs.warn(
            "trust no approval",
            "did not send a lineage with a call of OpenTelemetry's own instrumentation: nothing says where it "
            "goes. Wrap the client (antipode.requests.wrap, antipode.httpx.wrap), use "
            "antipode.propagation.approve(host) round the call, or set ANTIPODE_TRUST=all.",
            count_as="dropped",
            code="AP404",
        )
    return None


def arrived(context: otel.Context | None = None) -> tuple[str, ...]:
    """The lineage texts that an extract found and could not judge, for lack of a peer; not to be believed."""
    texts: Any = (otel.get_current() if context is None else context).get(_ARRIVED)
    return texts if isinstance(texts, tuple) else ()


@contextmanager
def approve(host: str) -> Iterator[None]:
    """Says that the calls in this block go to `host`, for instrumentations that call a propagator.

    Whether a lineage goes along is judged here, and its text is made here, once (TRUST-15, TRUST-25).
    """
    trust = trust_settings()
    scope = current_scope()
    text = None
    decision: Decision = judge_request_out(host, trust)
    if not decision.accepted:
        if scope is not None and scope.lineage:
            report(decision, Direction.REQUEST_OUT)
    elif scope is None:
        text = give(lineage_outside(Direction.REQUEST_OUT.words), trust, Direction.REQUEST_OUT)
    else:
        text = give(leaving(scope, answered=True, target=host), trust, Direction.REQUEST_OUT, scope)
    with approved(text):
        yield


def approved(text: str | None) -> AbstractContextManager[None]:
    """Return a block in whose Context a client hook says: this text may leave, or (None) the hook sees to it."""
    instrument()
    return hold(_APPROVAL, _Approval(text))


# Going round the application's own

_lock = threading.Lock()
_installed: AntipodePropagator | None = None
_formats: tuple[TextMapPropagator | None, Formats] = (None, Formats())


def _after_fork_in_child() -> None:
    """Another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def instrument() -> None:
    """Puts the propagator round OpenTelemetry's global one; again where the application has set another since.

    Middlewares and wrapped clients call it. It costs a comparison where nothing is to be done.
    """
    global _installed
    if _installed is not None and propagate.get_global_textmap() is _installed:
        return
    with _lock:
        present = propagate.get_global_textmap()
        if isinstance(present, AntipodePropagator) and present._inner is not None:
            _installed = present
        elif present is not _installed:
            _installed = AntipodePropagator(present)
            propagate.set_global_textmap(_installed)


def uninstrument() -> None:
    """Takes the propagator off again, unless the application has set another meanwhile."""
    global _installed
    with _lock:
        installed, _installed = _installed, None
        if installed is None or propagate.get_global_textmap() is not installed:
            return
        if installed._inner is not None:
            propagate.set_global_textmap(installed._inner)


def formats_of(propagator: TextMapPropagator) -> Formats:
    """In which formats this propagator carries baggage."""
    global _formats
    known, formats = _formats
    if known is not propagator:
        fields = propagator.fields
        formats = Formats(BAGGAGE_HEADER in fields, JAEGER_TRACE_HEADER in fields)
        _formats = (propagator, formats)
    return formats


def application_formats() -> Formats:
    """In which formats the application propagates its own baggage now."""
    present = propagate.get_global_textmap()
    if isinstance(present, AntipodePropagator) and present._inner is not None:
        present = present._inner
    return formats_of(present)
