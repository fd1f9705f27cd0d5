"""Wrapped pools and SQLAlchemy engines (spec SHIM)."""

from __future__ import annotations

import antipode
import antipode_postgresql
import pytest
import sqlalchemy
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts, proved
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine


def test_pools(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    with ConnectionPool(quiet_lab.url("a"), min_size=1, max_size=2, open=True) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
        assert isinstance(pool, ConnectionPool)
        with antipode.scope() as scope:
            with pool.connection() as connection:
                connection.execute(INSERT, ("1",))
                assert scope.pending
            first = proved(scope)
            with plain.connection() as connection:
                connection.execute(INSERT, ("2",))
            assert proved(scope) == first
            connection = pool.getconn()
            connection.execute(INSERT, ("3",))
            pool.putconn(connection)  # with a transaction open: the pool rolls back
            assert not scope.pending
            with pytest.raises(ZeroDivisionError), pool.connection() as connection:  # noqa: PT012
                connection.execute(INSERT, ("4",))
                raise ZeroDivisionError
            assert proved(scope) == first
            assert antipode.barrier(timeout=10).satisfied


async def test_async_pools(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    async with AsyncConnectionPool(quiet_lab.url("a"), min_size=1, open=False) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
        with antipode.scope() as scope:
            async with pool.connection() as connection:
                await connection.execute(INSERT, ("1",))
            assert proved(scope)


def test_sqlalchemy_engines(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    url = quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg://")
    plain = sqlalchemy.create_engine(url)
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    insert = sqlalchemy.text("INSERT INTO posts (key, value) VALUES (:key, 'v')")
    try:
        with antipode.scope() as scope:
            with engine.begin() as connection:
                connection.execute(insert, [{"key": "1"}, {"key": "2"}])
                assert scope.pending
            first = proved(scope)
            with plain.begin() as connection:
                connection.execute(insert, {"key": "3"})
            with engine.connect() as connection:
                assert connection.execute(sqlalchemy.text("SELECT count(*) FROM posts")).scalar() == 3
                connection.execute(insert, {"key": "4"})
                connection.rollback()
            assert proved(scope) == first
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(insert, {"key": "5"})
            assert proved(scope) > first
            assert antipode.barrier(timeout=10).satisfied
    finally:
        plain.dispose()


async def test_async_sqlalchemy_engines(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    plain = create_async_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg_async://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    try:
        with antipode.scope() as scope:
            async with engine.begin() as connection:
                await connection.execute(sqlalchemy.text("INSERT INTO posts (key, value) VALUES ('1', 'v')"))
            assert proved(scope)
    finally:
        await plain.dispose()
