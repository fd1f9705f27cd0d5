"""Django's databases: each connection that Django opens for an alias is wrapped as it is made."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.backends.postgresql.base import DatabaseWrapper  # type: ignore[import-untyped]
from django.db.backends.signals import connection_created  # type: ignore[import-untyped]

from antipode_postgresql.connections import RecordingCursor, record
from antipode_postgresql.pools import idle_of_pool
from antipode_postgresql.recording import recording_class
from antipode_postgresql.targets import Target, environment, reached_by, targets_of


def is_database(client: Any) -> bool:
    """Return whether this is one of `django.db.connections`, and one of PostgreSQL's."""
    return isinstance(client, DatabaseWrapper)


def targets_of_database(database: Any) -> list[Target] | None:
    """Return the servers that the alias leads to; None where only connecting can tell."""
    return targets_of("", database.get_connection_params())


def look_at_database(database: Any) -> object:
    """Return what decides where an alias leads."""
    return dict(database.settings_dict), environment()


def ask_database(database: Any) -> list[Target]:
    """Return the server that one more connection of the alias reaches. Raises what libpq says."""
    return reached_by("", database.get_connection_params())


def idle_of_database(database: Any) -> list[Any]:
    """Return the connections that the alias' pool holds, where it has one."""
    pool = getattr(database, "_connection_pools", {}).get(database.alias)
    return [] if pool is None else idle_of_pool(pool)


def record_database(database: Any, join: Any) -> Any:
    """Have every connection of this alias recorded, of all threads; return the database itself."""

    def record_new(*, connection: Any, **_: Any) -> None:
        if connection.alias == database.alias and connection.connection is not None:
            plain = getattr(connection.connection, "_antipode_plain", connection.connection)
            connection.connection = record(plain, join(plain))
            connection.create_cursor = partial(_create_cursor, connection)

    uid = f"antipode {database.alias}"
    connection_created.disconnect(dispatch_uid=uid)
    connection_created.connect(record_new, weak=False, dispatch_uid=uid)
    record_new(connection=database)
    return database


def _create_cursor(database: Any, name: str | None = None) -> Any:
    """Make Django's cursor; of those at the server, which it makes by hand, one that records."""
    cursor = type(database).create_cursor(database, name)
    if not isinstance(cursor, RecordingCursor):
        cursor.__class__ = recording_class(type(cursor), RecordingCursor)
    return cursor
