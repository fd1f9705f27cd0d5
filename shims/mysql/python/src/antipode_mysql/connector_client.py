"""mysql-connector-python: a connection that records its writes. It shares all state with the one that was wrapped."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, Final

from antipode.shim import refuse_making
from mysql.connector.connection import MySQLConnection

from antipode_mysql.binding import Binding
from antipode_mysql.connector_driving import SLOTS, ConnectorDriving, octets, share
from antipode_mysql.driving import BlockingDriving

_Plain: Any = MySQLConnection  # its inner parts may be overridden
_NOTHING: Final = object()


class RecordingConnection(ConnectorDriving, BlockingDriving, _Plain):  # type: ignore[misc]
    """A `MySQLConnection` whose writes join the scope."""

    __init__ = refuse_making

    def cmd_query_iter(self, statements: Any, **kwargs: Any) -> Generator[Any, None, None]:
        results = super().cmd_query_iter(statements, **kwargs)
        first = self._antipode_do(octets(statements), lambda: next(results, _NOTHING), self._antipode_several)
        if first is not _NOTHING:
            yield first
            yield from results

    def _open_connection(self) -> None:
        self._antipode.unknown()
        self._antipode_renew()
        super()._open_connection()
        self._antipode_connected(self._antipode.flags)
        self._antipode.opened(self._antipode_plain)

    def _antipode_write(self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None) -> Any:
        self._socket.send(payload, number, compressed, timeout or self._write_timeout)

    def _antipode_packet(self, timeout: int | None = None) -> Any:
        return self._socket.recv(timeout or self._read_timeout)

    def _antipode_cut(self) -> None:
        self.shutdown()


@cache
def recording_class(plain: Any) -> Any:
    """A class of the application's own connection's class, whose state is elsewhere."""
    if issubclass(plain, RecordingConnection):
        return plain
    bases = (RecordingConnection,) if plain is MySQLConnection else (RecordingConnection, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": SLOTS, "__module__": __name__})


def wrap_connection(plain: Any, binding: Binding) -> Any:
    """A connection that shares its state with the plain one."""
    kind: Any = type(plain)
    return share(plain, recording_class(kind), binding)
