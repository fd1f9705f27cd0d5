"""One connection of a shim's own, to whichever of its wrapped servers takes writes: where branches are closed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from antipode._base import logs
from antipode._model.errors import ConfigurationError
from antipode._store.contract import Server, Store

_T = TypeVar("_T")
TIMEOUT_S: Final = 1.0
"""How long one question may take that `connect` makes a connection for."""
_PATIENCE_S: Final = 3.0


class ReadOnlyError(Exception):
    """What a shim raises for a server that takes no writes; its words are the server's."""


class RowWriter:
    """Runs a shim's statements at the primary. Used by any thread; they take turns, none waits for long."""

    def __init__(
        self,
        store: Store,
        connect: Callable[[Server], Any],
        end: Callable[[Any], None],
        broken: tuple[type[Exception], ...],
    ) -> None:
        """`connect` opens a connection to a server, `end` closes one; `broken` is raised where one is of no use."""
        self._store = store
        self._connect = connect
        self._end = end
        self._broken = broken
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._open: tuple[str, Any] | None = None
        """The address of the server that took the last row, and the connection to it."""

    def run(self, ask: Callable[[Any], _T]) -> _T:
        """What `ask` returns for a connection to a server that takes writes. It may be called twice for one row.

        `ask` raises ReadOnlyError at a replica. Raises ConfigurationError where all are, what the client raises else.
        """
        if self._process != os.getpid():  # in the child of a fork: the connection is its parent's
            self._lock, self._process, self._open = threading.Lock(), os.getpid(), None
        if not self._lock.acquire(timeout=_PATIENCE_S):
            raise TimeoutError(f"{self._store.name}: branches are being closed, and its primary does not answer")
        try:
            return self._run(ask)
        finally:
            self._lock.release()

    def _run(self, ask: Callable[[Any], _T]) -> _T:
        refused = ""
        failure: Exception | None = None
        for server in self._servers():
            for _ in range(2):  # a connection that was idle may have been ended meanwhile
                fresh = self._open is None or self._open[0] != server.address
                try:
                    return ask(self._connection(server))
                except ReadOnlyError as error:
                    self._close()
                    refused = f"{server.address}: {error}"
                    break
                except self._broken as error:
                    self._close()
                    failure = error
                    if fresh:
                        break
                except BaseException:
                    self._close()
                    raise
        if failure is not None:
            raise failure
        raise ConfigurationError(
            f"no server of {self._store.name} that this process has wrapped takes writes: branches are closed at its "
            f"primary; wrap a client of that. {refused}".rstrip(),
            code="AP512",
        )

    def each(self, ask: Callable[[Any, Server], None]) -> None:
        """Asks every server that can be reached, each on a connection for this alone; raises what `ask` raises.

        One that goes while it is asked could not be reached (BRANCH-24).
        """
        for server in self._servers():
            try:
                connection = self._connect(server)
                try:
                    ask(connection, server)
                finally:
                    self._end(connection)
            except self._broken as error:
                logs.info(
                    f"branches {server.address}",
                    f"{server.address} does not answer yet ({error}); whether it can hold branches shows later",
                    code="AP507",
                )

    def end(self) -> None:
        """Gives the connection up; never raises."""
        with self._lock:
            self._close()

    def _servers(self) -> list[Server]:
        """The servers behind wrapped clients, the one that took the last row first."""
        last = None if self._open is None else self._open[0]
        return sorted(self._store.wrapped_servers(), key=lambda server: server.address != last)

    def _connection(self, server: Server) -> Any:
        if self._open is None or self._open[0] != server.address:
            self._close()
            self._open = (server.address, self._connect(server))
        return self._open[1]

    def _close(self) -> None:
        last, self._open = self._open, None
        if last is not None:
            self._end(last[1])
