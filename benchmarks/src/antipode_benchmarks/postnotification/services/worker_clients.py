"""How a worker touches its stores: by blocking clients that threads share, or asyncio's in a loop for each thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable
from typing import Any, Final, Protocol

import antipode
import antipode_redis
import redis
import redis.asyncio

from antipode_benchmarks.postnotification.options import Setup

HERE: Final = "here"
"""Among a store's servers: the one at which the worker reads, and for which its barriers wait."""


class Clients(Protocol):
    """Wrapped clients of every server, in the scope of the thread that asks."""

    def set(self, store: str, server: str, key: str, value: str) -> None:
        """SET at a server."""

    def get(self, store: str, key: str) -> bytes | None:
        """GET at the server of this region."""

    def barrier(self, timeout: float, **policies: Any) -> antipode.BarrierResult:
        """Waits for this region."""


def clients_of(setup: Setup) -> Clients:
    """As the setup says."""
    return _Blocking(setup) if setup.clients == "blocking" else _Asynchronous(setup)


class _Wrapping:
    """A wrapped client of each server that was asked for; those of this region from the start: barriers know them."""

    def __init__(self, setup: Setup, kind: Any) -> None:
        self._stores = setup.stores
        self._kind = kind
        self._rest: dict[str, Any] = {"rest": "envelope", "envelope_keys": "*"} if setup.rest == "envelope" else {}
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}
        for store in setup.stores:
            self.of(store, HERE)

    def of(self, store: str, server: str) -> Any:
        """A client of the kind, as redis-py makes it."""
        servers = self._stores[store]
        with self._lock:
            if (store, server) not in self._clients:
                self._clients[store, server] = antipode_redis.wrap(
                    self._kind.from_url(servers[server]), store=store, replicas=[servers[HERE]], **self._rest
                )
            return self._clients[store, server]


class _Blocking:
    def __init__(self, setup: Setup) -> None:
        self._clients = _Wrapping(setup, redis.Redis)

    def set(self, store: str, server: str, key: str, value: str) -> None:
        self._clients.of(store, server).set(key, value)

    def get(self, store: str, key: str) -> bytes | None:
        found: bytes | None = self._clients.of(store, HERE).get(key)
        return found

    def barrier(self, timeout: float, **policies: Any) -> antipode.BarrierResult:
        return antipode.barrier(timeout=timeout, **policies)


class _Asynchronous:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._own = threading.local()
        self._here()

    def _here(self) -> tuple[asyncio.Runner, _Wrapping]:
        """This thread's loop, and its clients: they belong to one."""
        if not hasattr(self._own, "clients"):
            self._own.runner = asyncio.Runner()
            self._own.clients = _Wrapping(self._setup, redis.asyncio.Redis)
        return self._own.runner, self._own.clients

    def set(self, store: str, server: str, key: str, value: str) -> None:
        runner, clients = self._here()
        _run(runner, clients.of(store, server).set(key, value))

    def get(self, store: str, key: str) -> bytes | None:
        runner, clients = self._here()
        found: bytes | None = _run(runner, clients.of(store, HERE).get(key))
        return found

    def barrier(self, timeout: float, **policies: Any) -> antipode.BarrierResult:
        result: antipode.BarrierResult = _run(self._here()[0], antipode.barrier_async(timeout=timeout, **policies))
        return result


def _run(runner: asyncio.Runner, result: Awaitable[Any]) -> Any:
    async def awaited() -> Any:
        return await result

    return runner.run(awaited(), context=contextvars.copy_context())  # else that of the loop's first call
