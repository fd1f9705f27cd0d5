"""`antipode.memory` as a store of objects, with tombstones or with opaque versions (spec SHIM-10, SHIM-31, SHIM-32)."""

from __future__ import annotations

from typing import Literal

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Opaque, Ordered, Verdict, WriteId


def stored(versions: Literal["position", "object", "opaque"]) -> tuple[antipode.memory.Store, antipode.memory.Client]:
    store = antipode.memory.Store("s", versions=versions)
    store.client("b")
    return store, store.client("a")


def written(client: antipode.memory.Client, key: str, value: str | None = "v") -> WriteId:
    with antipode.scope() as scope:
        client.delete(key) if value is None else client.set(key, value)
        [write_id] = scope.lineage
        return write_id


def verdict(*ids: WriteId, timeout: float = 0.05) -> Verdict:
    result = antipode.barrier(Lineage(ids), timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    return result.stores["s"].verdict


def test_object_versions_grow_across_deletes_and_promotions() -> None:
    store, a = stored("object")
    versions = []
    for value in ("1", "2", None, "3"):
        versions.append(written(a, "k", value).version)
    store.promote("b", lose=1)
    versions.append(written(store.client("b"), "k", "4").version)
    assert all(isinstance(version, Ordered) and version.epoch == "" for version in versions)
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions)


def test_a_tombstone_is_seen_and_a_deletion_of_nothing_is_none() -> None:
    store, a = stored("object")
    first = written(a, "k")
    store.freeze("b")
    gone = written(a, "k", None)
    assert verdict(first) is Verdict.VISIBLE
    assert verdict(gone) is Verdict.TIMED_OUT
    assert written(a, "k", None) == gone, "it was deleted already: what the second deletion depends on is the first"
    with antipode.scope() as scope:
        a.delete("never there")
        assert not scope.lineage
        assert not scope.pending
    store.heal("b")
    assert verdict(first, gone, timeout=5) is Verdict.VISIBLE
    assert store.look("b", "k") is None


def test_objects_are_found_by_their_hashed_keys() -> None:
    antipode.configure(hash_keys=True)
    for versions in ("object", "opaque"):
        with antipode.testing.isolated():
            antipode.configure(hash_keys=True)
            _, a = stored(versions)
            write_id = written(a, "private")
            assert write_id.key.startswith(b"\x00h-")
            assert verdict(write_id, timeout=5) is Verdict.VISIBLE


def test_opaque_versions_do_not_compare() -> None:
    _, a = stored("opaque")
    first, second = written(a, "k", "1"), written(a, "k", "2")
    assert isinstance(first.version, Opaque)
    assert verdict(second, timeout=5) is Verdict.VISIBLE
    assert verdict(first) is Verdict.TIMED_OUT, "another one is there, earlier or later"
    gone = written(a, "k", None)
    assert verdict(gone, timeout=5) is Verdict.UNPROVEN
    assert verdict(second) is Verdict.TIMED_OUT


def test_what_another_kind_of_store_gave_is_unproven() -> None:
    position = WriteId.position("s", "0123456789abcdef", 1)
    ordered, opaque = WriteId("s", b"k", Ordered("", 1)), WriteId("s", b"k", Opaque("m"))
    for versions, foreign in (
        ("position", [ordered, opaque]),
        ("object", [position, opaque, WriteId("s", b"k", Ordered("e", 1))]),
        ("opaque", [position, ordered]),
    ):
        with antipode.testing.isolated():
            stored(versions)  # type: ignore[arg-type]
            assert [verdict(write_id, timeout=5) for write_id in foreign] == [Verdict.UNPROVEN] * len(foreign)


def test_a_replica_that_follows_a_replica_and_an_answer_that_is_lost() -> None:
    store = antipode.memory.Store("s", regions=["a", "b", "c"])
    a = store.client("a")
    store.repoint("c", "b")
    store.freeze("b")
    a.set("k", "v")
    assert store.look("c", "k") is None, "it gets what b has"
    store.heal("b")
    assert store.look("c", "k") == b"v"
    with pytest.raises(antipode.ConfigurationError, match="circle"):
        store.repoint("b", "c")
    store.lose_next_answer()
    with antipode.scope() as scope:
        with pytest.raises(ConnectionError):
            a.set("l", "v")
        assert scope.lineage.incomplete == {"s"}
    assert store.look("a", "l") == b"v"
    with pytest.raises(antipode.ConfigurationError, match="position, object or opaque"):
        antipode.memory.Store("t", versions="other")  # type: ignore[arg-type]
