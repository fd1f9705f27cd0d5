"""Cases about writes that the scope itself does not know, and commits that it does not see (spec BAR-56, SCOPE-25)."""

from __future__ import annotations

import pytest

from antipode._engine.barrier import barrier
from antipode._model.result import BarrierIncomplete
from antipode._scope.operations import scope
from antipode.testing.conformance.cases import Cases
from antipode.testing.under_test import StoreUnderTest


def _in_doubt(store: StoreUnderTest) -> bool:
    """Whether the present scope's own barrier says that a write of its own is in doubt."""
    result = barrier(timeout=store.patience, stores=[store.name])
    doubtful = store.name in {gap.store for gap in result.gaps}
    assert doubtful is not result.complete, result.explain()
    if doubtful:
        with pytest.raises(BarrierIncomplete, match=store.name):
            barrier(timeout=store.patience, stores=[store.name], require_complete=True)
    return doubtful


class DoubtCases(Cases):
    """What a scope's own barrier says of writes in doubt; what was committed where nobody saw it."""

    def test_barrier_in_a_transaction(self, store: StoreUnderTest) -> None:
        """What is not committed shows in its scope's own barrier, and in a lineage from then (BAR-56, SCOPE-20)."""
        with scope() as opened:
            with store.transaction() as transaction:
                transaction.write(store.new_key(), "v")
                assert _in_doubt(store)
                handed = opened.lineage
            assert not _in_doubt(store)
        assert handed.incomplete == {store.name}
        assert not store.judge(handed).complete

    def test_barrier_behind_an_unknown_outcome(self, store: StoreUnderTest) -> None:
        """A write whose answer never came shows in its scope's own barrier for good (BAR-56)."""
        with scope():
            with pytest.raises(Exception):  # noqa: B017  # the client's own
                store.write_with_unknown_outcome(store.new_key(), "v")
            assert _in_doubt(store)
            store.until(lambda: store.judge(store.written(store.new_key()), 1.0).complete, "the store is usable again")
            assert _in_doubt(store)

    def test_commit_inside_a_transaction(self, store: StoreUnderTest) -> None:
        """What was committed inside what seems an open transaction is recorded, whatever is rolled back (SCOPE-25)."""
        for way, write in store.commits_inside().items():
            key = store.new_key()
            store.partition(store.near)
            with scope() as opened:
                write(key, "v")
                lineage = opened.lineage
            assert store.look(key, store.primary) == "v" or store.capabilities.tap, f"{way}: it is not committed"
            assert lineage.of_store(store.name), way
            assert not store.judge(lineage, store.brief).satisfied, way
            store.heal(store.near)
            assert store.judge(lineage).satisfied, way
            assert store.shows(key, "v"), way
