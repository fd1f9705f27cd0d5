"""The adversary on S3: short always, long with `-m stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary
from antipode_lab import Lab
from antipode_lab.stores.s3 import S3Store
from s3_adversary import S3Stage
from s3_mutants import MUTANTS


@pytest.fixture
def stage() -> Iterator[S3Stage]:
    """A lab of this test's own: the folder has every test isolated, and the store is registered inside of that."""
    with Lab("s3", replicas=1, lag="3ms") as lab:
        yield S3Stage(lab.get(S3Store))


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: S3Stage) -> None:
    adversary.check(adversary.play(stage, 20, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_a_rule_that_is_taken_out(stage: S3Stage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, MUTANTS[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_many_programs_lose_nothing(stage: S3Stage) -> None:
    tally = adversary.play(stage, 2_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
