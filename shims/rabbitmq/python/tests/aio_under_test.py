"""aio-pika as the conformance kit drives it: tasks of one event loop, in a thread beside the kit's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import aio_pika
import antipode_rabbitmq
from antipode.testing.under_test import Transaction
from antipode_lab.stores.rabbitmq import RabbitStore
from rabbit_regions import Link
from rabbit_under_test import EXCHANGE, RabbitUnderTest

_PATIENCE_S = 60.0


class AioRabbitUnderTest(RabbitUnderTest):
    """Writers, one channel for them all, are tasks in the scope of the thread that waits for them.

    `run_coroutine_threadsafe` starts a task in a copy of the calling thread's context, which holds that very scope.
    """

    exceptions: ClassVar[Mapping[str, str]] = {
        **RabbitUnderTest.exceptions,
        "open_transaction": "what the kit publishes is another task's than what it hands on, which is no violation "
        "(SCOPE-18); test_aio.py does both in one task",
    }

    def __init__(self, lab: RabbitStore) -> None:
        super().__init__(lab)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        super().close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def begin(self) -> None:
        super().begin()
        self._open: list[Any] = []
        self._plain = self._await(self._connected(self.a.url, robust=True))
        self._wrapped = antipode_rabbitmq.wrap(self._plain, store=self.name, track=True)

    def recover(self, *, spoiled: bool) -> None:
        for connection in self._open:
            self._await(connection.close())
        super().recover(spoiled=spoiled)

    # In the loop

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)

    async def _connected(self, url: str, *, robust: bool = False, confirms: bool = True) -> Any:
        """A plain channel on a connection of its own, which ends with the case."""
        connection: Any = await (aio_pika.connect_robust if robust else aio_pika.connect)(url)
        self._open.append(connection)
        return await connection.channel(publisher_confirms=confirms, on_return_raises=confirms)

    async def _publish(self, channel: Any, key: str, value: str) -> None:
        exchange = await channel.get_exchange(EXCHANGE, ensure=False)
        await exchange.publish(aio_pika.Message(f"{key}={value}".encode()), routing_key="")

    # Messages

    def write(self, key: str, value: str) -> None:
        self._await(self._publish(self._wrapped, key, value))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        plain = self._await(self._connected(self.a.url, confirms=False))
        channel = antipode_rabbitmq.wrap(plain, store=self.name, track=True)
        open_one = channel.transaction()
        self._await(open_one.select())
        try:
            yield _Transaction(self, channel)
        except BaseException:
            self._await(open_one.rollback())
            raise
        self._await(open_one.commit())

    def _commit_and_roll_back(self, key: str, value: str) -> None:
        plain = self._await(self._connected(self.a.url, confirms=False))
        channel = antipode_rabbitmq.wrap(plain, store=self.name, track=True)
        for end in ("commit", "rollback"):
            open_one = channel.transaction()
            self._await(open_one.select())
            self._await(self._publish(channel, key if end == "commit" else f"{key}-never", value))
            self._await(getattr(open_one, end)())

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        link = Link(self.a)
        plain = self._await(self._connected(link.url))
        channel = antipode_rabbitmq.wrap(plain, store=self.name, track=True)
        link.silence()
        cut = threading.Timer(0.3, link.cut)
        cut.start()
        try:
            self._await(self._publish(channel, key, value))
        finally:
            cut.join()

    def write_refused(self, key: str) -> None:
        exchange = self._wrapped.default_exchange
        self._await(exchange.publish(aio_pika.Message(b""), routing_key=f"no-such-queue-{key}", mandatory=True))


class _Transaction:
    def __init__(self, store: AioRabbitUnderTest, channel: Any) -> None:
        self._store = store
        self._channel = channel

    def read(self, key: str) -> object:
        """Taking a message is no write."""
        return None

    def write(self, key: str, value: str) -> None:
        self._store._await(self._store._publish(self._channel, key, value))
