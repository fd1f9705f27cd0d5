"""The conformance kit on FerretDB over PostgreSQL with DocumentDB (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from mongodb_under_test import MongoUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[MongoUnderTest]:
        store = MongoUnderTest()
        yield store
        store.close()
