"""The failover fuzzer: a few runs always, the whole of it in `make test-stores` (spec EPOCH-27)."""

from __future__ import annotations

import pytest
from antipode.testing.failover import check
from pg_fuzzer import fuzz


def test_a_few_random_failovers_show_no_false_pass() -> None:
    check(fuzz(2, seed=3))


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_the_whole_fuzzer() -> None:
    tally = fuzz(100, seed=1000, say=print)
    check(tally, most_unproven=0.02)
    print(tally)
    assert tally.lost >= 500
