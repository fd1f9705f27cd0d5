"""Which writes of a key prove one another, and which stand side by side (SHIM-52, SHIM-53)."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._store.hybrid_clock import HybridClock
from antipode_s3.chains import Chains, is_chain
from botocore.exceptions import ConnectionClosedError
from s3_regions import BUCKET, STORE, Images, new_key, until


@contextmanager
def before_the_first_put(client: Any, act: Callable[[], None]) -> Iterator[None]:
    """Acts when a put of this client has its version, and has not been sent."""
    left = [act]

    def between(**_: Any) -> None:
        if left:
            left.pop()()

    client.meta.events.register_first("before-call.s3.PutObject", between)
    try:
        yield
    finally:
        client.meta.events.unregister("before-call.s3.PutObject", between)


def entries(lineage: Lineage) -> list[Ordered]:
    return [each.version for each in lineage.of_store(STORE) if isinstance(each.version, Ordered)]


def put(client: Any, key: str, body: bytes) -> None:
    client.put_object(Bucket=BUCKET, Key=key, Body=body)


def test_writes_at_once_stand_side_by_side(images: Images) -> None:
    """SHIM-52: of two that were under way at once the one with the lesser counter may be the store's last."""
    key = new_key()

    def another() -> None:
        put(images.a, key, b"of the greater counter")
        until(lambda: images.body(key) == b"of the greater counter")
        images.lab.partition("b1", mode="silent")

    with antipode.scope() as opened, before_the_first_put(images.a, another):
        put(images.a, key, b"of the lesser one")
        lineage = opened.lineage
    assert len(entries(lineage)) == 2
    assert Lineage.deserialize(lineage.serialize()) == lineage
    assert images.body(key) == b"of the greater counter"
    assert not images.judge(lineage, 0.5).satisfied
    images.lab.heal(wait=False)
    assert images.judge(lineage).complete
    assert images.body(key) == b"of the lesser one"


def test_scopes_that_know_nothing_of_each_other_are_joined_with_both_writes(images: Images) -> None:
    """SHIM-52: of two clients' writes the store may have taken the one with the lesser counter last."""
    key, found = new_key(), []
    other = antipode_s3.wrap(images.lab.new_client("a"), STORE, bucket=BUCKET)

    def another() -> None:
        with antipode.scope() as opened:
            put(other, key, b"of the greater counter")
            found.append(opened.lineage)
        until(lambda: images.body(key) == b"of the greater counter")
        images.lab.partition("b1", mode="silent")

    with antipode.scope() as opened, before_the_first_put(images.a, another):
        put(images.a, key, b"of the lesser one")
        found.append(opened.lineage)
    joined = found[0] | found[1]
    assert len(entries(joined)) == 2
    assert not images.judge(joined, 0.5).satisfied
    images.lab.heal(wait=False)
    assert images.judge(joined).complete
    assert images.body(key) == b"of the lesser one"


def test_what_one_client_writes_one_after_the_other_is_one_entry(images: Images) -> None:
    """SHIM-53: a greater counter of a chain proves a lesser one, before the versions behind it are looked through."""
    key = new_key()
    with antipode.scope() as opened:
        for number in range(5):
            put(images.a, key, b"%d" % number)
        images.a.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": key})
        assert len(entries(opened.lineage)) == 1
        put(images.a, new_key(), b"v")
        first, second = entries(opened.lineage)
    assert first.epoch != second.epoch, "chains are of one key"
    assert images.judge(opened.lineage).complete


def test_after_a_lost_answer_a_write_begins_a_chain(images: Images) -> None:
    """SHIM-53: what was sent before may still be done, behind it."""
    key = new_key()
    client = antipode_s3.wrap(images.lab.new_client("a"), STORE, bucket=BUCKET)

    def lose(**_: Any) -> None:
        raise ConnectionClosedError(endpoint_url="lost")

    with antipode.scope() as opened:
        put(client, key, b"first")
        [first] = entries(opened.lineage)
        client.meta.events.register_first("before-send.s3.PutObject", lose)
        with pytest.raises(ConnectionClosedError):
            put(client, key, b"lost")
        client.meta.events.unregister("before-send.s3.PutObject", lose)
        put(client, key, b"second")
        assert len({first, *entries(opened.lineage)}) == 2


@contextmanager
def clock_of(images: Images, clock: HybridClock) -> Iterator[None]:
    """Write by another clock for a while."""
    shim = images.shim
    own, shim.clock = shim.clock, clock
    try:
        yield
    finally:
        shim.clock = own


def put_ahead(images: Images, key: str) -> Lineage:
    """Put by another client, whose machine's clock is ten minutes ahead."""
    client = antipode_s3.wrap(images.lab.new_client("a"), STORE, bucket=BUCKET)
    with clock_of(images, HybridClock(time_ns=lambda: time.time_ns() + 600 * 10**9)), antipode.scope() as opened:
        put(client, key, b"of a clock ahead")
        return opened.lineage


def test_a_version_above_a_refused_one_is_of_no_other_ones_chain(images: Images) -> None:
    """SHIM-28, SHIM-53: the client's next write has a lesser counter, and comes behind it."""
    key = new_key()
    ahead = put_ahead(images, key)
    with antipode.scope() as opened:
        opened.merge(ahead)
        put(images.a, key, b"above it")
        above = opened.lineage
    until(lambda: images.body(key) == b"above it")
    images.lab.partition("b1", mode="silent")
    lineage = images.put(key, b"of our own clock")
    assert entries(lineage)[0].counter < max(each.counter for each in entries(above)), "else nothing is tested"
    assert not images.judge(lineage, 0.5).satisfied
    images.lab.heal(wait=False)
    assert images.judge(lineage).complete
    assert images.body(key) == b"of our own clock"


def test_two_writes_above_one_refused_version_have_versions_of_their_own(images: Images) -> None:
    """SHIM-29, SHIM-53: scopes that know nothing of each other hold the same refused version."""
    key = new_key()
    ahead, found = put_ahead(images, key), []
    for body in (b"one", b"other"):
        with antipode.scope() as opened:
            opened.merge(ahead)
            put(images.a, key, body)
            found.append(opened.lineage)
        if body == b"one":
            until(lambda: images.body(key) == b"one")
            images.lab.partition("b1", mode="silent")
    assert not images.judge(found[1], 0.5).satisfied
    images.lab.heal(wait=False)
    assert images.judge(found[1]).complete
    assert images.body(key) == b"other"


def test_a_version_is_above_the_greatest_refused_one(images: Images) -> None:
    """SHIM-28: of those of its key that the scope depends on, whatever order they stand in."""
    counters = [HybridClock(time_ns=lambda: time.time_ns() + 600 * 10**9).next() for _ in range(4)]
    for given in (counters, counters[::-1]):
        writes = [WriteId(STORE, b"k", Ordered(f"{at}a", counter)) for at, counter in enumerate(given)]
        counter, is_greater = images.shim.next_counter(b"k", Lineage(writes))
        assert is_greater
        assert counter > max(counters)


def test_a_counter_is_drawn_in_its_turn(images: Images) -> None:
    """SHIM-53: else another write may take the turn between, with a greater counter, and be answered first."""
    key = new_key()
    between: list[Any] = []
    binding = images.a._antipode[BUCKET]
    own = binding.next_counter

    def preempt(*args: Any) -> Any:
        drawn = own(*args)
        if not between:
            between.append(None)
            with antipode.scope() as opened:
                put(images.a, key, b"of the greater counter")
                between[0] = opened.lineage
        return drawn

    binding.next_counter = preempt
    try:
        lineage = images.put(key, b"of the lesser one")
    finally:
        del binding.next_counter
    [first], [last] = entries(lineage), entries(between[0])
    assert first.counter < last.counter, "else nothing is tested"
    assert first.epoch != last.epoch


def test_what_could_not_be_sent_ends_its_turn(images: Images) -> None:
    """SHIM-53: the write after it goes on with the chain."""
    key = new_key()
    with antipode.scope() as opened:
        put(images.a, key, b"first")
        with pytest.raises(AttributeError):
            images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata=["none"])
        put(images.a, key, b"second")
        assert len(entries(opened.lineage)) == 1


def test_turns() -> None:
    """SHIM-53"""
    chains = Chains()
    first = chains.turn(b"k")
    meanwhile = chains.turn(b"k")
    other = chains.turn(b"other")
    assert len({first.name, meanwhile.name, other.name}) == 3
    meanwhile.end(certain=True)
    assert chains.turn(b"k").name not in {first.name, meanwhile.name}
    first.end(certain=True)
    last = chains.turn(b"k")
    assert last.name == first.name
    last.end(certain=False)
    assert chains.turn(b"k").name != first.name
    assert all(is_chain(turn.name) for turn in (first, meanwhile, other))


def test_a_turn_that_ends_between_has_changed_the_chain() -> None:
    """SHIM-53: nobody knows the outcome of a write that ends just as the next one begins."""
    chains = Chains()
    first = chains.turn(b"k")

    class UnderWay(dict[bytes, object]):
        def setdefault(self, key: bytes, mine: Any) -> Any:  # type: ignore[override]
            first.end(certain=False)
            return super().setdefault(key, mine)

    chains._under_way = UnderWay(chains._under_way)
    assert chains.turn(b"k").name != first.name


def test_a_child_has_chains_of_its_own() -> None:
    """SHIM-53: parent and child write side by side."""
    chains = Chains()
    turn = chains.turn(b"k")
    turn.end(certain=True)
    context = multiprocessing.get_context("fork")
    names = context.SimpleQueue()
    child = context.Process(target=_tell_name, args=(chains, names))
    child.start()
    assert names.get() != turn.name
    child.join(60)


def _tell_name(chains: Chains, names: Any) -> None:
    names.put(chains.turn(b"k").name)
