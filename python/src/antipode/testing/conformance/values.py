"""Cases about objects and their versions (spec SHIM-6 to SHIM-10, SHIM-16, BAR-11)."""

from __future__ import annotations

from antipode._facade.configuration import configure
from antipode._model.verdict import Verdict
from antipode._model.wire import hashed_key
from antipode._model.write_id import Opaque, Ordered
from antipode._scope.operations import scope
from antipode.testing.conformance.cases import Cases, only
from antipode.testing.under_test import StoreUnderTest


class Values(Cases):
    """Writing, overwriting, deleting, creating anew."""

    def test_write(self, store: StoreUnderTest) -> None:
        """A write is recorded, and everywhere in the region once the barrier has passed."""
        key = store.new_key()
        lineage = store.written(key, "v")
        assert lineage.is_complete(), "the shim could not say which version the write has"
        assert lineage.of_store(store.name)
        assert store.judge(lineage).complete
        assert store.shows(key, "v")

    def test_declared_versions(self, store: StoreUnderTest) -> None:
        """The versions that writes get are of the kind that the shim declares (SHIM-18): never objects beside
        positions, whose counters would need one clock (LIN-5)."""
        declared = store.capabilities.versions
        for write_id in store.written(store.new_key()).of_store(store.name):
            assert isinstance(write_id.version, Opaque if declared == "opaque" else Ordered)
            assert write_id.is_position == (declared == "position")

    @only("object", "opaque")
    def test_hashed_keys(self, store: StoreUnderTest) -> None:
        """With `hash_keys` no key leaves, and writes are waited for all the same (SHIM-21)."""
        configure(hash_keys=True)
        key = store.new_key()
        store.partition(store.near)
        lineage = store.written(key, "v")
        for write_id in lineage.of_store(store.name):
            assert write_id.key == hashed_key(write_id.key), f"{write_id.key!r} is not hashed"
        assert not store.judge(lineage, store.brief).satisfied
        store.heal(store.near)
        assert store.judge(lineage).satisfied
        assert store.shows(key, "v")

    @only(queues=False)
    def test_overwrite(self, store: StoreUnderTest) -> None:
        """The second version is waited for, and is none that was there before."""
        key = store.new_key()
        first = store.written(key, "1")
        assert store.judge(first).satisfied
        second = store.written(key, "2")
        assert not second <= first
        assert store.judge(second).satisfied
        assert store.shows(key, "2")

    @only(queues=False)
    def test_old_version(self, store: StoreUnderTest) -> None:
        """A replica that has the key with an older version has not got the write (BAR-11)."""
        key = store.new_key()
        assert store.judge(store.written(key, "1")).satisfied
        store.partition(store.near)
        second = store.written(key, "2")
        assert not store.judge(second, store.brief).satisfied
        assert store.look(key, store.near) == "1", "the partition does not part"
        store.heal(store.near)
        assert store.judge(second).satisfied
        assert store.shows(key, "2")

    @only("position", "object", queues=False)
    def test_superseded(self, store: StoreUnderTest) -> None:
        """A version that a replica never showed is visible where a newer one of the key is (BAR-11)."""
        key = store.new_key()
        store.partition(store.near)
        first = store.written(key, "1")
        second = store.written(key, "2")
        assert not store.judge(first, store.brief).satisfied
        store.heal(store.near)
        assert store.judge(first | second).satisfied
        assert store.shows(key, "2")
        assert store.judge(first).satisfied

    @only("position")
    def test_absorbed_by_a_position(self, store: StoreUnderTest) -> None:
        """Later writes take the place of earlier ones, which are waited for all the same (LIN-8, LIN-11)."""
        keys = [store.new_key() for _ in range(10)]
        with scope() as opened:
            store.write(keys[0], "v")
            first = opened.lineage
            for key in keys[1:]:
                store.write(key, "v")
            lineage = opened.lineage
        assert len(lineage) == 1
        assert first <= lineage
        assert len(lineage.serialize()) <= len(first.serialize()) + 5
        assert store.judge(lineage).satisfied
        for key in keys:
            assert store.shows(key, "v")

    @only(queues=False)
    def test_delete(self, store: StoreUnderTest) -> None:
        """A deletion is waited for where the store keeps a trace of it, and else unproven (SHIM-16)."""
        key = store.new_key()
        assert store.judge(store.written(key, "v")).satisfied
        store.partition(store.near)
        with scope() as opened:
            store.delete(key)
            deleted = opened.lineage
        assert not store.judge(deleted, store.brief).satisfied
        assert store.look(key, store.near) == "v", "the partition does not part"
        store.heal(store.near)
        if store.capabilities.tombstones:
            assert store.judge(deleted).satisfied
            assert store.shows(key, None)
        else:
            assert deleted.incomplete or store.verdict(deleted, store.brief) is Verdict.UNPROVEN

    @only("position", "object", queues=False)
    def test_deleted_counts_as_seen(self, store: StoreUnderTest) -> None:
        """A version that was deleted since is visible where the deletion is (BAR-11)."""
        key = store.new_key()
        store.partition(store.near)
        written = store.written(key, "v")
        with scope() as opened:
            store.delete(key)
            deleted = opened.lineage
        assert not store.judge(written, store.brief).satisfied
        store.heal(store.near)
        if store.capabilities.tombstones:
            assert store.judge(written | deleted).satisfied
            assert store.judge(written).satisfied
            assert store.shows(key, None)
        else:  # its being gone may as well be its not being there yet
            assert not store.judge(written, store.brief).satisfied

    @only(queues=False)
    def test_recreate(self, store: StoreUnderTest) -> None:
        """Versions do not repeat when an object is deleted and created anew (SHIM-10)."""
        key = store.new_key()
        first = store.written(key, "1") | store.written(key, "2")
        assert store.judge(store.written(key, "3")).satisfied
        with scope() as opened:
            store.delete(key)
            deleted = opened.lineage
        if store.capabilities.tombstones:
            assert store.judge(deleted).satisfied
        else:
            store.until(lambda: store.shows(key, None), "the deletion arrives")
        store.partition(store.near)
        again = store.written(key, "1")
        assert not again <= first
        assert not again <= deleted
        assert not store.judge(again, store.brief).satisfied
        store.heal(store.near)
        assert store.judge(again).satisfied
        assert store.shows(key, "1")
        if store.capabilities.versions != "opaque":
            assert store.judge(first).satisfied, "superseded"

    @only(queues=False)
    def test_no_op_write(self, store: StoreUnderTest) -> None:
        """An operation that changed nothing is neither pending nor waited for in vain."""
        with scope() as opened:
            store.write_nothing()
            assert not opened.pending
            lineage = opened.lineage
        assert lineage.is_complete()
        assert store.judge(lineage).satisfied
