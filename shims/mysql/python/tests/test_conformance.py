"""The conformance kit on real MariaDB servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from mariadb_under_test import MariaDBUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[MariaDBUnderTest]:
        store = MariaDBUnderTest()
        yield store
        store.close()
