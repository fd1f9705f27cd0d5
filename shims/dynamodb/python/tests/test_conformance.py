"""The conformance kit on DynamoDB Local in three regions (spec SHIM-33)."""

from __future__ import annotations

import pytest
from antipode.testing.conformance import ShimConformance
from antipode_lab.stores.dynamodb import DynamoDbStore
from dynamodb_under_test import DynamoDbUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls, folder_dynamodb_lab: DynamoDbStore) -> DynamoDbUnderTest:
        return DynamoDbUnderTest(folder_dynamodb_lab)
