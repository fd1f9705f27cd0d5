"""Labs for the tests of the shim of MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores._sql_store import SqlStore
from antipode_lab.stores.mariadb import MariaDBStore
from antipode_lab.stores.mysql import MySQLStore
from sql_regions import Posts, make_table

KINDS: dict[str, type[SqlStore]] = {"mariadb": MariaDBStore, "mysql": MySQLStore}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Each test has a registry and settings of its own."""
    with isolated():
        yield


@pytest.fixture(scope="session")
def _labs(folder_lab_factory: LabFactory) -> dict[str, SqlStore]:
    """The labs of tests that leave the servers as they are, by kind; each is started when it is first needed."""

    class Labs(dict[str, SqlStore]):
        def __missing__(self, kind: str) -> SqlStore:
            lab = self[kind] = folder_lab_factory(kind, replicas=2, lag=["5ms", "20ms"]).get(KINDS[kind])
            make_table(lab)
            return lab

    return Labs()


@pytest.fixture(scope="session", params=["mariadb", "mysql", "mysql tracked"])
def server(request: pytest.FixtureRequest) -> str:
    """The kind of server; tracked: with connections that are told of ids."""
    return str(request.param)


@pytest.fixture(scope="session")
def any_lab(_labs: dict[str, SqlStore], server: str) -> SqlStore:
    """A primary and two replicas of either kind."""
    return _labs[server.partition(" ")[0]]


@pytest.fixture
def any_posts(any_lab: SqlStore, server: str) -> Posts:
    """The store of posts there."""
    any_lab.heal()
    return Posts(any_lab, tracked="tracked" in server)


@pytest.fixture
def posts(_labs: dict[str, SqlStore]) -> Posts:
    """The store of posts on MariaDB, for tests that leave the servers as they are."""
    _labs["mariadb"].heal()
    return Posts(_labs["mariadb"])


@pytest.fixture
def fresh_posts(request: pytest.FixtureRequest, lab_factory: LabFactory) -> Posts:
    """A store of its own for a test that spoils the servers; the lab's options by the fixture's parameter."""
    return _fresh(request, lab_factory, "mariadb")


@pytest.fixture
def fresh_mysql(request: pytest.FixtureRequest, lab_factory: LabFactory) -> Posts:
    """The same on MySQL."""
    return _fresh(request, lab_factory, "mysql")


def _fresh(request: pytest.FixtureRequest, lab_factory: LabFactory, kind: str) -> Posts:
    options: dict[str, Any] = getattr(request, "param", {})
    lab = lab_factory(kind, replicas=2, lag="3ms", options={kind: options}).get(KINDS[kind])
    make_table(lab)
    return Posts(lab, tracked=kind == "mysql")
