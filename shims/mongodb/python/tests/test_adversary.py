"""The adversary on FerretDB: short always, long with `-m stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores.mongodb import MongoStore
from mongodb_adversary import AsyncMongoStage, MongoStage
from mongodb_mutants import MUTANTS
from mongodb_regions import prepare


@pytest.fixture(scope="module")
def mongodb_of_its_own() -> Iterator[MongoStore]:
    with Lab("mongodb", replicas=1, lag="3ms") as lab:
        store = lab.get(MongoStore)
        prepare(store)
        yield store


@pytest.fixture(scope="module", params=[MongoStage, AsyncMongoStage], ids=["blocking", "asyncio"])
def stage(request: pytest.FixtureRequest, mongodb_of_its_own: MongoStore) -> Iterator[MongoStage]:
    with isolated():
        yield request.param(mongodb_of_its_own)


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: MongoStage) -> None:
    adversary.check(adversary.play(stage, 20, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_a_rule_that_is_taken_out(stage: MongoStage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, MUTANTS[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(7200)
def test_many_programs_lose_nothing(stage: MongoStage) -> None:
    tally = adversary.play(stage, 1_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
