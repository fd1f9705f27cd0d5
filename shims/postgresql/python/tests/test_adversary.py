"""The adversary on PostgreSQL: short always, long in `make test-stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_adversary import AsyncPostgresqlStage, PostgresqlStage
from pg_mutants import ENGINE_MUTANTS, MUTANTS
from pg_regions import prepare
from sqlalchemy_adversary import SqlalchemyStage


@pytest.fixture(
    scope="module",
    params=[PostgresqlStage, AsyncPostgresqlStage, SqlalchemyStage],
    ids=["blocking", "asyncio", "sqlalchemy"],
)
def stage(request: pytest.FixtureRequest) -> Iterator[PostgresqlStage]:
    options = {"postgresql": {"config": {"max_prepared_transactions": "20", "max_connections": "300"}}}
    with Lab("postgresql", replicas=1, lag="3ms", options=options) as lab, isolated():
        store = lab.get(PostgresqlStore)
        prepare(store)
        yield request.param(store)


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: PostgresqlStage) -> None:
    adversary.check(adversary.play(stage, 20, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("stage", "mutant"),
    [*product([PostgresqlStage, AsyncPostgresqlStage], MUTANTS), *product([SqlalchemyStage], ENGINE_MUTANTS)],
    indirect=["stage"],
)
def test_it_finds_a_rule_that_is_taken_out(stage: PostgresqlStage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, (MUTANTS | ENGINE_MUTANTS)[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_many_programs_lose_nothing(stage: PostgresqlStage) -> None:
    tally = adversary.play(stage, 2_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
