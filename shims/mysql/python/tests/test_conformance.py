"""The conformance kit on real MariaDB and MySQL servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from sql_under_test import AioMariaDBUnderTest, MariaDBUnderTest, MySQLUnderTest, SqlUnderTest, TrackedMySQLUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[SqlUnderTest]:
        store = MariaDBUnderTest()
        yield store
        store.close()


@pytest.mark.servers("mysql")
class TestConformanceOnMySQL(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[SqlUnderTest]:
        store = MySQLUnderTest()
        yield store
        store.close()


@pytest.mark.stores
class TestConformanceOnTrackedMySQL(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[SqlUnderTest]:
        store = TrackedMySQLUnderTest()
        yield store
        store.close()


@pytest.mark.stores
class TestConformanceOfAsyncio(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[SqlUnderTest]:
        store = AioMariaDBUnderTest()
        yield store
        store.close()
