"""The conformance kit on real brokers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from antipode_lab.stores.rabbitmq import RabbitStore
from rabbit_under_test import RabbitUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls, _session_rabbitmq: RabbitStore) -> Iterator[RabbitUnderTest]:
        _session_rabbitmq.heal()
        store = RabbitUnderTest(_session_rabbitmq)
        yield store
        store.close()
