"""The adversary on Redis: short always, long in `make test-stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from antipode_lab.stores.redis import RedisStore
from redis_adversary import AsyncRedisStage, RedisStage
from redis_mutants import MUTANTS


@pytest.fixture(scope="module")
def redis_lab() -> Iterator[RedisStore]:
    with Lab("redis", replicas=1, lag="3ms") as lab:
        yield lab.redis


@pytest.fixture(scope="module", params=[RedisStage, AsyncRedisStage], ids=["blocking", "asyncio"])
def stage(request: pytest.FixtureRequest, redis_lab: RedisStore) -> Iterator[RedisStage]:
    with isolated():
        yield request.param(redis_lab)


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: RedisStage) -> None:
    adversary.check(adversary.play(stage, 40, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_a_rule_that_is_taken_out(stage: RedisStage, mutant: str) -> None:
    found = adversary.search(stage, 300, 1, MUTANTS[mutant]())
    print(found)
    assert found is not None


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_many_programs_lose_nothing(stage: RedisStage) -> None:
    tally = adversary.play(stage, 2_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
