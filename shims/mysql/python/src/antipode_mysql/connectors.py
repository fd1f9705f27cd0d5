"""What of mysql-connector-python can be wrapped; imported only where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antipode import ConfigurationError
from mysql.connector import aio
from mysql.connector.abstracts import MySQLConnectionAbstract
from mysql.connector.connection import MySQLConnection
from mysql.connector.pooling import MySQLConnectionPool, PooledMySQLConnection

from antipode_mysql import connector_aio, pools
from antipode_mysql.binding import Binding
from antipode_mysql.connector_client import wrap_connection
from antipode_mysql.connector_driving import share_pool
from antipode_mysql.leading import look_at_words, targets_of_words
from antipode_mysql.targets import Target, target_of

_C_EXTENSION = (
    "connections of mysql-connector-python's C extension cannot be wrapped: nothing can be asked in the packet of a "
    "statement. Connect with use_pure=True"
)


def wrap(client: Any, bind: Callable[..., Binding], follow: Callable[[Any], object]) -> Any:
    """Return the wrapped connection or pool; None where it is neither.

    bind: makes the tie of a connection that leads to a target; `is_named` says that a pool names its servers. follow:
    has barriers look where a pool leads.
    """
    if isinstance(client, MySQLConnection):
        return wrap_connection(client, bind(target_of(client)))
    if isinstance(client, PooledMySQLConnection):
        cnx = getattr(client._cnx, "_antipode_plain", client._cnx)
        _refuse(cnx)
        pooled = object.__new__(PooledMySQLConnection)
        pooled.__dict__.update(client.__dict__, _cnx=cnx)
        return pools.wrap_pooled(pooled, bind(target_of(cnx)))
    kind: Any = type(client)
    if isinstance(client, MySQLConnectionPool):
        if client._cnx_config.get("use_pure") is False:
            raise ConfigurationError(_C_EXTENSION, code="AP501")
        binding = bind(targets_of_pool(client)[0], is_named=True)
        follow(client)
        return share_pool(client, pools.recording_pool_class(kind), binding)
    if isinstance(client, aio.connection.MySQLConnection):
        return connector_aio.wrap_connection(client, bind(target_of(client)))
    if isinstance(client, aio.pooling.PooledMySQLConnection):
        cnx = getattr(client._cnx, "_antipode_plain", client._cnx)
        return connector_aio.wrap_pooled(client._cnx_pool, cnx, bind(target_of(cnx)))
    if isinstance(client, aio.pooling.MySQLConnectionPool):
        binding = bind(targets_of_pool(client)[0], is_named=True)
        follow(client)
        return share_pool(client, connector_aio.recording_pool_class(kind), binding)
    _refuse(client)
    return None


def look_at_pool(pool: Any) -> object:
    """Return what decides where a pool leads; its words may be set anew while it is used."""
    return look_at_words(pool._cnx_config)


def targets_of_pool(pool: Any) -> list[Target]:
    """Return the servers that a pool's words name. Raises ConfigurationError for words that name none."""
    found = targets_of_words(pool._cnx_config, "mysqlconnector") if pool._cnx_config else None
    if found is None:
        raise ConfigurationError(
            "the pool's words name no server (set_config() gives them; dns_srv= names a record that lists servers): "
            "wrap it when they do",
            code="AP501",
        )
    return found


def _refuse(client: Any) -> None:
    if isinstance(client, MySQLConnectionAbstract) and not isinstance(client, MySQLConnection):
        raise ConfigurationError(_C_EXTENSION, code="AP501")
