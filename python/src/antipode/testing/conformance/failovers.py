"""Cases about servers that are promoted, restarted and re-pointed (spec EPOCH)."""

from __future__ import annotations

from antipode.lineage import Lineage
from antipode.testing.conformance.cases import Cases, spoils
from antipode.testing.under_test import StoreUnderTest
from antipode.verdict import Verdict


class Failovers(Cases):
    """Promotions, restarts, re-pointing."""

    @spoils
    def test_promotion_with_lost_writes(self, store: StoreUnderTest) -> None:
        """What arrived before is visible, what was lost never is, also when the new history has grown past it."""
        kept_key, lost_key = store.new_key("kept"), store.new_key("lost")
        kept = store.written(kept_key, "v")
        assert store.judge(kept).satisfied
        store.wait_marked(kept)
        lost: list[Lineage] = []
        store.promote(store.near, lambda: lost.append(store.written(lost_key, "v")))
        assert store.look(lost_key, store.primary) is None, "the write is not lost"
        assert not store.judge(lost[0], store.brief).satisfied
        assert store.judge(kept).satisfied
        for number in range(20):
            new = store.written(store.new_key("new"), str(number))
        assert store.judge(new).satisfied
        result = store.judge(lost[0], 1.0)
        assert not result.satisfied
        if store.capabilities.versions == "position" and store.capabilities.marks != "none":
            store.until(lambda: store.verdict(lost[0], 0.5) is Verdict.UNPROVEN, "a lost write is called unproven")
        assert store.judge(kept).satisfied
