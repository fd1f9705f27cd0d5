"""Cases about replicas that lag, are cut off or do not answer (spec BAR-11, BAR-21 to BAR-27)."""

from __future__ import annotations

import threading

from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult
from antipode._model.verdict import Verdict
from antipode.testing.conformance.cases import Cases, parked
from antipode.testing.under_test import StoreUnderTest

_OUT_AFTER_S = 1.0


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

    def test_parked_in_a_partition(self, store: StoreUnderTest) -> None:
        """A barrier that waits while the replica is cut off is released by the healing."""
        key = store.new_key()
        store.partition(store.near)
        lineage = store.written(key, "v")
        results: list[BarrierResult] = []
        thread = threading.Thread(target=lambda: results.append(store.judge(lineage)), daemon=True)
        thread.start()
        store.until(lambda: parked(store) == 1, "the barrier waits")
        store.heal(store.near)
        thread.join(store.patience + store.slack)
        assert [result.satisfied for result in results] == [True]
        assert store.shows(key, "v")

    def test_replicas_of_different_lag(self, store: StoreUnderTest) -> None:
        """A pass speaks of every replica that readers may use, the slowest too, and names them (BAR-21, BAR-23)."""
        key = store.new_key()
        assert store.far != store.near
        store.set_lag(store.far, 0.3)
        result = store.judge(store.written(key, "v"))
        assert result.complete
        assert store.shows(key, "v")
        servers = result.stores[store.name].servers
        assert len({server.address for server in servers}) == len(store.replicas)

    def test_frozen_replica(self, store: StoreUnderTest) -> None:
        """A replica that does not answer is left out by name, or makes the store unproven, as was set (BAR-26)."""
        assert store.far != store.near
        configure(replica_out_after=_OUT_AFTER_S)
        store.until(lambda: store.judge(store.written(store.new_key())).complete, "both replicas answer")
        key = store.new_key()
        store.freeze(store.far)
        try:
            lineage = store.written(key, "v")
            store.until(lambda: self._left_out(store, lineage) == 1, "the frozen replica is left out, and named")
            assert store.shows(key, "v", store.near)
            configure(on_replica_out="fail")
            late = store.written(store.new_key())
            store.until(lambda: store.verdict(late, 1.0) is Verdict.UNPROVEN, "the store is unproven without it")
            configure(on_replica_out="name")
        finally:
            store.thaw(store.far)
        store.until(lambda: store.judge(lineage, 1.0).complete, "it is judged again once it answers (BAR-27)")
        assert store.shows(key, "v")

    @staticmethod
    def _left_out(store: StoreUnderTest, lineage: Lineage) -> int:
        """How many replicas a pass leaves out; -1 where it does not pass."""
        result = store.judge(lineage, 1.0)
        left_out = len(result.stores[store.name].left_out)
        assert not (left_out and result.complete)
        return left_out if result.satisfied else -1
