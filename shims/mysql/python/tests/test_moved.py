"""Connections, pools and engines that lead elsewhere since they were wrapped (spec BAR-52, BAR-22)."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import antipode
import mysql.connector.aio
import pymysql
import pytest
import sqlalchemy
from aio_client import Blocking, inner
from antipode._engine import discovery
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql.leading import targets_of_words
from mysql.connector.pooling import MySQLConnectionPool
from sql_regions import STORE, Posts, until
from things import run

_CLIENTS = ["pymysql", "connector", "aio"]


@pytest.fixture
def moved_posts(posts: Posts) -> Iterator[Posts]:
    """The store on MariaDB, whose servers are those of its clients; what these are is no matter of its kind."""
    yield Posts(posts.lab, replicas=None)
    posts.lab.heal()


def address(lab: SqlStore, name: str) -> str:
    return f"mysql://127.0.0.1:{lab.server(name).port}"


def lead(client: Any, port: int) -> None:
    """Changes an open connection's words."""
    plain = inner(client)
    if isinstance(plain, pymysql.Connection):
        plain.port = port
    elif isinstance(client, Blocking):
        plain._port = port
    else:
        plain.config(port=port)


def open_again(client: Any) -> None:
    if isinstance(inner(client), pymysql.Connection):
        client.close()
        client.connect()
    else:
        client.reconnect()


def assert_judged(posts: Posts, name: str) -> None:
    """A barrier is never satisfied while a server lacks a write, and is when it has it."""
    key = uuid4().hex
    posts.lab.partition(name)
    try:
        lineage = posts.write(key)
        assert posts.shows(name, key) is None
        assert not posts.look(lineage, 0.5).satisfied
    finally:
        posts.lab.heal(name)
    result = posts.look(lineage, 30)
    assert result.satisfied
    assert address(posts.lab, name) in [server.address for server in result.stores[STORE].servers]


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("kind", _CLIENTS)
def test_words_that_changed_count_before_the_connection_is_made_anew(
    moved_posts: Posts, kind: str, asked_before: bool
) -> None:
    """BAR-52: what the client is, is looked at while the barrier asks."""
    posts = moved_posts
    with closing(posts.wrap(posts.open(kind, "a"))) as client:
        if asked_before:
            assert posts.look(posts.write(uuid4().hex), 20).satisfied
        lead(client, posts.lab.server("b1").port)
        assert_judged(posts, "b1")


@pytest.mark.parametrize("kind", _CLIENTS)
def test_the_server_that_was_reached_stays(moved_posts: Posts, kind: str) -> None:
    """BAR-52: the connection is open there, though its words say otherwise since."""
    posts = moved_posts
    with closing(posts.wrap(posts.open(kind, "a"))) as client:
        lead(client, posts.lab.server("b1").port)
        open_again(client)
        lead(client, posts.lab.server("a").port)
        assert run(client, "SELECT @@port")[0][0] == posts.lab.server("b1").port
        assert_judged(posts, "b1")
        assert client._antipode.binding.target.address == address(posts.lab, "b1")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where connections lead is looked at by every barrier."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)


def assert_complete_without(posts: Posts, name: str) -> None:
    """That server is judged no more, and not left out either."""
    antipode.configure(left_server=0)
    lineage = posts.write(uuid4().hex)

    def is_complete() -> bool:
        result = posts.look(lineage, 1.0)
        judged = [server.address for server in result.stores[STORE].servers]
        return result.complete and address(posts.lab, name) not in judged

    until(is_complete, 60.0)


@pytest.mark.parametrize("kind", _CLIENTS)
def test_a_server_to_which_a_connection_leads(moved_posts: Posts, often: None, kind: str) -> None:
    """BAR-62: it is judged until the connection is lost, though its words say otherwise; then nobody names it."""
    posts = moved_posts
    client = posts.wrap(posts.open(kind, "b2"))
    lead(client, posts.lab.server("a").port)
    for _ in range(3):
        assert_judged(posts, "b2")
    posts.lab.kill("b2")
    try:
        assert_complete_without(posts, "b2")
    finally:
        posts.lab.restart("b2")
    open_again(client)
    assert run(client, "SELECT @@port")[0][0] == posts.lab.server("a").port
    client.close()


@pytest.mark.parametrize("kind", _CLIENTS)
def test_a_server_at_which_a_connection_was(moved_posts: Posts, often: None, kind: str) -> None:
    """BAR-62: it leaves where the connection is made anew elsewhere."""
    posts = moved_posts
    with closing(posts.wrap(posts.open(kind, "b2"))) as client:
        assert_judged(posts, "b2")
        lead(client, posts.lab.server("b1").port)
        open_again(client)
        assert_complete_without(posts, "b2")
        assert_judged(posts, "b1")


def test_what_a_connection_named_that_is_gone(moved_posts: Posts, often: None) -> None:
    """BAR-62: where nobody else says where the next one leads, it stays; a pool and an engine say so themselves."""
    posts = moved_posts
    engine = sqlalchemy.create_engine(f"mysql+pymysql://root@127.0.0.1:{posts.lab.server('b2').port}/lab")
    posts.wrap(engine)
    with engine.connect():
        assert_judged(posts, "b2")
    engine.dispose()
    posts.wrap(posts.pymysql("b1")).close()
    gc.collect()
    for _ in range(3):
        assert_judged(posts, "b1")
        assert_judged(posts, "b2")


def test_a_ping_that_connects_anew(moved_posts: Posts) -> None:
    """BAR-52: PyMySQL's own way to connect anew."""
    posts = moved_posts
    with closing(posts.wrap(posts.pymysql("a"))) as client:
        client.port = posts.lab.server("b1").port
        client._force_close()
        with pytest.warns(DeprecationWarning, match="reconnect"):
            client.ping(reconnect=True)
        client.port = posts.lab.server("a").port
        assert_judged(posts, "b1")


@pytest.mark.parametrize("before", [True, False])
def test_a_socket_of_the_applications_own(moved_posts: Posts, before: bool) -> None:
    """BAR-52: the server that was really reached, whatever the words say; connected before the wrap, or after."""
    posts = moved_posts
    own = socket.create_connection(("127.0.0.1", posts.lab.server("b1").port))
    plain = posts.pymysql("a", defer_connect=True)
    if before:
        plain.connect(own)
    with closing(posts.wrap(plain)) as client:
        if not before:
            client.connect(own)
        assert_judged(posts, "b1")


def test_a_connection_that_nobody_holds_but_its_wrap(moved_posts: Posts) -> None:
    """BAR-52: the wrap keeps what is looked at; a connection that is gone is looked at no more."""
    posts = moved_posts
    client = posts.wrap(posts.pymysql("a"))
    connections = posts_shim().connections[False]
    gc.collect()
    client.port = posts.lab.server("b1").port
    assert [target.address for target in connections.targets()] == [address(posts.lab, "b1")]
    assert_judged(posts, "b1")
    known = len(connections._known)
    client.close()
    del client
    gc.collect()
    assert len(connections._known) < known


def posts_shim() -> Any:
    [store] = antipode.stores()
    return store.shim


def words(lab: SqlStore, name: str) -> dict[str, Any]:
    settled = {"host": "127.0.0.1", "port": lab.server(name).port, "user": "root", "database": "lab"}
    return {**settled, "collation": "utf8mb4_general_ci", "ssl_disabled": True}


class Counted(MySQLConnectionPool):
    """A pool's class of the application's own."""

    given = 0

    def get_connection(self) -> Any:
        self.given += 1
        return super().get_connection()


@pytest.mark.parametrize("by", ["the wrapped one", "the plain one"])
@pytest.mark.parametrize("opened", [True, False])
def test_a_pool_whose_words_were_set_anew(moved_posts: Posts, opened: bool, by: str) -> None:
    """BAR-52: before a connection leads there, and after."""
    posts = moved_posts
    pool = Counted(pool_name="moved", pool_size=1, use_pure=True, **words(posts.lab, "a"))
    wrapped = posts.wrap(pool)
    assert isinstance(wrapped, Counted)
    assert posts.look(posts.write(uuid4().hex), 20).satisfied
    (wrapped if by == "the wrapped one" else pool).set_config(use_pure=True, **words(posts.lab, "b1"))
    if opened:
        with wrapped.get_connection() as connection:
            assert run(connection, "SELECT @@port")[0][0] == posts.lab.server("b1").port
        pool.set_config(use_pure=True, **words(posts.lab, "a"))  # others are open at the other server still
    assert_judged(posts, "b1")
    assert wrapped.given == opened
    wrapped._remove_connections()


def test_a_pool_that_nobody_holds_but_its_wrap(moved_posts: Posts) -> None:
    """BAR-52: the wrap keeps it alive, so it is looked at."""
    posts = moved_posts
    wrapped = posts.wrap(
        MySQLConnectionPool(pool_name="kept", pool_size=1, use_pure=True, **words(posts.lab, "a")), replicas=None
    )
    gc.collect()
    wrapped.set_config(use_pure=True, **words(posts.lab, "b1"))
    assert_judged(posts, "b1")
    wrapped._remove_connections()


@pytest.mark.parametrize("opened", [True, False])
async def test_an_asyncio_pool_whose_words_were_set_anew(moved_posts: Posts, opened: bool) -> None:
    """BAR-52."""
    posts = moved_posts
    pool = mysql.connector.aio.pooling.MySQLConnectionPool(pool_name="aio", pool_size=1, **words(posts.lab, "a"))
    await pool.initialize_pool()
    wrapped = posts.wrap(pool)
    await wrapped.set_config(**words(posts.lab, "b1"))
    if opened:
        connection = await wrapped.get_connection()
        await wrapped.set_config(**words(posts.lab, "a"))
    await asyncio.to_thread(assert_judged, posts, "b1")
    if opened:
        await connection.close()
    while not pool._cnx_queue.empty():
        await pool._cnx_queue.get_nowait().shutdown()


def test_a_pool_without_words_is_refused() -> None:
    """BAR-52: it would be taken for one of the local server."""
    import antipode_mysql

    pool = MySQLConnectionPool(pool_name="none", pool_size=1)
    with pytest.raises(antipode.ConfigurationError, match="set_config"):
        antipode_mysql.wrap(pool, STORE)


@pytest.mark.parametrize("driver", ["pymysql", "mysqlconnector"])
def test_an_engine_whose_servers_are_in_a_file(moved_posts: Posts, tmp_path: Path, driver: str) -> None:
    """BAR-52: the driver reads it at each opening, so it may have been changed."""
    posts = moved_posts
    file = tmp_path / "my.cnf"
    file.write_text(f"[client]\nhost=127.0.0.1\nport={posts.lab.server('a').port}\n")
    arguments: dict[str, Any] = {"read_default_file": str(file)}
    if driver == "mysqlconnector":
        arguments |= {"use_pure": True, "collation": "utf8mb4_general_ci", "ssl_disabled": True}
    engine = sqlalchemy.create_engine(f"mysql+{driver}://root@/lab", connect_args=arguments)
    posts.wrap(engine)
    assert antipode.stores()[0].replicas == (address(posts.lab, "a"),)
    assert posts.look(posts.write(uuid4().hex), 20).satisfied
    file.write_text(f"[client]\nhost=127.0.0.1\nport={posts.lab.server('b1').port}\n")
    assert_judged(posts, "b1")
    engine.dispose()


def test_an_engine_whose_file_names_another_server_later(moved_posts: Posts, often: None, tmp_path: Path) -> None:
    """BAR-62: the server of before is judged as long as the engine's connections lead there."""
    posts = moved_posts
    file = tmp_path / "my.cnf"
    file.write_text(f"[client]\nhost=127.0.0.1\nport={posts.lab.server('b2').port}\n")
    engine = sqlalchemy.create_engine("mysql+pymysql://root@/lab", connect_args={"read_default_file": str(file)})
    posts.wrap(engine)
    with engine.connect():
        file.write_text(f"[client]\nhost=127.0.0.1\nport={posts.lab.server('a').port}\n")
        for _ in range(3):
            assert_judged(posts, "b2")
    engine.dispose()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT @@port").scalar() == posts.lab.server("a").port
        assert_complete_without(posts, "b2")
    engine.dispose()


def test_an_engine_whose_creator_alternates(moved_posts: Posts) -> None:
    """BAR-52: a server joins when a connection to it is handed out, and stays."""
    posts = moved_posts
    turns = itertools.cycle(["a", "a", "b1"])
    engine = sqlalchemy.create_engine(
        "mysql+pymysql://", creator=lambda: posts.pymysql(next(turns), autocommit=False), pool_size=3
    )
    posts.wrap(engine)
    with engine.connect(), engine.connect(), engine.connect():
        assert_judged(posts, "b1")
    engine.dispose()


def test_each_server_of_a_list_is_one_that_a_client_may_lead_to(moved_posts: Posts) -> None:
    """BAR-52: `failover=` of mysql-connector-python."""
    posts = moved_posts
    servers = [{"port": posts.lab.server(name).port, "priority": 90} for name in ("a", "b1")]
    found = targets_of_words({"host": "127.0.0.1", "user": "root", "failover": servers}, "mysqlconnector")
    assert found is not None
    assert [target.address for target in found] == [address(posts.lab, name) for name in ("a", "b1")]
    assert targets_of_words({"host": "records", "dns_srv": True}, "mysqlconnector") is None


def test_another_user_of_the_same_connection(moved_posts: Posts) -> None:
    """BAR-52: it is the same server, and reads wait there."""
    posts = moved_posts
    with closing(posts.wrap(posts.connector("b1", autocommit=True), wait_on_read=True)) as client:
        client.cmd_change_user("root", "", "lab")
        key = uuid4().hex
        with antipode.scope(posts.write(key)):
            assert run(client, f"SELECT body FROM posts WHERE id = '{key}'") == [("v",)]
