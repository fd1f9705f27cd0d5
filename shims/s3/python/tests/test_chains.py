"""Which writes of a key prove one another, and which stand side by side (SHIM-52, SHIM-53)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode import Lineage, Ordered
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


def test_a_child_has_chains_of_its_own() -> None:
    """SHIM-53: parent and child write side by side."""
    chains = Chains()
    turn = chains.turn(b"k")
    turn.end(certain=True)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_name_of, (chains,)) != turn.name


def _name_of(chains: Chains) -> str:
    return chains.turn(b"k").name
