"""The adversary on Redis: short always, long in `make test-stores` (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import adversary, isolated
from antipode_lab import Lab
from redis_adversary import RedisStage


@pytest.fixture(scope="module")
def stage() -> Iterator[RedisStage]:
    with Lab("redis", replicas=1, lag="3ms") as lab, isolated():
        yield RedisStage(lab.redis)


@pytest.mark.timeout(600)
def test_a_few_programs_lose_nothing(stage: RedisStage) -> None:
    adversary.check(adversary.play(stage, 60, seed=1))


@pytest.mark.stores
@pytest.mark.timeout(3600)
def test_many_programs_lose_nothing(stage: RedisStage) -> None:
    tally = adversary.play(stage, 2_000, seed=10_000, say=print)
    print(tally)
    adversary.check(tally)
