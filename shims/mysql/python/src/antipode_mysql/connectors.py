"""What of mysql-connector-python can be wrapped; imported only where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antipode.errors import ConfigurationError
from mysql.connector import aio
from mysql.connector.abstracts import MySQLConnectionAbstract
from mysql.connector.connection import MySQLConnection
from mysql.connector.pooling import MySQLConnectionPool, PooledMySQLConnection

from antipode_mysql import connector_aio, pools
from antipode_mysql.binding import Binding
from antipode_mysql.connector_client import wrap_connection
from antipode_mysql.targets import Target, target_of

_C_EXTENSION = (
    "connections of mysql-connector-python's C extension cannot be wrapped: nothing can be asked in the packet of a "
    "statement. Connect with use_pure=True"
)


def wrap(client: Any, bind: Callable[[Target], Binding]) -> Any:
    """The wrapped connection or pool; None where it is neither."""
    if isinstance(client, MySQLConnection):
        return wrap_connection(client, bind(target_of(client)))
    if isinstance(client, PooledMySQLConnection):
        cnx = getattr(client._cnx, "_antipode_plain", client._cnx)
        _refuse(cnx)
        pooled = object.__new__(PooledMySQLConnection)
        pooled.__dict__.update(client.__dict__, _cnx=cnx)
        return pools.wrap_pooled(pooled, bind(target_of(cnx)))
    if isinstance(client, MySQLConnectionPool):
        settled = client._cnx_config
        if settled.get("use_pure") is False:
            raise ConfigurationError(_C_EXTENSION, code="AP501")
        return pools.wrap_pool(client, bind(target_of(settled)))
    if isinstance(client, aio.connection.MySQLConnection):
        return connector_aio.wrap_connection(client, bind(target_of(client)))
    if isinstance(client, aio.pooling.PooledMySQLConnection):
        cnx = getattr(client._cnx, "_antipode_plain", client._cnx)
        return connector_aio.wrap_pooled(client._cnx_pool, cnx, bind(target_of(cnx)))
    if isinstance(client, aio.pooling.MySQLConnectionPool):
        return connector_aio.wrap_pool(client, bind(target_of(client._cnx_config)))
    _refuse(client)
    return None


def _refuse(client: Any) -> None:
    if isinstance(client, MySQLConnectionAbstract) and not isinstance(client, MySQLConnection):
        raise ConfigurationError(_C_EXTENSION, code="AP501")
