"""The adversary on RabbitMQ: short always, long in `make test-stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores.rabbitmq import RabbitStore
from rabbit_adversary import RabbitStage
from rabbit_mutants import MUTANTS


@pytest.fixture(scope="module")
def rabbitmq_of_its_own() -> Iterator[RabbitStore]:
    with Lab("rabbitmq", lag="3ms") as lab:
        yield lab.get(RabbitStore)


@pytest.fixture
def stage(rabbitmq_of_its_own: RabbitStore) -> Iterator[RabbitStage]:
    with isolated():
        made = RabbitStage(rabbitmq_of_its_own)
        yield made
        made.end()


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: RabbitStage) -> None:
    adversary.check(adversary.play(stage, 15, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_a_rule_that_is_taken_out(stage: RabbitStage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, MUTANTS[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_many_programs_lose_nothing(stage: RabbitStage) -> None:
    tally = adversary.play(stage, 2_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
