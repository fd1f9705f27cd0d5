"""The failover fuzzer: a few runs always, the whole of it in `make test-stores` (spec EPOCH-27)."""

from __future__ import annotations

import pytest
from antipode.testing import failover
from failover_fuzzer import fuzz


def test_a_few_random_failovers_show_no_false_pass() -> None:
    tally = fuzz(6, seed=7)
    print(tally)
    failover.check(tally)


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_the_whole_fuzzer() -> None:
    tally = fuzz(160, seed=1000, say=print)
    print(tally)
    failover.check(tally, most_unproven=0.01)
    assert tally.lost >= 2000
