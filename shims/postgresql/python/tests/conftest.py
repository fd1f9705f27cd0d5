"""Real servers: one PostgreSQL with a standby for the tests that leave them as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import antipode_postgresql
import psycopg
import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import STORE, Posts, prepare


@pytest.fixture(scope="session")
def quiet_lab(folder_lab_factory: LabFactory) -> PostgresqlStore:
    options = {"postgresql": {"config": {"max_prepared_transactions": "5"}}}
    lab = folder_lab_factory("postgresql", replicas=1, lag="3ms", options=options).get(PostgresqlStore)
    prepare(lab)
    return lab


@pytest.fixture
def quiet_posts(quiet_lab: PostgresqlStore) -> Iterator[Posts]:
    """The store of posts there, empty; the standby is what readers use."""
    with isolated():
        with quiet_lab.connect("a", user="app") as connection:
            connection.execute("DELETE FROM posts")
        posts = Posts(quiet_lab, replicas=[quiet_lab.url("b1")])
        yield posts
        posts.close()


@pytest.fixture
def wrapped(quiet_posts: Posts) -> psycopg.Connection[Any]:
    """A wrapped connection to the primary, as psycopg opens one: not in autocommit mode."""
    return quiet_posts.wrap("a", autocommit=False)


@pytest.fixture
async def awrapped(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(quiet_lab.url("a")) as plain:
        yield antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
