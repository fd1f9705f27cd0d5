"""The adversary on MariaDB and MySQL: short always, long in `make test-stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores._sql_store import SqlStore
from antipode_lab.stores.mariadb import MariaDBStore
from antipode_lab.stores.mysql import MySQLStore
from sql_adversary import MariaDBStage, MySQLStage, SqlStage
from sql_mutants import MUTANTS
from sql_regions import Posts, make_table

KINDS: dict[str, tuple[type[SqlStore], type[SqlStage]]] = {
    "mariadb": (MariaDBStore, MariaDBStage),
    "mysql": (MySQLStore, MySQLStage),
}


@pytest.fixture(scope="module", params=KINDS)
def lab(request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    with Lab(request.param, replicas=1, lag="3ms") as whole:
        store = whole.get(KINDS[request.param][0])
        make_table(store)
        yield store


@pytest.fixture(scope="module", params=[False, True], ids=["asked", "told"])
def stage(request: pytest.FixtureRequest, lab: SqlStore) -> Iterator[SqlStage]:
    with isolated():
        yield KINDS[lab.kind][1](Posts(lab, tracked=request.param))


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: SqlStage) -> None:
    adversary.check(adversary.play(stage, 25, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("lab", "stage", "mutant"),
    [(kind, False, mutant) for kind, mutants in MUTANTS.items() for mutant in mutants],
    indirect=["lab", "stage"],
)
def test_it_finds_a_rule_that_is_taken_out(lab: SqlStore, stage: SqlStage, mutant: str) -> None:
    found = adversary.search(stage, 500, 1, MUTANTS[lab.kind][mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_many_programs_lose_nothing(stage: SqlStage) -> None:
    tally = adversary.play(stage, 1_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
