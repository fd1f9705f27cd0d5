"""What only mysql-connector-python's asyncio client has: waits that let others run, cancelled tasks, its pools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import antipode
import mysql.connector.aio
import pytest
from antipode._model.errors import PendingWriteError
from antipode._model.result import BarrierTimeout
from antipode._model.write_id import WriteId
from antipode_mysql import column
from mysql.connector.aio.pooling import MySQLConnectionPool
from sql_regions import STORE, Posts, position

INSERT = "INSERT INTO posts VALUES (%s, 'v')"
SELECT = "SELECT body FROM posts WHERE id = %s"


class Aio:
    """Asyncio connections to the lab's servers, closed behind the test."""

    def __init__(self, posts: Posts) -> None:
        self.posts = posts
        self._opened: list[Any] = []

    def settled(self, name: str) -> dict[str, Any]:
        port = self.posts.lab.server(name).port
        charset = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci", "ssl_disabled": True}
        return {"host": "127.0.0.1", "port": port, "user": "root", "database": "lab", **charset}

    async def open(self, name: str = "a", *, autocommit: bool = True, **options: Any) -> Any:
        plain = await mysql.connector.aio.connect(**self.settled(name), autocommit=autocommit)
        self._opened.append(plain)
        return self.posts.wrap(plain, **options)

    async def close(self) -> None:
        for each in self._opened:
            await each.shutdown()


@pytest.fixture
async def aio(posts: Posts) -> AsyncIterator[Aio]:
    opener = Aio(posts)
    yield opener
    await opener.close()


async def run(connection: Any, statement: str, *words: Any) -> list[Any]:
    async with await connection.cursor() as cursor:
        await cursor.execute(statement, words)
        return list(await cursor.fetchall()) if cursor.description else []


async def until(condition: Any) -> None:
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the condition did not come true")


async def test_a_read_that_waits_lets_other_tasks_run(aio: Aio) -> None:
    reader = await aio.open("b1", wait_on_read=True, timeout=20.0)
    key = uuid4().hex
    aio.posts.lab.partition("b1")
    lineage = await asyncio.to_thread(aio.posts.write, key)
    ticks = 0

    async def ticking() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            if ticks == 20:  # it has waited for some time
                await asyncio.to_thread(aio.posts.lab.heal, "b1")
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(ticking())
    try:
        with antipode.scope(lineage):
            assert await run(reader, SELECT, key) == [("v",)]
    finally:
        ticker.cancel()
        aio.posts.lab.heal("b1")
    assert ticks >= 20


async def test_a_task_that_is_cancelled_in_its_write_leaves_it_unknown(aio: Aio) -> None:
    connection = await aio.open()
    await run(connection, INSERT, uuid4().hex)
    with antipode.scope() as scope:
        aio.posts.lab.freeze("a")
        try:
            writing = asyncio.create_task(run(connection, INSERT, uuid4().hex))
            await until(lambda: connection._antipode_call is not None and connection._antipode_call.sent)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        finally:
            aio.posts.lab.thaw("a")
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}
    assert not await connection.is_connected()  # nobody reads the answer that comes as that of the next statement
    await connection.reconnect()
    with antipode.scope() as scope:
        await run(connection, INSERT, uuid4().hex)
        assert position(scope.lineage) == aio.posts.last()


async def test_a_task_that_is_cancelled_while_its_position_is_asked_for_says_that_it_lacks(
    aio: Aio, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await aio.open()
    asking = asyncio.Event()

    async def never(*_: object) -> Any:
        asking.set()
        await asyncio.Event().wait()

    with antipode.scope() as scope:
        monkeypatch.setattr(type(connection).__mro__[1], "_antipode_answer", never)
        writing = asyncio.create_task(run(connection, INSERT, uuid4().hex))
        await asking.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert not scope.pending
        assert scope.lineage.incomplete == {STORE}
    assert not await connection.is_connected()


async def test_a_cancelled_wait_leaves_the_connection_in_order(aio: Aio) -> None:
    reader = await aio.open("b1", wait_on_read=True, timeout=20.0)
    aio.posts.lab.partition("b1")
    lineage = await asyncio.to_thread(aio.posts.write, uuid4().hex)
    with antipode.scope(lineage):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run(reader, SELECT, "x"), 0.3)
    aio.posts.lab.heal("b1")
    if not await reader.is_connected():
        await reader.reconnect()
    assert await run(reader, "SELECT 7") == [(7,)]


async def test_what_leaves_before_the_commit_is_marked_or_refused(aio: Aio) -> None:
    """SCOPE-14, SCOPE-18: the task that publishes is the one whose transaction is open."""
    connection = await aio.open(autocommit=False)
    with antipode.scope() as scope:
        await run(connection, INSERT, uuid4().hex)
        assert antipode.deserialize(antipode.serialize()).incomplete == {STORE}
        antipode.configure(on_pending="raise")
        with pytest.raises(PendingWriteError):
            antipode.serialize()
        await connection.commit()
        assert antipode.deserialize(antipode.serialize()).is_complete()
        assert position(scope.lineage) == aio.posts.last()


async def test_two_tasks_record_what_is_theirs(aio: Aio) -> None:
    async def writes() -> antipode.Lineage:
        connection = await aio.open()
        await run(connection, INSERT, uuid4().hex)  # a connection's first write is covered by where the log is
        with antipode.scope() as scope:
            await run(connection, INSERT, uuid4().hex)
            return scope.lineage

    one, other = await asyncio.gather(writes(), writes())
    assert position(one) != position(other)


async def test_a_read_in_vain_says_so(aio: Aio) -> None:
    reader = await aio.open("b1", wait_on_read=True, timeout=0.2)
    aio.posts.lab.partition("b1")
    lineage = await asyncio.to_thread(aio.posts.write, uuid4().hex)
    with antipode.scope(lineage), pytest.raises(BarrierTimeout):
        await run(reader, SELECT, "x")
    aio.posts.lab.heal("b1")


@pytest.mark.parametrize("prepared", [False, True])
async def test_a_lineage_beside_a_row_comes_with_it(aio: Aio, prepared: bool) -> None:
    made = ("DROP TABLE IF EXISTS beside", "CREATE TABLE beside (k VARCHAR(40) PRIMARY KEY)")
    aio.posts.lab.run("a", *made, *column.statements("beside"))
    connection, key = await aio.open(rest="native"), uuid4().hex
    cause = WriteId.position("elsewhere", "e", 7)
    with antipode.scope(antipode.Lineage([cause])):
        await run(connection, "INSERT INTO beside (k) VALUES (%s)", key)
    async with await connection.cursor(prepared=prepared) as cursor:
        with antipode.reading() as seen:
            await cursor.execute(f"SELECT {column.NAME} FROM beside WHERE k = %s", (key,))
            assert len(await cursor.fetchall()) == 1
    assert seen.lineage.of_store("elsewhere") == [cause]


async def test_a_pool_gives_out_recording_connections_and_keeps_the_plain_ones(aio: Aio) -> None:
    pool = MySQLConnectionPool(pool_name="kit", pool_size=1, **aio.settled("a"))
    await pool.initialize_pool()
    wrapped = aio.posts.wrap(pool)
    assert isinstance(wrapped, MySQLConnectionPool)
    for _ in range(2):
        with antipode.scope() as scope:
            connection = await wrapped.get_connection()
            await run(connection, INSERT, uuid4().hex)
            assert scope.pending
            await connection.commit()
            assert position(scope.lineage) == aio.posts.last()
            await run(connection, INSERT, uuid4().hex)
            await connection.close()  # what was open is rolled back
            assert not scope.pending
    plain = await pool.get_connection()
    with antipode.scope() as scope:
        await run(plain, INSERT, uuid4().hex)
        assert not scope.pending
    await plain.close()
    pooled = aio.posts.wrap(await pool.get_connection())
    with antipode.scope() as scope:
        await run(pooled, INSERT, uuid4().hex)
        assert scope.pending
        await pooled.close()
        assert not scope.pending
    await pool.close_pool()
