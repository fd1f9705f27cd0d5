"""The conformance kit on real PostgreSQL servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from pg_under_test import PostgresqlUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[PostgresqlUnderTest]:
        store = PostgresqlUnderTest()
        yield store
        store.close()
