"""mysql-connector-python's asyncio connections for the tests of blocking ones: an event loop round each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import mysql.connector.aio
from antipode_lab.stores._sql_store import SqlStore

_R = TypeVar("_R")


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_in(loop: asyncio.AbstractEventLoop, awaitable: Awaitable[_R]) -> _R:
    """Runs it to its end."""

    async def act() -> _R:
        return await awaitable

    if not _is_running():
        return loop.run_until_complete(act())
    # The test is a coroutine itself: another thread runs this loop, in the same scope.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, loop.run_until_complete, act()).result()


class Blocking:
    """A connection, or a cursor of it, each of whose coroutines is run to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, inner: Any) -> None:
        self.loop = loop
        self.inner = inner

    def _run(self, awaitable: Awaitable[_R]) -> _R:
        return run_in(self.loop, awaitable)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            result = self._run(found(*args, **kwargs))
            return Blocking(self.loop, result) if name == "cursor" else result

        return call

    @property
    def autocommit(self) -> bool:
        return bool(self._run(self.inner.get_autocommit()))

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._run(self.inner.set_autocommit(value))

    def __enter__(self) -> Blocking:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.inner.close())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


def blocking(lab: SqlStore, name: str, **arguments: Any) -> Blocking:
    """A plain asyncio connection, in a loop of its own."""
    settled = {"host": "127.0.0.1", "port": lab.server(name).port, "user": "root", "database": "lab"}
    charset = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci", "ssl_disabled": True}
    loop = asyncio.new_event_loop()
    connecting = mysql.connector.aio.connect(**{**settled, **charset, **arguments})
    return Blocking(loop, run_in(loop, connecting))


def inner(client: Any) -> Any:
    """The connection itself."""
    return client.inner if isinstance(client, Blocking) else client
