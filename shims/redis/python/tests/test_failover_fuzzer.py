"""The failover fuzzer: a few runs always, the whole of it in `make test-stores` (spec EPOCH-27)."""

from __future__ import annotations

import pytest
from failover_fuzzer import Tally, fuzz


def check(tally: Tally) -> None:
    print(tally)
    assert not tally.faults, "\n".join(tally.faults[:20])
    assert tally.lost > 0
    assert tally.judged["visible"] > 0
    assert tally.present_unproven <= 0.01 * tally.present or tally.runs < 50


def test_a_few_random_failovers_show_no_false_pass() -> None:
    check(fuzz(6, seed=7))


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_the_whole_fuzzer() -> None:
    tally = fuzz(160, seed=1000, say=print)
    check(tally)
    assert tally.lost >= 2000
