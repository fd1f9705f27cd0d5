"""Labs for the tests of the MariaDB shim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.mariadb import MariaDBStore
from mariadb_regions import Posts, make_table


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Each test has a registry and settings of its own."""
    with isolated():
        yield


@pytest.fixture(scope="session")
def _quiet_lab(folder_lab_factory: LabFactory) -> MariaDBStore:
    lab = folder_lab_factory("mariadb", replicas=2, lag=["5ms", "20ms"]).get(MariaDBStore)
    make_table(lab)
    return lab


@pytest.fixture
def quiet_lab(_quiet_lab: MariaDBStore) -> MariaDBStore:
    """A primary and two replicas for all tests that leave the servers as they are."""
    _quiet_lab.heal()
    return _quiet_lab


@pytest.fixture
def posts(quiet_lab: MariaDBStore) -> Posts:
    """The store of posts there."""
    return Posts(quiet_lab)


@pytest.fixture
def fresh_posts(request: pytest.FixtureRequest, lab_factory: LabFactory) -> Posts:
    """A store of its own for a test that spoils the servers; the lab's options by the fixture's parameter."""
    options: dict[str, Any] = getattr(request, "param", {})
    lab = lab_factory("mariadb", replicas=2, lag="3ms", options={"mariadb": options}).get(MariaDBStore)
    make_table(lab)
    return Posts(lab)
