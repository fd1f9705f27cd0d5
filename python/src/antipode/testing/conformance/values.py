"""Cases about values and their versions (spec SHIM-6 to SHIM-16, BAR-11)."""

from __future__ import annotations

from antipode.reading import reading
from antipode.testing.conformance.cases import Cases, only
from antipode.testing.under_test import StoreUnderTest


class Values(Cases):
    """Overwriting, deleting, reading."""

    def test_write_is_waited_for(self, store: StoreUnderTest) -> None:
        """A write is visible at all replicas once the barrier has passed, and not before."""
        key = store.new_key()
        lineage = store.written(key, "v")
        assert lineage.is_complete(), "the shim could not say which version the write has"
        assert lineage.of_store(store.name)
        assert store.judge(lineage).complete
        assert store.shows(key, "v")

    def test_overwrite(self, store: StoreUnderTest) -> None:
        """The second version is waited for though the first is there."""
        only(store, queues=False)
        key = store.new_key()
        first = store.written(key, "1")
        assert store.judge(first).satisfied
        second = store.written(key, "2")
        assert not second <= first
        assert store.judge(second).satisfied
        assert store.shows(key, "2")

    def test_old_version(self, store: StoreUnderTest) -> None:
        """A replica that has the key with an older version has not got the write (BAR-11)."""
        only(store, queues=False)
        key = store.new_key()
        assert store.judge(store.written(key, "1")).satisfied
        store.partition(store.near)
        second = store.written(key, "2")
        assert not store.judge(second, store.brief).satisfied
        assert store.look(key, store.near) == "1"
        store.heal(store.near)
        assert store.judge(second).satisfied
        assert store.shows(key, "2")

    def test_reading_covers_the_value_read(self, store: StoreUnderTest) -> None:
        """What `reading()` collects makes a barrier elsewhere wait for the very value that was read (SHIM-13)."""
        only(store, queues=False)
        key = store.new_key()
        store.partition(store.far)
        assert store.written(key, "v")
        store.until(lambda: store.shows(key, "v", store.near), "the write reaches the near replica")
        with reading() as seen:
            assert store.read(key, store.near) == "v"
        assert seen.lineage.of_store(store.name)
        assert not store.judge(seen.lineage, store.brief).satisfied
        store.heal(store.far)
        assert store.judge(seen.lineage).satisfied
        assert store.shows(key, "v")
