"""The conformance kit on real Redis servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from redis_under_test import RedisUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[RedisUnderTest]:
        store = RedisUnderTest()
        yield store
        store.close()
