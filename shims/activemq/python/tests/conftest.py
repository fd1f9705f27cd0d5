"""Real brokers: one pair for all tests of this folder; each test has a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from activemq_regions import Blog, Link, Region
from antipode.testing import isolated
from antipode_lab.stores.activemq import ActiveMqStore


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture(scope="session")
def folder_activemq(folder_lab_factory: Any) -> ActiveMqStore:
    store = folder_lab_factory("activemq", queue_lag="10ms")["activemq"]
    assert isinstance(store, ActiveMqStore)
    return store


@pytest.fixture
def activemq_lab(folder_activemq: ActiveMqStore) -> ActiveMqStore:
    folder_activemq.lag("b", "10ms")
    folder_activemq.heal()
    return folder_activemq


@pytest.fixture
def a(activemq_lab: ActiveMqStore) -> Iterator[Region]:
    region = Region(activemq_lab, "a")
    yield region
    region.close()


@pytest.fixture
def b(activemq_lab: ActiveMqStore) -> Iterator[Region]:
    region = Region(activemq_lab, "b")
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
