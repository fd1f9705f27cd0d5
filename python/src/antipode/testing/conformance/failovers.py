"""Cases about servers that are promoted, restarted and re-pointed (spec EPOCH, BAR-33)."""

from __future__ import annotations

import threading

from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult
from antipode._model.verdict import Verdict
from antipode.testing.conformance.cases import Cases, parked, spoils
from antipode.testing.under_test import StoreUnderTest


def _kept(store: StoreUnderTest) -> tuple[str, Lineage]:
    """A write that is everywhere, and proved beyond its epoch."""
    key = store.new_key("kept")
    lineage = store.written(key, "v")
    assert store.judge(lineage).satisfied
    store.wait_marked(lineage)
    assert store.judge(store.written(store.new_key())).satisfied  # what came before it, the mark too, is everywhere
    return key, lineage


def _lose(store: StoreUnderTest) -> tuple[str, Lineage]:
    """Promotes the near replica, and loses a write."""
    key = store.new_key("lost")
    lost: list[Lineage] = []
    store.promote(store.near, lambda: lost.append(store.written(key, "v")))
    assert store.primary == store.near
    assert store.look(key, store.near) is None, "the write is not lost"
    return key, lost[0]


def _never(store: StoreUnderTest, lost: Lineage) -> None:
    """A lost write does not pass; a store that knows where its epochs end says so, and does not let wait for it."""
    assert not store.judge(lost, store.brief).satisfied
    if store.capabilities.versions == "position" and store.capabilities.marks != "none":
        store.until(lambda: store.verdict(lost, 0.5) is Verdict.UNPROVEN, "a lost write is called unproven")


class Failovers(Cases):
    """Promotions, restarts, re-pointing."""

    @spoils
    def test_promotion(self, store: StoreUnderTest) -> None:
        """After a promotion without loss the earlier writes are visible, and new ones too."""
        key, kept = _kept(store)
        store.promote(store.near)
        assert store.judge(kept).satisfied
        assert store.shows(key, "v")
        new_key = store.new_key("new")
        new = store.written(new_key, "v")
        assert store.judge(new | kept).satisfied
        assert store.shows(new_key, "v")

    @spoils
    def test_promotion_with_lost_writes(self, store: StoreUnderTest) -> None:
        """What arrived before is visible, what was lost never is, also when the new history has grown past it."""
        key, kept = _kept(store)
        _, lost = _lose(store)
        assert not store.judge(lost, store.brief).satisfied
        assert store.judge(kept).satisfied
        for number in range(20):
            new = store.written(store.new_key("new"), str(number))
        assert store.judge(new).satisfied
        _never(store, lost)
        assert store.judge(kept).satisfied
        assert store.shows(key, "v")

    @spoils
    def test_second_promotion(self, store: StoreUnderTest) -> None:
        """A second promotion with no write between: the history in the middle is nearly empty."""
        assert store.far != store.near
        key, kept = _kept(store)
        _, lost = _lose(store)
        assert store.judge(kept).satisfied
        store.promote(store.far)
        assert (result := store.judge(kept)).satisfied, result.explain()
        assert store.shows(key, "v")
        new = store.written(store.new_key("new"), "v")
        assert store.judge(new).satisfied
        _never(store, lost)

    @spoils
    def test_parked_across_a_promotion(self, store: StoreUnderTest) -> None:
        """Barriers that wait while a replica is promoted end as late ones do: no false pass, no hang."""
        key, kept = _kept(store)
        results: dict[str, BarrierResult] = {}
        threads: list[threading.Thread] = []
        lost_key = store.new_key("lost")

        def park(name: str, lineage: Lineage) -> None:
            results[name] = store.judge(lineage, 3.0)

        def lose() -> None:
            lost = store.written(lost_key, "v")
            threads.extend(threading.Thread(target=park, args=each) for each in (("lost", lost), ("kept", kept)))
            for thread in threads:
                thread.start()
            store.until(lambda: parked(store) or "lost" in results, "the barrier waits")

        store.promote(store.near, lose)
        for thread in threads:
            thread.join(3.0 + 2 * store.slack)
        assert not results["lost"].satisfied
        assert store.look(lost_key, store.near) is None
        assert store.judge(kept).satisfied
        assert store.shows(key, "v")

    @spoils
    def test_restarted_replica(self, store: StoreUnderTest) -> None:
        """A replica that starts again has lost its proofs, not its data."""
        configure(free_path_ttl=60)
        key, before = _kept(store)
        store.restart(store.near)
        store.until(lambda: store.judge(before, 1.0).complete, "what was visible is so again")
        assert store.shows(key, "v")
        after_key = store.new_key("after")
        after = store.written(after_key, "v")
        store.until(lambda: store.judge(before | after, 1.0).complete, "new writes pass")
        assert store.shows(after_key, "v")

    @spoils
    def test_restarted_primary(self, store: StoreUnderTest) -> None:
        """A primary that starts again goes on, under a new epoch or the old one."""
        key, before = _kept(store)
        store.restart(store.primary)
        store.until(lambda: store.judge(before, 1.0).satisfied, "what was visible stays so")
        assert store.shows(key, "v")
        after_key = store.new_key("after")
        after = store.written(after_key, "v")
        assert store.judge(before | after).satisfied
        assert store.shows(after_key, "v")

    @spoils
    def test_repointed_replica(self, store: StoreUnderTest) -> None:
        """A replica that follows another replica is judged by what it has got, not by what that one has."""
        key, before = _kept(store)
        store.repoint(store.far, store.near)
        assert store.judge(before).satisfied
        after_key = store.new_key("after")
        after = store.written(after_key, "v")
        assert store.judge(after).satisfied
        assert store.shows(after_key, "v")
        store.partition(store.far)
        late_key = store.new_key("late")
        late = store.written(late_key, "v")
        assert not store.judge(late, store.brief).satisfied
        store.heal(store.far)
        assert store.judge(late | before).satisfied
        assert store.shows(late_key, "v")
        assert store.shows(key, "v")
