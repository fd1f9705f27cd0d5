"""The adversary on DynamoDB: short always, long with `-m stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores.dynamodb import DynamoDbStore
from dynamodb_adversary import DynamoDbStage
from dynamodb_mutants import MUTANTS

MOST_UNPROVEN = 0.3
"""Where a greater version of another region is, it is said at once that nobody can tell (SHIM-52)."""


@pytest.fixture(scope="module")
def stage() -> Iterator[DynamoDbStage]:
    with Lab("dynamodb", replicas=2, lag="3ms") as lab, isolated():
        yield DynamoDbStage(lab.get(DynamoDbStore))


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: DynamoDbStage) -> None:
    adversary.check(adversary.play(stage, 20, seed=1), most_unproven=MOST_UNPROVEN)


@pytest.mark.stores
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_a_rule_that_is_taken_out(stage: DynamoDbStage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, MUTANTS[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_many_programs_lose_nothing(stage: DynamoDbStage) -> None:
    tally = adversary.play(stage, 1_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally, most_unproven=MOST_UNPROVEN)
