"""Posts behind a client that blocks: each call in a thread, with the request's context."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

from antipode_benchmarks.postnotification.options import Setup

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
THREADS = 16


class BlockingPosts(ABC, Generic[C]):
    """Reads go to the replicas in turn. A subclass says what a client is, and how it reads and writes."""

    shared: ClassVar[bool] = False
    """Whether threads may share a client; else each has clients of its own."""

    def __init__(self, setup: Setup, region: str) -> None:
        self.setup = setup
        self._turns = cycle(["a"] if region == "a" else list(setup.options.replicas))
        self._clients: Any = SimpleNamespace() if self.shared else threading.local()
        self._connecting = threading.Lock()
        # More than asyncio's own: with wait on read each of them may be held for as long as the replica lags.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="posts")

    @abstractmethod
    def connect(self, url: str) -> C:
        """A client of the server, plain or wrapped (`self.setup.antipode`)."""

    @abstractmethod
    def put(self, client: C, key: str, body: bytes) -> None:
        """Writes a post; returns when the store has acknowledged it."""

    @abstractmethod
    def get(self, client: C, key: str) -> bytes | None:
        """Reads a post; None where there is none."""

    async def write(self, key: str, body: bytes) -> None:
        """Writes at the primary."""
        await self._in_thread(self._write, key, body)

    async def read(self, key: str) -> tuple[bytes | None, str]:
        """Reads at the next replica."""
        name = next(self._turns)
        return await self._in_thread(self._read, name, key), name

    async def _in_thread(self, function: Callable[P, R], *arguments: P.args, **words: P.kwargs) -> R:
        # The request's context goes with the call, as with asyncio.to_thread: its scope, and its span.
        call = partial(contextvars.copy_context().run, function, *arguments, **words)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _client(self, name: str) -> C:
        client: C | None = getattr(self._clients, name, None)
        if client is None:
            with self._connecting:
                client = getattr(self._clients, name, None)
                if client is None:
                    client = self.connect(self.setup.posts[name])
                    setattr(self._clients, name, client)
        return client

    def _write(self, key: str, body: bytes) -> None:
        self.put(self._client("a"), key, body)

    def _read(self, name: str, key: str) -> bytes | None:
        return self.get(self._client(name), key)
