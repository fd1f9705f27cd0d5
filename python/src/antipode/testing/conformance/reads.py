"""Cases about what was read, and the lineages that rest beside it (spec SHIM-9, SHIM-12 to SHIM-14, SHIM-20)."""

from __future__ import annotations

import pytest

from antipode import memory
from antipode._engine.barrier import barrier
from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierTimeout, BarrierUnproven
from antipode._model.write_id import Ordered, WriteId
from antipode._scope.operations import scope
from antipode._scope.reading import reading
from antipode.testing.conformance.cases import Cases, only
from antipode.testing.under_test import StoreUnderTest

_FOREIGN = 300


class Reads(Cases):
    """Reading, in one region and on to another."""

    @only(queues=False)
    def test_a_read_adds_nothing(self, store: StoreUnderTest) -> None:
        """A read gives the native value and adds nothing to the scope, unless asked to (SHIM-12)."""
        key = store.new_key()
        assert store.judge(store.written(key, "v")).satisfied
        with scope() as opened:
            assert store.read(key, store.near) == "v"
            assert not opened.lineage
            with reading():
                store.read(key, store.near)
            assert not opened.lineage
            with reading(merge=True):
                store.read(key, store.near)
            assert opened.lineage.of_store(store.name)

    @only(queues=False)
    def test_reading_covers_the_value_read(self, store: StoreUnderTest) -> None:
        """What `reading()` collects makes a barrier elsewhere wait for the very value that was read (SHIM-13)."""
        key = store.new_key()
        store.partition(store.far)
        store.written(key, "v")
        store.until(lambda: store.shows(key, "v", store.near), "the write reaches the near replica")
        with reading() as seen:
            assert store.read(key, store.near) == "v"
        assert seen.lineage.of_store(store.name)
        assert not store.judge(seen.lineage, store.brief).satisfied
        store.heal(store.far)
        assert store.judge(seen.lineage).satisfied
        assert store.shows(key, "v")

    @only(queues=False)
    def test_reading_after(self, store: StoreUnderTest) -> None:
        """A read inside `reading(after=…)` waits for that lineage at its own server, or raises (BAR-51)."""
        key = store.new_key()
        assert store.judge(store.written(key, "1")).satisfied
        store.partition(store.near)
        second = store.written(key, "2")
        configure(timeout=store.brief)
        with reading(after=second), pytest.raises((BarrierTimeout, BarrierUnproven)):
            store.read(key, store.near)
        configure(timeout=store.patience)
        store.heal(store.near)
        with reading(after=second):
            assert store.read(key, store.near) == "2"

    @only(queues=False)
    def test_three_regions_two_stores(self, store: StoreUnderTest) -> None:
        """A writes here; B reads it and writes to another store; who reads that in C waits for what A wrote."""
        key = store.new_key()
        index = memory.Store("kit-index", regions=["a", "b", "c"])
        writer_b, reader_c = index.client("a"), index.client("c")
        store.partition(store.far)
        store.written(key, "v")
        store.until(lambda: store.shows(key, "v", store.near), "the write reaches region B")
        with scope():
            with reading(merge=True):
                assert store.read(key, store.near) == "v"
            writer_b.set("newest", key)
        with scope():
            with reading(merge=True):
                assert reader_c.get("newest") == key.encode()
            result = barrier(timeout=store.brief, on_timeout="proceed", on_unproven="proceed")
            assert not result.satisfied
            assert store.look(key, store.far) is None
            store.heal(store.far)
            assert barrier(timeout=store.patience).satisfied
            assert store.shows(key, "v")

    @only(queues=False)
    def test_a_lineage_rests_beside_the_value(self, store: StoreUnderTest) -> None:
        """Who reads a value depends on what its writer depended on (SHIM-9)."""
        if not store.capabilities.rest:
            pytest.skip("no lineages rest in this store (rest=())")
        key = store.new_key()
        posts = memory.Store("kit-posts", regions=["a", "b"])
        posts.client("b")
        posts.freeze("b")
        with scope() as opened:
            posts.client("a").set("p", "v")
            store.write(key, "v")
            mine = opened.lineage
        assert store.judge(mine).satisfied
        with reading() as seen:
            assert store.read(key, store.far) == "v"
        assert seen.lineage.of_store("kit-posts")
        result = barrier(seen.lineage, stores=["kit-posts"], timeout=0.1, on_timeout="proceed")
        assert not result.satisfied
        posts.heal("b")
        assert barrier(seen.lineage, stores=["kit-posts"], timeout=store.patience).satisfied

    @only(queues=False)
    def test_what_rests_outside_any_scope(self, store: StoreUnderTest) -> None:
        """Only the first write of a process depends on nothing, where no scope says on what (SCOPE-32)."""
        if not store.capabilities.rest:
            pytest.skip("no lineages rest in this store (rest=())")
        first, second = store.new_key(), store.new_key()
        store.write(first, "v")
        store.write(second, "v")
        for key, complete in ((first, True), (second, False)):
            store.until(lambda: store.shows(key, "v", store.near), "the write reaches the near replica")  # noqa: B023
            with reading() as seen:
                assert store.read(key, store.near) == "v"
            assert seen.lineage.is_complete() is complete
            assert store.judge(seen.lineage).satisfied

    @only(queues=False)
    def test_data_without_lineage(self, store: StoreUnderTest) -> None:
        """What was written without Antipode reads as it is, with the empty complete lineage beside it (SHIM-14)."""
        key = store.new_key()
        store.raw_write(key, "v")
        store.until(lambda: store.shows(key, "v"), "the write arrives")
        with reading() as seen:
            assert store.read(key, store.near) == "v"
        assert seen.lineage.is_complete()
        assert set(seen.lineage.stores) <= {store.name}
        assert store.judge(seen.lineage).satisfied

    @only(queues=False)
    def test_data_without_lineage_is_covered(self, store: StoreUnderTest) -> None:
        """Such a value is waited for elsewhere like any other: its identifier is its version or position (SHIM-13)."""
        key = store.new_key()
        store.partition(store.far)
        store.raw_write(key, "v")
        store.until(lambda: store.shows(key, "v", store.near), "the write reaches the near replica")
        with reading() as seen:
            assert store.read(key, store.near) == "v"
        assert not store.judge(seen.lineage, store.brief).satisfied
        store.heal(store.far)
        assert store.judge(seen.lineage).satisfied
        assert store.shows(key, "v")

    @only("position", "object", queues=False)
    def test_overwritten_without_antipode(self, store: StoreUnderTest) -> None:
        """Code without Antipode may write between: what was written before it is visible all the same."""
        key = store.new_key()
        lineage = store.written(key, "1")
        store.raw_write(key, "2")
        store.until(lambda: store.shows(key, "2"), "the second write arrives")
        assert store.judge(lineage).satisfied
        with reading() as seen:
            assert store.read(key, store.near) == "2"
        assert store.judge(seen.lineage).satisfied

    def test_oversized_lineage(self, store: StoreUnderTest) -> None:
        """A write succeeds whatever its scope depends on; what does not fit beside it leaves it incomplete (LIN-17)."""
        key = store.new_key()
        foreign = Lineage(WriteId("elsewhere", f"object-{number}", Ordered("", number)) for number in range(_FOREIGN))
        with scope(foreign) as opened:
            store.write(key, "v")
            mine = opened.lineage
        assert mine.of_store(store.name)
        assert store.judge(mine).satisfied
        assert store.shows(key, "v")
        if store.capabilities.tap or not store.capabilities.rest:
            return
        with reading() as seen:
            assert store.read(key, store.near) == "v"
        assert foreign <= seen.lineage or seen.lineage.incomplete, "lost, and looks complete"

    @only(queues=False)
    def test_monotonic_reads(self, store: StoreUnderTest) -> None:
        """Who read a value at one replica never reads an older one at another, after a barrier; and what was visible
        stays so (SHIM-20)."""
        key = store.new_key()
        configure(free_path_ttl=0)
        store.set_lag(store.far, 0.15)
        for number in range(1, 5):
            written = store.written(key, str(number))
            store.until(lambda: store.shows(key, str(number), store.near), "the write reaches the near replica")  # noqa: B023
            with reading() as seen:
                assert store.read(key, store.near) == str(number)
            assert store.judge(seen.lineage).satisfied
            assert store.look(key, store.far) == str(number)
            assert store.read(key, store.far) == str(number)
            if store.capabilities.versions != "opaque":
                store.write(store.new_key(), "beside")
                assert store.judge(written).satisfied, "it was visible a moment ago"
