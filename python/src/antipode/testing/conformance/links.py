"""Cases about replicas that lag, are cut off or do not answer (spec BAR-11, BAR-21 to BAR-27)."""

from __future__ import annotations

from antipode.testing.conformance.cases import Cases
from antipode.testing.under_test import StoreUnderTest


class Links(Cases):
    """Lag, partition, freeze."""

    def test_partitioned_replica(self, store: StoreUnderTest) -> None:
        """No pass while one replica of the region has not got the write; a pass once it has."""
        key = store.new_key()
        store.partition(store.near)
        lineage = store.written(key, "v")
        assert not store.judge(lineage, store.brief).satisfied
        assert store.look(key, store.near) is None, "the partition does not part"
        store.heal(store.near)
        assert store.judge(lineage).satisfied
        assert store.shows(key, "v")
