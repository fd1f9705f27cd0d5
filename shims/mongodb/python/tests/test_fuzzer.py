"""The failover fuzzer: a run always, the whole of it in `make test-stores` (spec EPOCH-27, SHIM-30)."""

from __future__ import annotations

import pytest
from antipode.testing.failover import check
from mongodb_fuzzer import fuzz


@pytest.mark.timeout(300)
def test_a_random_failover() -> None:
    tally = fuzz(1, seed=11)
    print(tally)
    check(tally, most_unproven=0.0)


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_the_whole_fuzzer() -> None:
    tally = fuzz(100, seed=1000, say=print)
    print(tally)
    check(tally, most_unproven=0.01)
    assert tally.lost >= 500
