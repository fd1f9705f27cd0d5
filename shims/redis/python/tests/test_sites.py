"""Findings name the application's own line, not the wrapper's."""

from __future__ import annotations

import sys

import antipode_redis
import pytest
import redis
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE


@pytest.mark.redis_lab(replicas=1, lag="0ms")
def test_a_write_outside_any_scope_is_warned_about_at_its_line(
    redis_lab: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    with isolated(), redis.Redis.from_url(redis_lab.url("a")) as plain:
        client = antipode_redis.wrap(plain, store=STORE)
        line = sys._getframe().f_lineno + 1
        client.set("k", "v")
        client.pipeline().set("k", "v").execute()
    sites = [
        record.getMessage().partition("site=")[2] for record in caplog.records if "any scope" in record.getMessage()
    ]
    assert sites
    assert sites[0] == f"tests/test_sites.py:{line} [AP401]"
    assert all(site.startswith("tests/test_sites.py:") for site in sites)
