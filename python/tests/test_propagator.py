"""The OpenTelemetry propagator (spec PROP-1 to PROP-10): between the application's own formats, in any order."""

from __future__ import annotations

from typing import Any

import antipode
import pytest
from antipode import WriteId
from antipode._propagation.carriers import Formats, read
from antipode._propagation.propagator import application_formats
from antipode._scope.context import activate
from antipode.propagation import (
    AntipodePropagator,
    approve,
    arrived,
    extract_request,
    inject_request,
    instrument,
    uninstrument,
)
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.jaeger import JaegerPropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
TEXT = antipode.Lineage([BEFORE]).serialize()


pytestmark = pytest.mark.usefixtures("w3c_propagators")


def requested() -> dict[str, str]:
    """What a hook writes into a request that leaves."""
    headers: dict[str, str] = {}
    inject_request(headers, "b")
    return headers


def injected(context: otel.Context | None = None) -> dict[str, str]:
    """What the propagators write for an approved host, in a scope with one write."""
    carrier: dict[str, str] = {}
    token = otel.attach(otel.get_current() if context is None else context)
    try:
        with antipode.scope():
            antipode.append(BEFORE)
            with approve("b"):
                propagate.inject(carrier)
    finally:
        otel.detach(token)
    return carrier


def test_extracting_moves_the_lineage_out_of_baggage() -> None:
    """PROP-3."""
    instrument()
    context = propagate.extract({"baggage": f"user=7,antipode={TEXT}"})
    assert baggage.get_all(context) == {"user": "7"}
    assert arrived(context) == (TEXT,)
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    assert carrier == {"baggage": "user=7"}


def test_a_request_takes_its_own_lineage_though_an_ended_one_left_its_context() -> None:
    """python/cpython#140947: asyncio may read a connection's next request in the Context of the last one."""
    instrument()
    antipode.configure(trust="all")
    with antipode.scope() as ended:
        pass
    with activate(ended):
        token = otel.attach(propagate.extract({"baggage": f"antipode={TEXT}"}))
        try:
            found = antipode.current_scope()
            assert found is not None
            assert found is not ended
            assert found.lineage.serialize() == TEXT
        finally:
            otel.detach(token)


def test_extracting_keeps_the_scope_of_the_middleware() -> None:
    """OpenTelemetry's trace propagator begins with an empty Context where it is given none."""
    instrument()
    with extract_request({}) as scope:
        context = propagate.extract({"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"})
        token = otel.attach(context)
        try:
            assert antipode.current_scope() is scope
        finally:
            otel.detach(token)


@pytest.mark.parametrize("trust", ["all", "key"])
def test_where_trust_needs_no_peer_extracting_opens_a_scope(trust: str) -> None:
    antipode.configure(trust=trust, keys={"one": b"k" * 32} if trust == "key" else None)
    with antipode.scope():
        antipode.append(BEFORE)
        text = requested()["baggage"]
    instrument()
    token = otel.attach(propagate.extract({"baggage": text}))
    try:
        scope = antipode.current_scope()
        assert scope is not None
        assert scope.lineage == antipode.Lineage([BEFORE])
    finally:
        otel.detach(token)


def test_injecting_needs_an_approval() -> None:
    """TRUST-25."""
    instrument()
    with antipode.scope():
        antipode.append(BEFORE)
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        assert carrier == {}
        with approve("api.example.com"):
            propagate.inject(carrier)
        assert carrier == {}
        with approve("b"):
            propagate.inject(carrier)
        assert carrier == {"baggage": f"antipode={TEXT}"}


@pytest.mark.parametrize("members", [0, 1, 63, 64])
def test_the_propagator_keeps_the_limits_too(members: int) -> None:
    """PROP-9."""
    instrument()
    context = otel.get_current()
    for number in range(members):
        context = baggage.set_baggage(f"k{number}", "a b", context)
    carrier = injected(context)
    ours = f"antipode={TEXT}"
    if members < 64:
        assert carrier.pop("baggage").split(",")[-1] == ours
        assert carrier == {}
    else:
        assert ours not in carrier["baggage"]
        assert len(carrier["baggage"].split(",")) == members
        assert carrier["antipode-lineage"] == TEXT


def test_without_a_baggage_propagator_it_has_its_own_header() -> None:
    """PROP-9, in the propagator and in the hook."""
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    with antipode.scope():
        antipode.append(BEFORE)
        assert requested() == {"antipode-lineage": TEXT}
    instrument()
    assert application_formats() == Formats(baggage=False, jaeger=False)
    assert injected() == {"antipode-lineage": TEXT}


def test_jaegers_format_is_read_and_written() -> None:
    """PROP-7."""
    propagate.set_global_textmap(JaegerPropagator())
    span = trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=False))
    with antipode.scope():
        antipode.append(BEFORE)
        assert requested() == {"uberctx-antipode": TEXT}
    instrument()
    with trace.use_span(span):
        carrier = injected()
    assert carrier.pop("uberctx-antipode") == TEXT
    assert list(carrier) == ["uber-trace-id"]
    with extract_request({"uberctx-antipode": TEXT.replace("~", "%7E")}, "::1") as scope:
        assert scope.lineage == antipode.Lineage([BEFORE])


@pytest.mark.parametrize("members", [1, 64])
def test_both_formats_are_written_where_both_are_in_use(members: int) -> None:
    """PROP-7 to PROP-9, in the propagator, round the others and beside them, and in the hook."""
    others: list[Any] = [JaegerPropagator(), W3CBaggagePropagator()]
    context = otel.get_current()
    for number in range(members):
        context = baggage.set_baggage(f"k{number}", "v", context)
    token = otel.attach(context)
    try:
        for own in (CompositePropagator(others), CompositePropagator([*others, AntipodePropagator()])):
            uninstrument()
            propagate.set_global_textmap(own)
            with antipode.scope():
                antipode.append(BEFORE)
                line = ",".join(f"k{number}=v" for number in range(members))
                hooked: dict[str, str] = {"baggage": line}
                inject_request(hooked, "b")
            for carrier in (hooked, injected()):
                assert carrier["uberctx-antipode"] == TEXT
                if members < 64:
                    assert carrier["baggage"] == f"{line},antipode={TEXT}"
                    assert "antipode-lineage" not in carrier
                else:
                    assert carrier["baggage"] == line
                    assert carrier["antipode-lineage"] == TEXT
    finally:
        otel.detach(token)


@pytest.mark.parametrize("listed", [[JaegerPropagator()], [JaegerPropagator(), W3CBaggagePropagator()]])
def test_beside_jaegers_propagator_it_speaks_that_format(listed: list[Any]) -> None:
    """PROP-7 to PROP-9, without one round them."""
    own = CompositePropagator([*listed, AntipodePropagator()])
    propagate.set_global_textmap(own)
    antipode.configure(trust="all")
    with antipode.scope():
        antipode.append(BEFORE)
        carrier: dict[str, str] = {}
        own.inject(carrier)
    assert carrier.pop("uberctx-antipode") == TEXT
    assert carrier == ({"baggage": f"antipode={TEXT}"} if len(listed) > 1 else {})


@pytest.mark.parametrize("order", ["last", "first"])
def test_listed_in_otel_propagators(order: str) -> None:
    """The entry point `antipode`: behind `baggage` it shares the header, before it it has its own. Never lost."""
    own = AntipodePropagator()
    others = [TraceContextTextMapPropagator(), W3CBaggagePropagator()]
    propagate.set_global_textmap(CompositePropagator([*others, own] if order == "last" else [own, *others]))
    token = otel.attach(baggage.set_baggage("tenant", "acme inc"))
    try:
        with antipode.scope():
            antipode.append(BEFORE)
            antipode.configure(trust="all")
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
    finally:
        otel.detach(token)
    if order == "last":
        assert carrier == {"baggage": f"tenant=acme+inc,antipode={TEXT}"}
    else:
        assert carrier == {"baggage": "tenant=acme+inc", "antipode-lineage": TEXT}
    found = propagate.extract(carrier)
    assert "antipode" not in baggage.get_all(found)


def test_going_round_a_list_that_has_it_already_writes_once() -> None:
    propagate.set_global_textmap(CompositePropagator([W3CBaggagePropagator(), AntipodePropagator()]))
    assert injected() == {"baggage": f"antipode={TEXT}"}


@pytest.mark.parametrize("wrapping", ["restored", "listed"])
def test_going_round_itself_writes_once(wrapping: str) -> None:
    """An application that keeps the global propagator and sets it again, alone or in a list of its own."""
    instrument()
    kept = propagate.get_global_textmap()
    uninstrument()
    propagate.set_global_textmap(kept if wrapping == "restored" else CompositePropagator([kept]))
    assert injected(baggage.set_baggage("tenant", "acme")) == {"baggage": f"tenant=acme,antipode={TEXT}"}


def test_instrumenting_again_follows_the_application() -> None:
    instrument()
    first = propagate.get_global_textmap()
    instrument()
    assert propagate.get_global_textmap() is first
    other = CompositePropagator([W3CBaggagePropagator()])
    propagate.set_global_textmap(other)
    instrument()
    assert propagate.get_global_textmap() is not other
    assert "baggage" in propagate.get_global_textmap().fields
    uninstrument()
    assert propagate.get_global_textmap() is other


@pytest.mark.parametrize("trust", ["private", "all"])
@pytest.mark.parametrize("order", [None, "tracecontext,antipode", "tracecontext,baggage,antipode"])
@pytest.mark.parametrize("given", [{"antipode-lineage": TEXT}, {"baggage": f"antipode={TEXT}"}], ids=str)
def test_outside_any_scope_the_applications_own_lineage_is_not_overwritten(
    trust: str, order: str | None, given: dict[str, str], own_propagators: None
) -> None:
    """SCOPE-31: an outbox relay's."""
    antipode.configure(trust=trust)
    antipode.append(BEFORE)
    if order is None:
        instrument()
    else:
        named = {"tracecontext": TraceContextTextMapPropagator(), "baggage": W3CBaggagePropagator()}
        propagate.set_global_textmap(
            CompositePropagator([named.get(each) or AntipodePropagator() for each in order.split(",")])
        )
    carrier = dict(given)
    other: dict[str, str] = {}
    with approve("b"):
        propagate.inject(carrier)
        propagate.inject(other)
    assert read(carrier).texts == (TEXT,)
    assert read(other).texts == ("1~_.i",)
