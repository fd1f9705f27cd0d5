"""Propagation (spec PROP): the four functions, the propagator, limits, pending writes, modes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import antipode
import pytest
from antipode import PendingWriteError, WriteId
from antipode.carriers import Formats, is_public, read, rewrite, with_member, without_member
from antipode.pending import PendingWrite
from antipode.propagation import (
    AntipodePropagator,
    approve,
    arrived,
    extract_request,
    extract_response,
    inject_request,
    inject_response,
    instrument,
    uninstrument,
)
from antipode.propagator import application_formats
from antipode.scope import activate
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.jaeger import JaegerPropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from scopes import Counts

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
AFTER = WriteId.position("user-acl", EPOCH, 57)
TEXT = antipode.Lineage([BEFORE]).serialize()
ANSWER = antipode.Lineage([AFTER]).serialize()


@pytest.fixture(autouse=True)
def _global_propagator() -> Iterator[None]:
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()]))
    yield
    uninstrument()
    propagate.set_global_textmap(before)


def sent(host: str = "b", **headers: str) -> dict[str, str]:
    """What a request to `host` has for headers when it leaves."""
    inject_request(headers, host)
    return headers


def test_there_and_back_by_hand() -> None:
    with antipode.scope() as mine:
        antipode.append(BEFORE)
        request = sent()
        assert request == {"baggage": f"antipode={TEXT}"}
        response: dict[str, str] = {}
        with extract_request(request, "10.0.0.1") as theirs:
            assert theirs is antipode.current_scope()
            assert theirs.lineage == mine.lineage
            antipode.append(AFTER)
            inject_response(response)
        assert response == {"antipode-lineage": ANSWER}
        assert antipode.current_scope() is mine
        extract_response(response, "b")
        assert mine.lineage == antipode.Lineage([BEFORE, AFTER])


def test_a_response_carries_only_what_was_added() -> None:
    """PROP-13."""
    response: dict[str, str] = {}
    with extract_request({"baggage": f"antipode={TEXT}"}):
        inject_response(response)
    assert response == {}


def test_the_scope_ends_with_the_request() -> None:
    with extract_request({}) as scope:
        pass
    assert scope.closed


def test_mappings_with_lists_bytes_and_pairs_are_read() -> None:
    for headers in (
        {"Baggage": ["user=7", f"antipode={TEXT}"]},
        [(b"baggage", b"user=7"), (b"BAGGAGE", f"antipode={TEXT}".encode())],
        {"antipode-lineage": [TEXT, TEXT]},
        [("antipode-lineage", f" {TEXT} ;x=1")],
    ):
        with extract_request(headers) as scope:
            assert scope.lineage == antipode.Lineage([BEFORE])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["baggage", "antipode-lineage", "uberctx-antipode", "x-forwarded-for", "forwarded", "a"]),
            st.one_of(st.text(max_size=60), st.binary(max_size=60), st.just(f"antipode={TEXT}"), st.just(TEXT)),
        ),
        max_size=5,
    )
)
def test_no_header_raises(headers: list[tuple[str, Any]]) -> None:
    """PROP-12, PROP-23."""
    for trust in ("private", "all", "none"):
        antipode.configure(trust=trust)
        with extract_request(headers, "127.0.0.1") as scope:
            extract_response(headers, "b")
            scope.lineage.serialize()
            try:
                read(headers)
            finally:
                out: dict[str, str] = {}
                inject_request(out, "b")


def test_what_cannot_be_read_is_incomplete_and_not_empty(caplog: pytest.LogCaptureFixture) -> None:
    """WIRE-25, WIRE-29: and it does not come home with the response, which brings what the callee added."""
    response: dict[str, str] = {}
    with caplog.at_level(logging.WARNING, "antipode"):
        with extract_request([("baggage", f"antipode=hello,antipode={TEXT}")], "10.0.0.7") as scope:
            assert scope.lineage == antipode.Lineage([BEFORE])
            assert not scope.lineage.is_complete()
            assert [gap.reason for gap in scope.gaps] == ["malformed"]
            inject_response(response)
    assert response == {}
    assert "10.0.0.7" in caplog.text


def test_a_malformed_response_leaves_the_caller_incomplete() -> None:
    with antipode.scope() as scope:
        extract_response({"antipode-lineage": "hello"}, "b")
        assert not scope.lineage.is_complete()


def test_a_response_outside_any_scope_is_counted_as_orphan(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "antipode"):
        extract_response({"antipode-lineage": TEXT}, "b")
    assert "outside any scope" in caplog.text


def test_a_response_from_a_host_that_is_not_ours_is_dropped() -> None:
    with antipode.scope() as scope:
        extract_response({"antipode-lineage": TEXT}, "api.example.com")
        assert not scope.lineage
        assert [gap.reason for gap in scope.gaps] == ["untrusted"]
        assert scope.lineage.is_complete()


def test_a_response_does_not_bring_back_what_was_removed() -> None:
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        antipode.remove("blog-posts")
        extract_response({"antipode-lineage": antipode.Lineage([BEFORE, AFTER]).serialize()}, "b")
        assert scope.lineage == antipode.Lineage([AFTER])


# Where it stands


def test_the_applications_members_stay_as_they_are() -> None:
    """PROP-8, PROP-10."""
    with antipode.scope():
        antipode.append(BEFORE)
        assert sent(baggage=f"z=a+b;p=1, antipode={ANSWER},a=%20") == {"baggage": f"z=a+b;p=1,a=%20,antipode={TEXT}"}


def test_ours_goes_into_its_own_header_where_it_would_displace() -> None:
    """PROP-9: by length and by number."""
    with antipode.scope():
        antipode.append(BEFORE)
        for full in ("a=" + "x" * 8150, ",".join(f"k{n}=v" for n in range(64))):
            assert sent(baggage=full) == {"baggage": full, "antipode-lineage": TEXT}
            assert with_member(full, TEXT) is None


def test_nothing_leaves_for_nothing() -> None:
    """WIRE-31."""
    assert sent() == {}
    with antipode.scope() as scope:
        assert sent() == {}
        scope.mark_incomplete("rights", "blog-posts")
        assert sent() == {"baggage": "antipode=1~_.i.blog-posts"}


def test_a_host_that_is_not_ours_gets_no_lineage_not_even_an_old_one() -> None:
    """TRUST-26."""
    old = {"baggage": f"a=1,antipode={ANSWER}", "antipode-lineage": ANSWER, "uberctx-antipode": ANSWER}
    for inside in (True, False):
        with antipode.scope() if inside else nullcontext():
            assert sent("api.example.com", **old) == {"baggage": "a=1"}
    assert sent("b", **old) == old  # no scope: the application's own affair, to one of ours


def test_the_budget_is_the_injected_copys_affair() -> None:
    """WIRE-33, WIRE-36."""
    antipode.configure(budget_bytes=60)
    with antipode.scope() as scope:
        antipode.append(BEFORE, AFTER)
        assert sent() == {"baggage": f"antipode={ANSWER}~_.i.blog-posts"}
        assert scope.lineage.is_complete()
        assert len(scope.lineage) == 2


@pytest.mark.parametrize("budget", [60, 3000, 4087])
def test_what_passes_every_budget_is_counted_too(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """WIRE-36, WIRE-37: though `serialize` leaves it out by itself, whatever the budget."""
    counts = Counts(monkeypatch)
    antipode.configure(budget_bytes=budget)
    with antipode.scope():
        antipode.append(AFTER, *(WriteId("big", f"{number:050}", antipode.Ordered("", 1)) for number in range(100)))
        assert sent() == {"baggage": f"antipode={ANSWER}~_.i.big"}
    assert counts.of("antipode.lineage.incomplete", reason="budget", store="big") == 1


def test_a_sealed_text_keeps_to_the_budget() -> None:
    """WIRE-32: the seal counts."""
    antipode.configure(budget_bytes=110, keys={"one": b"k" * 32})
    with antipode.scope():
        antipode.append(BEFORE, AFTER)
        text = sent()["baggage"].removeprefix("antipode=")
    assert len(text) <= 110
    assert "~_.i.blog-posts" in text
    assert "~_.h.one." in text


def test_a_pending_write_marks_the_copy_that_leaves() -> None:
    """SCOPE-16."""
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        write = PendingWrite("user-acl", scope.lineage)
        scope.begin(write)
        assert sent() == {"baggage": f"antipode={TEXT}~_.i.user-acl"}
        scope.end(write)
        assert sent() == {"baggage": f"antipode={TEXT}"}
        scope.begin(write)
        antipode.configure(on_pending="raise")
        with pytest.raises(PendingWriteError, match="user-acl"):
            sent()


def test_switched_off_a_lineage_is_forwarded_and_nothing_goes_back() -> None:
    """PROP-26."""
    antipode.configure(mode="off")
    response: dict[str, str] = {}
    with extract_request({"baggage": f"antipode={TEXT}"}) as scope:
        assert sent() == {"baggage": f"antipode={TEXT}"}
        assert sent("api.example.com") == {}
        extract_response({"antipode-lineage": ANSWER}, "b")
        assert scope.lineage == antipode.Lineage([BEFORE])
        scope.append(AFTER)
        inject_response(response)
    assert response == {}


def test_a_public_response_carries_none() -> None:
    """PROP-16: also where the application copied one in."""
    with extract_request({}):
        antipode.append(AFTER)
        response = {"Cache-Control": "max-age=60, PUBLIC"}
        inject_response(response)
        assert response == {"Cache-Control": "max-age=60, PUBLIC"}
    assert is_public(["s-maxage=1", "public"])
    assert not is_public(["private", "x-public=1", "publicity"])


def test_what_is_written_after_the_header_left_is_late() -> None:
    """PROP-16: asked again, only what is new comes, as in a trailer."""
    with extract_request({}) as scope:
        antipode.append(BEFORE)
        first: dict[str, str] = {}
        inject_response(first)
        assert scope.sent
        antipode.append(AFTER)
        trailer: dict[str, str] = {}
        inject_response(trailer)
    assert first == {"antipode-lineage": TEXT}
    assert trailer == {"antipode-lineage": ANSWER}


# The propagator


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
        text = sent()["baggage"]
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
    token = otel.attach(context)
    try:
        with antipode.scope(), approve("b"):
            antipode.append(BEFORE)
        with antipode.scope():
            antipode.append(BEFORE)
            with approve("b"):
                carrier: dict[str, str] = {}
                propagate.inject(carrier)
    finally:
        otel.detach(token)
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
        assert sent() == {"antipode-lineage": TEXT}
        instrument()
        assert application_formats() == Formats(baggage=False, jaeger=False)
        with approve("b"):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
        assert carrier == {"antipode-lineage": TEXT}


def test_jaegers_format_is_read_and_written() -> None:
    """PROP-7."""
    propagate.set_global_textmap(JaegerPropagator())
    span = trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=False))
    with antipode.scope():
        antipode.append(BEFORE)
        assert sent() == {"uberctx-antipode": TEXT}
        instrument()
        with trace.use_span(span), approve("b"):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
    assert carrier.pop("uberctx-antipode") == TEXT
    assert list(carrier) == ["uber-trace-id"]
    with extract_request({"uberctx-antipode": TEXT.replace("~", "%7E")}) as scope:
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
                with approve("b"):
                    injected: dict[str, str] = {}
                    propagate.inject(injected)
            for carrier in (hooked, injected):
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
    with antipode.scope(), approve("b"):
        pass
    with antipode.scope():
        antipode.append(BEFORE)
        with approve("b"):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
    assert carrier == {"baggage": f"antipode={TEXT}"}


@pytest.mark.parametrize("wrapping", ["restored", "listed"])
def test_going_round_itself_writes_once(wrapping: str) -> None:
    """An application that keeps the global propagator and sets it again, alone or in a list of its own."""
    instrument()
    kept = propagate.get_global_textmap()
    uninstrument()
    propagate.set_global_textmap(kept if wrapping == "restored" else CompositePropagator([kept]))
    token = otel.attach(baggage.set_baggage("tenant", "acme"))
    try:
        with antipode.scope():
            antipode.append(BEFORE)
            with approve("b"):
                carrier: dict[str, str] = {}
                propagate.inject(carrier)
    finally:
        otel.detach(token)
    assert carrier == {"baggage": f"tenant=acme,antipode={TEXT}"}


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


# Text


@given(st.text(alphabet="ab=,; %65antipode~1", max_size=60))
def test_taking_ours_out_leaves_the_rest_as_it_was(line: str) -> None:
    rest = without_member(line)
    assert without_member(rest) == rest
    kept = [member for member in line.split(",") if member in rest.split(",")]
    assert [member.strip(" \t") for member in rest.split(",") if member.strip(" \t")] == [
        member.strip(" \t") for member in kept if member.strip(" \t")
    ]
    line_with = with_member(line, TEXT)
    assert line_with is not None
    assert read({"baggage": line_with}).texts == (TEXT,)


@given(st.booleans(), st.booleans(), st.sampled_from([None, TEXT]), st.sampled_from([None, f"a=1,antipode={ANSWER}"]))
def test_rewriting_leaves_one_lineage_or_none(w3c: bool, jaeger: bool, text: str | None, old: str | None) -> None:
    headers: dict[str, str | None] = {"baggage": old, "antipode-lineage": ANSWER, "uberctx-antipode": ANSWER}
    headers |= rewrite(headers.get, text, Formats(w3c, jaeger))
    found = read({name: value for name, value in headers.items() if value is not None})
    assert found.texts == (() if text is None else (text,))
