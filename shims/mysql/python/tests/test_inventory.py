"""Every public way of the clients is known: what sends a statement records and waits (spec SHIM-43, 44, SHIM-51)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import antipode
import mysql.connector.aio.cursor
import mysql.connector.cursor
import pymysql
import pytest
from aio_client import run_in
from antipode import BarrierTimeout
from antipode.testing.inventory import check_makes_none
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql import connector_aio, connector_client, pools, pymysql_client
from mysql.connector import aio, pooling
from mysql.connector.aio import pooling as aio_pooling
from sql_regions import STORE, Posts, until
from things import INSERT, make_things

STATEMENTS = {
    *("query", "cursor", "begin", "commit", "rollback", "autocommit"),
    *("cmd_query", "cmd_query_iter", "cmd_stmt_prepare", "cmd_stmt_execute", "info_query", "start_transaction"),
    *("database", "sql_mode", "time_zone"),  # setting one sends a statement of theirs
    *("set_autocommit", "set_database", "set_sql_mode", "set_time_zone"),
    *("execute", "executemany", "executemulti", "callproc"),
    *("get_connection", "initialize_pool"),  # pools: of what they give out
}
"""They end in `query` or `cmd_query`, or `cmd_stmt_execute`: see `SENDS`."""
RESULTS = {
    *("next_result", "nextset", "fetchone", "fetchmany", "fetchall", "fetchall_unbuffered", "read_next", "scroll"),
    *("get_row", "get_rows", "cmd_stmt_fetch", "consume_results", "handle_unread_result"),
    *("fetchsets", "stored_results", "reset", "cmd_stmt_reset", "cmd_stmt_close", "cmd_stmt_send_long_data"),
}
"""The rest of what a statement began that has waited."""
SESSION = {
    *("connect", "reconnect", "ping", "close", "disconnect", "shutdown", "cmd_quit", "reset_session"),
    *(
        "cmd_reset_connection",
        "cmd_change_user",
        "select_db",
        "cmd_init_db",
        "add_connection",
        "close_pool",
        "set_config",
    ),
}
"""They begin, end or change a session: `test_effects.py`, `test_one_client.py`."""
NO_DATA = {
    *("kill", "cmd_process_kill", "cmd_process_info", "cmd_ping", "cmd_debug", "cmd_refresh", "cmd_shutdown"),
    *("cmd_statistics", "show_warnings", "get_warnings", "fetchwarnings", "set_charset", "set_character_set"),
    *(
        "set_charset_collation",
        "write_packet",
        "mogrify",
        "escape",
        "literal",
        "affected_rows",
        "insert_id",
        "thread_id",
    ),
    *(
        "character_set_name",
        "get_autocommit",
        "get_host_info",
        "get_proto_info",
        "get_server_info",
        "open",
        "dict_type",
    ),
    *("get_server_version", "get_self", "get_database", "get_sql_mode", "get_time_zone", "config", "set_login"),
    *("set_unicode", "set_converter_class", "set_client_flags", "set_allow_local_infile_in_path", "isset_client_flag"),
    *("can_consume_results", "charset", "charset_id", "client_flags", "collation", "connection_id", "converter_class"),
    *("have_next_result", "in_transaction", "is_connected", "is_socket_connected", "is_secure", "loop", "add_cursor"),
    *(
        "remove_cursor",
        "pool_config_version",
        "python_charset",
        "query_attrs",
        "query_attrs_append",
        "query_attrs_clear",
    ),
    *("query_attrs_remove", "raise_on_warnings", "read_timeout", "write_timeout", "server_host", "server_info"),
    *("server_port", "server_version", "unix_socket", "unread_result", "use_unicode", "user", "setinputsizes"),
    *("setoutputsize", "setoutputsizes", "max_stmt_length", "add_attribute", "clear_attributes", "get_attributes"),
    *("remove_attribute", "column_names", "description", "getlastrowid", "lastrowid", "rowcount", "statement"),
    *("warning_count", "warnings", "with_rows", "can_reset_session", "pool_name", "pool_size"),
}
"""They write no data and return none of the store's."""
CURSORS = [
    getattr(module, name)
    for module in (mysql.connector.cursor, mysql.connector.aio.cursor)
    for name in dir(module)
    if name.startswith("MySQLCursor")
]
CLASSES = [
    *(pymysql.Connection, pymysql.cursors.SSDictCursor, pymysql.cursors.DictCursor, *CURSORS),
    *(mysql.connector.MySQLConnection, aio.connection.MySQLConnection),
    *(pooling.MySQLConnectionPool, pooling.PooledMySQLConnection),
    *(aio_pooling.MySQLConnectionPool, aio_pooling.PooledMySQLConnection),
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_public_way_is_known(kind: type) -> None:
    """A new release of a client that brings a way fails here, until somebody has seen what it does."""
    public = {name for name in dir(kind) if not name.startswith("_") and not isinstance(getattr(kind, name), type)}
    assert public - (STATEMENTS | RESULTS | SESSION | NO_DATA) == set()


def test_no_way_is_known_twice() -> None:
    tables = [STATEMENTS, RESULTS, SESSION, NO_DATA]
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_the_class_of_a_wrapped_connection_makes_no_other() -> None:
    """SHIM-50"""
    check_makes_none(pymysql_client.RecordingConnection, connector_client.RecordingConnection)
    check_makes_none(pools.RecordingPool, pools.RecordingPooled)
    check_makes_none(connector_aio.RecordingConnection, connector_aio.RecordingPool, connector_aio.RecordingPooled)


def of_prepared(client: Any, sql: str) -> Any:
    with client.cursor(prepared=True) as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else None


def of_iter(client: Any, sql: str) -> None:
    for result in client.cmd_query_iter(sql):
        if "columns" in result:
            client.get_rows()


async def of_aio_iter(client: Any, sql: str) -> None:
    async for result in client.cmd_query_iter(sql):
        if "columns" in result:
            await client.get_rows()


async def of_aio(client: Any, sql: str, **options: Any) -> None:
    cursor = await client.cursor(**options)
    await cursor.execute(sql)
    if cursor.description:
        await cursor.fetchall()
    await cursor.close()


def of_query(client: Any, sql: str) -> None:
    if "columns" in client.cmd_query(sql):
        client.get_rows()


SENDS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "query": ("pymysql", lambda client, sql: client.query(sql)),
    "query of octets": ("pymysql", lambda client, sql: client.query(sql.encode())),
    "cmd_query": ("connector", of_query),
    "cmd_query_iter": ("connector", of_iter),
    "cmd_stmt_execute": ("connector", of_prepared),
    "asyncio": ("aio", of_aio),
    "asyncio iter": ("aio", of_aio_iter),
    "asyncio prepared": ("aio", lambda client, sql: of_aio(client, sql, prepared=True)),
}


@pytest.mark.parametrize("way", SENDS)
def test_what_sends_records_and_waits(any_lab: SqlStore, any_posts: Posts, way: str) -> None:
    make_things(any_lab)
    client, send = SENDS[way]

    def sent(connection: Any, sql: str) -> None:
        if client == "aio":
            run_in(connection.loop, send(connection.inner, sql))
        else:
            send(connection, sql)

    writer = any_posts.wrap(any_posts.open(client, "a", autocommit=True))
    reader = any_posts.wrap(any_posts.open(client, "b1", autocommit=True), wait_on_read=True, timeout=0.05)
    until(lambda: any_posts.shows("b1", "nothing") is None, 60)
    any_posts.lab.partition("b1")
    with antipode.scope() as scope:
        sent(writer, INSERT)
        assert [each.version for each in scope.lineage.of_store(STORE)] == [any_posts.last()]
        with pytest.raises(BarrierTimeout):
            sent(reader, "SELECT i FROM things")
    any_posts.lab.heal("b1")
    for each in (writer, reader):
        with suppress(pymysql.err.Error):
            each.close()
