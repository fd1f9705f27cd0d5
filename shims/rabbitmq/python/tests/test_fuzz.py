"""Whatever a header holds, a consumer goes on: nothing that came in raises, and nothing unreadable looks empty."""

from __future__ import annotations

import queue as queues
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import antipode
import antipode_rabbitmq
from antipode import EMPTY, Lineage, MalformedLineageError, Trust, configure, current_scope
from antipode.messages import HEADER, JMS_HEADER
from antipode_rabbitmq.marks import MARK_HEADER
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rabbit_regions import Consumer, Region, delivered, properties

NAMES = st.sampled_from(
    [HEADER, "antipode_lineage", "Antipode-Lineage", "ANTIPODE-LINEAGE", "antipode-mark", "x-other"]
)
LINEAGES = st.sampled_from(
    ["1", "1~a..e.1", "1~a.k._.m", "1~_.i", "1~a..e.1~_.x.y", " 1~a..e.1 ", "1~a..e.1;p=1", "1~a..e.1,1~b..e.2"]
)
ALMOST = st.text(alphabet="1~._-aAZ0%;, \t\n", max_size=40)
SCALARS: st.SearchStrategy[Any] = st.one_of(
    LINEAGES,
    ALMOST,
    st.text(max_size=30),
    st.binary(max_size=30),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.none(),
    st.integers(0, 10**6).map(lambda n: Decimal(n) / 100),
    st.integers(0, 2**31).map(lambda n: datetime.fromtimestamp(n, UTC)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
HEADERS = st.dictionaries(NAMES | st.text(max_size=8), VALUES, max_size=4)
FUZZ = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)


def opened(channel: Any, headers: Any) -> Lineage:
    """The lineage of the scope that such a message opens."""
    with antipode_rabbitmq.scope_of(delivered(), properties(headers=headers), channel=channel, auto_ack=True) as scope:
        return scope.lineage


@FUZZ
@given(headers=HEADERS | st.none() | st.text(max_size=5) | st.lists(SCALARS, max_size=2), stamped=st.booleans())
@example(headers={HEADER: "1~" + "a" * 5000}, stamped=False)
@example(headers={HEADER: "\ud800"}, stamped=False)
@example(headers={b"\xff": 1, HEADER: b"\xff"}, stamped=True)
@example(headers={1: 2, None: 3}, stamped=False)
def test_no_headers_make_a_scope_fail(a: Region, headers: Any, stamped: bool) -> None:
    channel = antipode_rabbitmq.wrap(a.own, store="notifications", stamped=stamped)
    lineage = opened(channel, headers)
    assert Lineage.deserialize(lineage.serialize()) == lineage


@FUZZ
@given(value=VALUES)
def test_what_cannot_be_read_is_incomplete_and_never_empty(a: Region, value: Any) -> None:
    """Against a reader of its own: the strict parser over the value as it stands."""
    channel = antipode_rabbitmq.wrap(a.own, store="notifications")
    lineage = opened(channel, {HEADER: value})
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if value is None:
        assert lineage == EMPTY
        return
    strict = strictly(text) if isinstance(text, str) else None
    if strict is not None:
        assert lineage == strict
        assert lineage.incomplete == strict.incomplete
    elif not lineage and lineage.is_complete():  # looks empty: then each of its items is, once made strict
        items = [unquote(item.partition(";")[0]).strip(" \t\r\n") for item in str(text).split(",")]
        assert [item for item in items if item]
        assert all(strictly(item) == EMPTY for item in items if item)


def strictly(text: str) -> Lineage | None:
    """What the strict parser reads; None where it refuses."""
    try:
        return Lineage.deserialize(text)
    except MalformedLineageError:
        return None


@FUZZ
@given(headers=HEADERS, trust=st.sampled_from(list(Trust)), edge=st.booleans())
def test_any_headers_can_be_published_again(a: Region, headers: Any, trust: Trust, edge: bool) -> None:
    """Nothing is changed in what the caller gave, and no header of the application is lost."""
    configure(trust=trust, edge=edge, keys={"k": b"0123456789abcdef"})
    sent: list[Any] = []
    plain = a.own
    plain.basic_publish = lambda exchange, key, body, given, mandatory: sent.append(given)
    try:
        channel = antipode_rabbitmq.wrap(plain, store="notifications")
        given_ = properties(headers=dict(headers))
        with antipode.scope():
            antipode.append(antipode.WriteId.position("blog", "0-1", 42))
            channel.basic_publish("", "q", b"", given_)
    finally:
        del plain.basic_publish
    assert given_.headers == headers
    (received,) = sent
    ours = {HEADER, JMS_HEADER, MARK_HEADER}
    rest = {name: value for name, value in headers.items() if name not in ours}
    assert {name: value for name, value in received.headers.items() if name not in ours} == rest
    if trust is not Trust.NONE and headers.get(HEADER) is None and JMS_HEADER not in headers:
        assert received.headers[HEADER].startswith("1~blog..0-1.42")


def test_a_consumer_survives_every_header_that_a_broker_delivers(a: Region) -> None:
    """The same over a real broker, in one consumer that must still be there at the end."""
    queue = a.queue()
    done: queues.Queue[Any] = queues.Queue()

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        done.put((body, current_scope()))
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback, prefetch=50) as consumer:

        @settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)
        @given(headers=st.dictionaries(NAMES, VALUES, max_size=3))
        def send(headers: Any) -> None:
            a.own.basic_publish("", queue, b"fuzz", properties(headers=headers))
            body, scope = done.get(timeout=10)
            assert body == b"fuzz"
            assert scope is not None

        send()
        a.own.basic_publish("", queue, b"last", properties(headers={HEADER: "1~blog..0-1.42"}))
        body, scope = done.get(timeout=10)
        assert body == b"last"
        assert scope.lineage.serialize() == "1~blog..0-1.42"
    assert not consumer.errors
