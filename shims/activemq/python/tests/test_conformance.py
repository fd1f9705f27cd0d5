"""The conformance kit on real brokers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from activemq_under_test import ActiveMqUnderTest
from antipode.testing.conformance import ShimConformance
from antipode_lab.stores.activemq import ActiveMqStore


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls, folder_activemq: ActiveMqStore) -> Iterator[ActiveMqUnderTest]:
        folder_activemq.heal()
        store = ActiveMqUnderTest(folder_activemq)
        yield store
        store.close()
