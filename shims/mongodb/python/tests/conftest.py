"""One lab of a primary and two secondaries for this folder: what a test changes of it is undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode._facade.configuration import configure
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.mongodb import MongoStore
from mongodb_regions import LAGS, NUMBERS, Posts, prepare, restore


@pytest.fixture(scope="session")
def folder_mongodb_lab(folder_lab_factory: LabFactory) -> MongoStore:
    lab = folder_lab_factory("mongodb", replicas=len(LAGS), lag=[f"{lag}ms" for lag in LAGS.values()])
    store = lab.get(MongoStore)
    prepare(store)
    return store


@pytest.fixture
def mongodb_lab(folder_mongodb_lab: MongoStore) -> Iterator[MongoStore]:
    with isolated():
        configure(replica_out_after=30.0)  # on a loaded machine a server may take seconds for an answer
        yield folder_mongodb_lab
    restore(folder_mongodb_lab)


@pytest.fixture
def posts(mongodb_lab: MongoStore) -> Iterator[Posts]:
    made = Posts(mongodb_lab)
    yield made
    made.close()


@pytest.fixture
def name() -> str:
    """A document's name that nobody has used."""
    return f"name-{next(NUMBERS)}"
