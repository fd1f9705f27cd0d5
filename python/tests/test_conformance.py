"""The conformance kit on the embedded store, in its three modes."""

from __future__ import annotations

import pytest
from antipode.testing.conformance import ShimConformance, StoreUnderTest
from memory_under_test import MemoryUnderTest, ObjectsUnderTest, OpaqueUnderTest


class TestPositions(ShimConformance):
    @pytest.fixture
    def under_test(self) -> StoreUnderTest:
        return MemoryUnderTest()


class TestObjects(ShimConformance):
    @pytest.fixture
    def under_test(self) -> StoreUnderTest:
        return ObjectsUnderTest()


class TestOpaque(ShimConformance):
    @pytest.fixture
    def under_test(self) -> StoreUnderTest:
        return OpaqueUnderTest()
