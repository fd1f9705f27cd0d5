"""A wait before a read ends by its deadline also where the server is frozen (SHIM-47)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import antipode
import mysql.connector.aio
import pymysql
import pytest
from antipode._model.result import BarrierTimeout
from sql_regions import Posts
from sqlalchemy import create_engine, text

SELECT = "SELECT body FROM posts"
TIMEOUT_S, SLACK_S = 0.5, 5.0


@contextmanager
def frozen(posts: Posts) -> Iterator[None]:
    posts.lab.freeze("b1")
    try:
        yield
    finally:
        posts.lab.thaw("b1")


def come(posts: Posts) -> antipode.Lineage:
    lineage = posts.write(uuid4().hex)
    assert posts.look(lineage, 30).satisfied
    return lineage


def read(connection: Any) -> Any:
    with closing(connection.cursor()) as cursor:
        cursor.execute(SELECT)
        return cursor.fetchall()


@pytest.mark.parametrize("client", ["pymysql", "connector", "aio"])
@pytest.mark.parametrize("first", [True, False], ids=["first statement", "a later one"])
def test_a_frozen_server(any_posts: Posts, client: str, first: bool) -> None:
    """Also the question that is asked once a session: the first statement of a session is a read."""
    connection = any_posts.wrap(any_posts.open(client, "b1", autocommit=True), wait_on_read=True, timeout=TIMEOUT_S)
    lineage = come(any_posts)
    cursor = connection.cursor()  # mysql-connector-python asks the server for this
    if not first:
        cursor.execute(SELECT)
        cursor.fetchall()
    with antipode.scope(lineage):
        with frozen(any_posts):
            began = time.monotonic()
            with pytest.raises(BarrierTimeout, match="is closed"):
                cursor.execute(SELECT)
            assert time.monotonic() - began < TIMEOUT_S + SLACK_S
        with pytest.raises((pymysql.MySQLError, mysql.connector.Error)):
            read(connection)


def test_inside_a_transaction(any_posts: Posts) -> None:
    connection = any_posts.wrap(any_posts.pymysql("b1"), wait_on_read=True, timeout=TIMEOUT_S)
    connection.begin()
    with antipode.scope(come(any_posts)), frozen(any_posts), pytest.raises(BarrierTimeout, match="is closed"):
        read(connection)


def test_an_engine(any_posts: Posts) -> None:
    engine = any_posts.wrap(
        create_engine("mysql+pymysql://", creator=lambda: any_posts.pymysql("b1")),
        wait_on_read=True,
        timeout=TIMEOUT_S,
    )
    lineage = come(any_posts)
    with antipode.scope(lineage), engine.connect() as there:
        with frozen(any_posts), pytest.raises(BarrierTimeout, match="is closed"):
            there.execute(text(SELECT))
    with antipode.scope(lineage), engine.connect() as there:
        assert there.execute(text(SELECT)).fetchall()
    engine.dispose()


async def test_a_task_that_is_cancelled_while_we_ask(any_posts: Posts) -> None:
    """No later statement takes the answer to our question for its own."""
    words = {"host": "127.0.0.1", "port": any_posts.lab.server("b1").port, "user": "root", "database": "lab"}
    plain = await mysql.connector.aio.connect(**words, ssl_disabled=True, autocommit=True)
    connection = any_posts.wrap(plain, wait_on_read=True, timeout=60)
    lineage = await asyncio.to_thread(come, any_posts)
    with antipode.scope(lineage):
        with frozen(any_posts):
            cursor = await connection.cursor()
            task = asyncio.create_task(cursor.execute(SELECT))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not await connection.is_connected()
