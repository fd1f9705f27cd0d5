"""What SQLAlchemy derives from a wrapped engine records as the engine does (spec SHIM-50)."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_postgresql
import psycopg
import sqlalchemy
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import STORE, Posts, proved
from sqlalchemy.ext.asyncio import create_async_engine


def test_engines_by_execution_options(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    plain = sqlalchemy.create_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    insert = sqlalchemy.text("INSERT INTO posts (key, value) VALUES (:key, 'v')")
    try:
        with antipode.scope() as scope:
            with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                connection.execute(insert, {"key": "1"})
            first = proved(scope)
            with engine.execution_options(isolation_level="SERIALIZABLE").execution_options(a=1).begin() as connection:
                connection.execute(insert, {"key": "2"})
            assert proved(scope) > first
    finally:
        plain.dispose()


def test_the_drivers_connection_inside_an_engines(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    """SHIM-50: what a client lends of its driver records as well."""
    plain = sqlalchemy.create_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    try:
        with antipode.scope() as scope:
            with engine.connect() as connection:
                inner: Any = connection.connection.driver_connection
                assert isinstance(inner, psycopg.Connection)
                inner.execute("INSERT INTO posts (key, value) VALUES ('1', 'v')")
                inner.commit()
            assert proved(scope)
            raw = engine.raw_connection()
            raw.close()
            assert raw.driver_connection is None
        pool: Any = engine.pool.recreate()
        with antipode.scope() as scope, pool.connect() as fairy:
            fairy.driver_connection.execute("INSERT INTO posts (key, value) VALUES ('2', 'v')")
            fairy.driver_connection.commit()
            assert proved(scope)
        pool.dispose()
        engine.dispose()
        with antipode.scope() as scope, engine.connect() as connection:
            connection.execute(sqlalchemy.text("INSERT INTO posts (key, value) VALUES ('3', 'v')"))
            connection.commit()
            assert proved(scope)
    finally:
        plain.dispose()


async def test_the_drivers_connection_inside_an_engines_of_asyncio(
    quiet_lab: PostgresqlStore, quiet_posts: Posts
) -> None:
    """SHIM-50."""
    plain = create_async_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg_async://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    try:
        with antipode.scope() as scope:
            async with engine.connect() as connection:
                inner: Any = (await connection.get_raw_connection()).driver_connection
                assert isinstance(inner, psycopg.AsyncConnection)
                await inner.execute("INSERT INTO posts (key, value) VALUES ('1', 'v')")
                await inner.commit()
            assert proved(scope)
    finally:
        await plain.dispose()
