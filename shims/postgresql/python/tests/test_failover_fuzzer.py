"""The failover fuzzer: a few runs always, the whole of it in `make test-stores` (spec EPOCH-27)."""

from __future__ import annotations

from typing import Final

import pytest
from antipode.testing.failover import check
from pg_fuzzer import fuzz

MOST_RASH: Final = 0.01
"""The position is what the log has made durable behind the commit: a timeline may end between the two."""


def test_a_few_random_failovers_show_no_false_pass() -> None:
    check(fuzz(2, seed=3), most_rash=MOST_RASH)


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_the_whole_fuzzer() -> None:
    tally = fuzz(100, seed=1000, say=print)
    check(tally, most_unproven=0.02, most_rash=MOST_RASH)
    print(tally)
    assert tally.lost >= 500
