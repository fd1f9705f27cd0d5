"""The conformance kit on DynamoDB Local in three regions (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from dynamodb_under_test import DynamoDbUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[DynamoDbUnderTest]:
        store = DynamoDbUnderTest()
        yield store
        store.close()
