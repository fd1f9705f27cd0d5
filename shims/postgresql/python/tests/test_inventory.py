"""Every public way of psycopg's, its pools' and SQLAlchemy's classes is known (SHIM-43, SHIM-44, SHIM-51)."""

from __future__ import annotations

from typing import Any

import antipode
import psycopg
import psycopg_pool
import pytest
from antipode.testing.inventory import check_inventory, check_makes_none, public_ways
from antipode_postgresql import pools
from antipode_postgresql.connections import (
    AsyncRecordingConnection,
    AsyncRecordingCursor,
    RecordingConnection,
    RecordingCursor,
)
from antipode_postgresql.engines import RecordingEngine, RecordingFairy, RecordingPool
from sqlalchemy import pool
from sqlalchemy.engine import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

SYNC_CURSORS = [
    *(psycopg.Cursor, psycopg.ServerCursor, psycopg.ClientCursor, psycopg.RawCursor, psycopg.RawServerCursor),
]
ASYNC_CURSORS = [
    *(psycopg.AsyncCursor, psycopg.AsyncServerCursor, psycopg.AsyncClientCursor),
    *(psycopg.AsyncRawCursor, psycopg.AsyncRawServerCursor),
]
CURSORS = {
    "they send statements": {"copy", "execute", "executemany", "stream"},
    "the rest of what a statement began: test_past_moments.py": {
        *("fetchall", "fetchmany", "fetchone", "nextset", "results", "scroll", "set_result"),
    },
    "they hand on": {"connection"},
    "neither": {
        *("adapters", "arraysize", "close", "closed", "description", "format", "itersize", "mogrify", "name"),
        *("pgresult", "row_factory", "rowcount", "rownumber", "scrollable", "setinputsizes", "setoutputsize"),
        *("statusmessage", "withhold"),
    },
}
CONNECTIONS = {
    "they send statements, by cursors of ours": {"cursor", "execute"},
    "the driver's own statements: test_clients.py, test_shared.py": {
        *("commit", "rollback", "transaction", "tpc_begin", "tpc_commit", "tpc_prepare", "tpc_recover"),
        *("tpc_rollback", "pipeline"),
    },
    "they go round, as the page says": {"fileno", "wait"},
    "refused: it makes one by its class": {"connect"},
    "neither": {
        *("adapters", "add_notice_handler", "add_notify_handler", "autocommit", "broken", "cancel", "cancel_safe"),
        *("close", "closed", "deferrable", "info", "isolation_level", "notifies", "prepare_threshold"),
        *("prepared_max", "read_only", "remove_notice_handler", "remove_notify_handler", "set_autocommit"),
        *("set_deferrable", "set_isolation_level", "set_read_only", "xid", "connection"),
    },
}
POOLS = {
    "they hand on": {"connection", "getconn", "putconn"},
    "neither": {
        *("check", "check_connection", "close", "closed", "drain", "get_stats", "max_size", "min_size", "open"),
        *("pop_stats", "reconnect_failed", "resize", "run_task", "schedule_task", "wait", "worker"),
    },
}
ENGINES = {
    "they hand on": {"begin", "connect", "engine", "execution_options", "pool", "raw_connection", "sync_engine"},
    "neither": {
        *("clear_compiled_cache", "dialect", "dispatch", "dispose", "driver", "echo", "get_execution_options"),
        *("logging_name", "name", "update_execution_options", "url"),
    },
}
INSIDE = {
    "they hand on": {"connect", "connection", "cursor", "dbapi_connection", "driver_connection", "recreate"},
    "neither": {
        *("checkedin", "checkedout", "close", "detach", "dispatch", "dispose", "info", "invalidate", "is_detached"),
        *("is_valid", "logging_name", "overflow", "record_info", "size", "status", "timeout"),
    },
}
"""SQLAlchemy's pools, and the proxies in which they hand connections out."""
POOL_CLASSES: list[Any] = [
    *(pool.QueuePool, pool.NullPool, pool.StaticPool, pool.SingletonThreadPool, pool.AssertionPool),
    pool.AsyncAdaptedQueuePool,
]


@pytest.mark.parametrize(
    ("kinds", "tables"),
    [
        ([*SYNC_CURSORS, *ASYNC_CURSORS], CURSORS),
        ([psycopg.Connection, psycopg.AsyncConnection], CONNECTIONS),
        ([psycopg_pool.ConnectionPool, psycopg_pool.NullConnectionPool, psycopg_pool.AsyncConnectionPool], POOLS),
        ([Engine, AsyncEngine], ENGINES),
        ([*POOL_CLASSES, pool.base._ConnectionFairy], INSIDE),
    ],
    ids=["cursors", "connections", "pools", "engines", "SQLAlchemy's pools"],
)
def test_every_public_way_is_known(kinds: list[type], tables: dict[str, set[str]]) -> None:
    """SHIM-51: a new release of a client that brings one fails here."""
    check_inventory(public_ways(kinds), tables)


@pytest.mark.parametrize(
    ("mixin", "kinds", "names"),
    [
        (RecordingCursor, SYNC_CURSORS, CURSORS["they send statements"]),
        (AsyncRecordingCursor, ASYNC_CURSORS, CURSORS["they send statements"]),
        (RecordingConnection, [psycopg.Connection], {"connect", "cursor", "pipeline"}),
        (AsyncRecordingConnection, [psycopg.AsyncConnection], {"connect", "cursor", "pipeline"}),
        (RecordingEngine, [Engine], {"execution_options", "raw_connection"}),
        (RecordingPool, POOL_CLASSES, {"connect", "recreate"}),
        (RecordingFairy, [pool.base._ConnectionFairy], {"driver_connection"}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_sends_or_hands_on_is_ours(mixin: type, kinds: list[type], names: set[str]) -> None:
    """SHIM-51: each such way of a wrapped object is another one than the plain object's."""
    for kind in kinds:
        made = type(kind.__name__, (mixin, kind), {"__slots__": ()})
        for name in names:
            assert getattr(made, name) is not getattr(kind, name), f"{kind.__name__}.{name}"


@pytest.mark.parametrize(
    ("mixin", "kind"),
    [
        (RecordingConnection, psycopg.Connection),
        (AsyncRecordingConnection, psycopg.AsyncConnection),
        (pools.RecordingPool, psycopg_pool.ConnectionPool),
        (pools.AsyncRecordingPool, psycopg_pool.AsyncConnectionPool),
        (RecordingEngine, Engine),
        (RecordingPool, pool.QueuePool),
    ],
)
def test_the_class_of_a_wrapped_object_makes_no_other(mixin: type, kind: type) -> None:
    """SHIM-50: what it made recorded nothing, and said nothing."""
    made: Any = type(kind.__name__, (mixin, kind), {"__slots__": ()})
    check_makes_none(made)
    if hasattr(kind, "cancel"):
        with pytest.raises(antipode.ConfigurationError, match="AP505"):
            made.connect("")
