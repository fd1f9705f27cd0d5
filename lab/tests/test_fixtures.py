"""The pytest fixtures, as a test of ours and of others uses them."""

from __future__ import annotations

import pytest
from antipode_lab import LabError
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.redis import RedisStore

ports: list[int] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_the_module_s_redis_is_one_and_is_healed_for_each_test(module_redis_lab: RedisStore, turn: int) -> None:
    ports.append(module_redis_lab.server("a").port)
    assert len(set(ports)) == 1
    assert {s.name: s.link for s in module_redis_lab.status()} == {"a": None, "b1": "up", "b2": "up"}
    assert {s.name: s.lag_ms for s in module_redis_lab.status()} == {"a": 0, "b1": 80, "b2": 120}
    module_redis_lab.partition("b1")


def test_a_factory_s_labs_are_separate(lab_factory: LabFactory) -> None:
    first, second = lab_factory("redis"), lab_factory("redis", lag="1ms")
    first.redis.client("a").set("k", "1")
    assert second.redis.client("a").get("k") is None
    first.close()
    with pytest.raises(LabError, match="not running"):
        first.redis.partition("b1")
    assert second.redis.client("b1").ping()


@pytest.mark.redis_lab(replicas=3, lag="2ms")
def test_the_marker_gives_the_arguments(redis_lab: RedisStore) -> None:
    assert redis_lab.replicas == ["b1", "b2", "b3"]
    assert redis_lab.server("b3").lag_ms == 2
