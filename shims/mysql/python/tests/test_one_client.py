"""Writes by what only one client has: its packets, cursors, pools and engines (spec SCOPE, SHIM)."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import antipode
import pymysql
import pytest
from antipode_lab.stores._sql_store import SqlStore
from mysql.connector.pooling import MySQLConnectionPool
from sql_regions import Posts, position, until
from things import INSERT, make_things, run

last, told = Posts.last, position


@pytest.fixture(scope="module", autouse=True)
def _tables(any_lab: SqlStore) -> None:
    make_things(any_lab)


def test_a_commit_costs_one_packet(any_posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    client = any_posts.wrap(any_posts.pymysql("a"))
    run(client, "SELECT 1")  # MySQL is asked once a session to tell of ids
    sent: list[int] = []
    socket = client._sock

    class Counting:
        def sendall(self, data: bytes) -> None:
            sent.append(len(data))
            socket.sendall(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(socket, name)

    monkeypatch.setattr(client, "_sock", Counting())
    with antipode.scope() as scope:
        run(client, INSERT)
        assert len(sent) == 1
        assert (sent[0] < 60) is any_posts.tracked, "a server that tells of ids is not asked"
        client.begin()
        run(client, INSERT, INSERT)
        assert len(sent) == 4
        client.commit()
        assert len(sent) == 5
        assert told(scope.lineage) == last(any_posts)
    run(client, "SELECT 1")
    assert len(sent) == 6


def test_cursors_of_pymysql(any_posts: Posts) -> None:
    client = any_posts.wrap(any_posts.pymysql("a"))
    run(client, INSERT)
    for kind in (pymysql.cursors.DictCursor, pymysql.cursors.SSCursor, pymysql.cursors.SSDictCursor):
        with antipode.scope() as scope, client.cursor(kind) as cursor:
            cursor.execute(INSERT)
            assert told(scope.lineage) == last(any_posts)
            cursor.execute("SELECT i FROM things ORDER BY i")
            assert cursor.fetchone() is not None
    if any_posts.lab.kind == "mysql":
        return  # it has no RETURNING
    with antipode.scope() as scope, client.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute("INSERT INTO things (v) VALUES ('r'), ('s') RETURNING i")
        assert scope.pending
        assert len(cursor.fetchall()) == 2
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)


def test_cursors_of_connector(any_posts: Posts) -> None:
    client = any_posts.wrap(any_posts.connector("a", autocommit=True))
    run(client, INSERT)
    for options in ({"dictionary": True}, {"buffered": True}, {"raw": True}, {"prepared": True}):
        with antipode.scope() as scope, closing(client.cursor(**options)) as cursor:
            cursor.execute(INSERT)
            assert told(scope.lineage) == last(any_posts)
            cursor.execute("SELECT i FROM things ORDER BY i LIMIT 2")
            assert len(cursor.fetchall()) == 2
    with antipode.scope() as scope, closing(client.cursor(prepared=True)) as cursor:
        for number in range(3):
            cursor.execute("INSERT INTO things (v) VALUES (?)", (str(number),))
            assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_several_statements_in_one_text(any_posts: Posts) -> None:
    client = any_posts.wrap(any_posts.connector("a", autocommit=True))
    with antipode.scope() as scope, closing(client.cursor()) as cursor:
        cursor.execute(f"{INSERT}; SELECT 'a;b'; {INSERT}")
        while cursor.nextset():
            if cursor.description:
                cursor.fetchall()
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_a_pool_gives_out_recording_connections_and_keeps_the_plain_ones(any_posts: Posts) -> None:
    settled: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": any_posts.lab.server("a").port,
        "user": "root",
        "database": "lab",
    }
    pool = MySQLConnectionPool(
        pool_name="kit", pool_size=1, use_pure=True, ssl_disabled=True, collation="utf8mb4_general_ci", **settled
    )
    wrapped = any_posts.wrap(pool)
    assert isinstance(wrapped, MySQLConnectionPool)
    for _ in range(2):
        with antipode.scope() as scope:
            connection = wrapped.get_connection()
            run(connection, INSERT)
            assert scope.pending
            connection.commit()
            assert told(scope.lineage) == last(any_posts)
            run(connection, INSERT)
            connection.close()  # what was open is rolled back
            assert not scope.pending
    plain = pool.get_connection()
    with antipode.scope() as scope:
        run(plain, INSERT)
        assert not scope.pending
    plain.close()


@pytest.mark.parametrize("driver", ["pymysql", "mysqlconnector"])
def test_an_engine_of_sqlalchemy(any_posts: Posts, driver: str) -> None:
    import sqlalchemy

    url = any_posts.lab.url("a").replace("mysql://", f"mysql+{driver}://")
    options = {"collation": "utf8mb4_general_ci"} if driver == "mysqlconnector" else {}
    engine = any_posts.wrap(sqlalchemy.create_engine(url, connect_args=options))
    try:
        with antipode.scope() as scope:
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text(INSERT))
                assert scope.pending
                with connection.begin_nested():
                    connection.execute(sqlalchemy.text(INSERT))
            assert not scope.pending
            assert told(scope.lineage) == last(any_posts)
        with antipode.scope() as scope:
            with engine.connect() as connection:
                assert connection.execute(sqlalchemy.text("SELECT COUNT(*) FROM things")).scalar()
                connection.execute(sqlalchemy.text(INSERT))
                connection.rollback()
            assert not scope.pending
            assert not scope.lineage
    finally:
        engine.dispose()


def test_a_connection_that_connects_again_begins_anew(any_posts: Posts) -> None:
    client = any_posts.wrap(any_posts.pymysql("a"))
    with antipode.scope() as scope:
        run(client, INSERT)
        first = client.thread_id()
        any_posts.lab.run("a", f"KILL {first}")
        with pytest.warns(DeprecationWarning, match="reconnect"):
            until(lambda: client.ping(reconnect=True) or client.thread_id() != first)
        run(client, INSERT)
        assert told(scope.lineage) == last(any_posts)
        assert scope.lineage.is_complete()


def test_what_cannot_be_wrapped_is_refused(any_posts: Posts) -> None:
    with pytest.raises(TypeError, match="PyMySQL"):
        any_posts.wrap(object())
    with pytest.raises(antipode.ConfigurationError, match="rest="):
        any_posts.wrap(any_posts.lab.client("a"), rest="field")
    with pytest.raises(antipode.ConfigurationError, match="no server's URL"):
        any_posts.wrap(any_posts.lab.client("a"), replicas=["redis://b1"])


@pytest.mark.parametrize("opened_by", ["its url", "do_connect", "creator"])
@pytest.mark.parametrize("driver", ["pymysql", "mysqlconnector"])
def test_an_engine_is_known_before_its_first_connection(any_posts: Posts, driver: str, opened_by: str) -> None:
    """BAR-52; and whatever opens its connections, they record (SHIM-43)."""
    import sqlalchemy

    lab = any_posts.lab
    url = lab.url("a").replace("mysql://", f"mysql+{driver}://")
    options = {"collation": "utf8mb4_general_ci"} if driver == "mysqlconnector" else {}

    def opens(*_: Any) -> Any:
        return lab.client("a", autocommit=False) if driver == "pymysql" else any_posts.connector("a")

    more: dict[str, Any] = {"creator": opens} if opened_by == "creator" else {"connect_args": options}
    engine = sqlalchemy.create_engine(url, **more)
    if opened_by == "do_connect":
        sqlalchemy.event.listen(engine, "do_connect", opens)
    assert any_posts.wrap(engine, replicas=None) is engine
    if opened_by == "its url":
        assert [server.address for server in antipode.stores()[0].servers()] == [
            f"mysql://127.0.0.1:{lab.server('a').port}"
        ]
    lineage = antipode.Lineage([antipode.WriteId.position("blog-posts", *last(any_posts))])
    assert any_posts.look(lineage, 60).satisfied
    assert any_posts.wrap(engine, replicas=None) is engine
    with antipode.scope() as scope:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(INSERT))
        assert told(scope.lineage) == last(any_posts)
    engine.dispose()


@pytest.mark.parametrize("asked_before", [True, False])
def test_an_engine_that_leads_elsewhere_since_it_was_wrapped(any_posts: Posts, asked_before: bool) -> None:
    """BAR-52: a listener that was added since is asked where it leads."""
    import sqlalchemy

    lab = any_posts.lab
    engine = sqlalchemy.create_engine(lab.url("a").replace("mysql://", "mysql+pymysql://"))
    any_posts.wrap(engine, replicas=None)
    addresses = [f"mysql://127.0.0.1:{lab.server(name).port}" for name in ("a", "b1")]
    lineage = antipode.Lineage([antipode.WriteId.position("blog-posts", *last(any_posts))])
    if asked_before:
        assert judged(any_posts.look(lineage, 60)) == addresses[:1]
    sqlalchemy.event.listen(engine, "do_connect", lambda *_: lab.client("b1", autocommit=False))
    assert addresses[1] in judged(any_posts.look(lineage, 60))
    engine.dispose()


def judged(result: antipode.BarrierResult) -> list[str]:
    assert result.satisfied
    return [server.address for server in result.stores["blog-posts"].servers]
