"""The conformance kit on aio-pika: its tasks, on the same real brokers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aio_under_test import AioRabbitUnderTest
from antipode.testing.conformance import ShimConformance
from antipode_lab.stores.rabbitmq import RabbitStore


class TestAioConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls, _session_rabbitmq: RabbitStore) -> Iterator[AioRabbitUnderTest]:
        _session_rabbitmq.heal()
        store = AioRabbitUnderTest(_session_rabbitmq)
        yield store
        store.close()
