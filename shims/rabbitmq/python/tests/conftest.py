"""Real brokers: one RabbitMQ for the run, with a virtual host for each region, federated from A to B."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import isolated
from antipode_lab.stores.rabbitmq import RabbitStore
from rabbit_regions import Blog, Link, Region


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def a(rabbitmq_lab: RabbitStore) -> Iterator[Region]:
    region = Region(rabbitmq_lab, "a")
    yield region
    region.close()


@pytest.fixture
def b(rabbitmq_lab: RabbitStore) -> Iterator[Region]:
    region = Region(rabbitmq_lab, "b")
    yield region
    region.close()


@pytest.fixture
def blog() -> Blog:
    return Blog()


@pytest.fixture
def link(b: Region) -> Iterator[Link]:
    made = Link(b)
    yield made
    made.cut()
