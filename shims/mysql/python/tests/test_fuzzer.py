"""The failover fuzzer: a few runs always, the whole of it in `make test-stores` (spec EPOCH-27)."""

from __future__ import annotations

from typing import Final

import pytest
from antipode.testing.failover import Tally, check
from sql_fuzzer import fuzz

MOST_RASH: Final = 0.01
"""A server whose link takes longer than a deadline to come back does not know a new epoch for so long (EPOCH-13)."""


def check_reused(tally: Tally) -> None:
    """With ids that are used again nobody can tell what was lost, so nothing passes."""
    print(tally)
    faults = [*tally.lost_passed, *tally.hangs, *tally.looked_empty]
    assert not faults, "\n".join([str(tally), *faults[:20]])
    assert tally.lost > 0
    assert not tally.judged["visible"]


@pytest.mark.timeout(300)
def test_a_few_random_failovers_with_fresh_ids() -> None:
    tally = fuzz(2, seed=11)
    print(tally)
    check(tally, most_rash=0.1)  # few answers, and barriers are parked at three servers at once


@pytest.mark.timeout(300)
def test_a_few_random_failovers_with_reused_ids() -> None:
    check_reused(fuzz(1, seed=13, fresh_ids=False))


@pytest.mark.servers("mysql")
@pytest.mark.timeout(300)
def test_a_random_failover_on_mysql() -> None:
    tally = fuzz(1, seed=17, kind="mysql")
    print(tally)
    check(tally, most_rash=0.1)


@pytest.mark.stores
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_the_whole_fuzzer_with_fresh_ids(kind: str) -> None:
    tally = fuzz(100, seed=1000, kind=kind, say=print)
    print(tally)
    check(tally, most_unproven=0.02, most_rash=MOST_RASH)
    assert tally.lost >= 500


@pytest.mark.stores
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_the_whole_fuzzer_with_reused_ids(kind: str) -> None:
    tally = fuzz(100, seed=5000, fresh_ids=False, kind=kind, say=print)
    check_reused(tally)
    assert tally.lost >= 500
