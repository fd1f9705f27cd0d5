"""What the tests share: a region's broker, a consumer in a thread, a replicated store to depend on."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode_rabbitmq
import pika
from antipode import memory
from antipode_lab.stores.rabbitmq import RabbitStore


def wait_for(what: str, condition: Callable[[], Any], timeout: float = 10.0) -> Any:
    """Returns what the condition returns as soon as it is true."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.005)
    return found


class Region:
    """One region's broker, as a test uses it: connections that end with the test, queues of its own."""

    def __init__(self, lab: RabbitStore, name: str) -> None:
        self.lab = lab
        self.name = name
        self._connections: list[Any] = []
        self.queues: list[str] = []
        self._own: Any = None

    @property
    def url(self) -> str:
        return self.lab.url(self.name)

    def connection(self, **parameters: Any) -> Any:
        connection = self.lab.connection(self.name, **parameters)
        self._connections.append(connection)
        return connection

    def channel(self, **parameters: Any) -> Any:
        return self.connection(**parameters).channel()

    def wrapped(self, store: str = "notifications", **options: Any) -> Any:
        return antipode_rabbitmq.wrap(self.channel(), store=store, **options)

    def queue(self, **arguments: Any) -> str:
        """A new queue, deleted at the test's end."""
        name = f"q-{uuid.uuid4().hex[:12]}"
        wanted = {key.replace("_", "-"): value for key, value in arguments.items()}
        self.own.queue_declare(name, durable=True, arguments=wanted)
        self.queues.append(name)
        return name

    @property
    def own(self) -> Any:
        """A plain channel of the test's own, which may leave it alone for long."""
        if self._own is None or self._own.is_closed:
            self._own = self.channel(heartbeat=0)
        return self._own

    def exchange(self, kind: str = "fanout") -> str:
        """A new exchange of this region alone, gone when its last queue is."""
        name = f"amq-{uuid.uuid4().hex[:12]}"
        self.own.exchange_declare(name, kind, auto_delete=True)
        return name

    def get(self, queue: str, timeout: float = 10.0) -> tuple[Any, Any, bytes]:
        """The next message of a queue, acknowledged."""
        channel = self.own
        found = wait_for(f"a message of {queue}", lambda: (got := channel.basic_get(queue))[0] and got, timeout)
        channel.basic_ack(found[0].delivery_tag)
        return found  # type: ignore[no-any-return]

    def count(self, queue: str) -> int:
        """How many messages wait in a queue."""
        return int(self.own.queue_declare(queue, passive=True).method.message_count)

    def close(self) -> None:
        for queue in self.queues:
            self.own.queue_delete(queue)
        for connection in self._connections:
            if connection.is_open:
                connection.close()


class Link:
    """A way of its own to a region's broker, which can be cut, or fall silent."""

    def __init__(self, region: Region) -> None:
        self._toxiproxy = region.lab.context.toxiproxy
        self._name = f"test-{uuid.uuid4().hex[:12]}"
        server = region.lab.server(region.name)
        port = self._toxiproxy.create(self._name, server.port)
        self.url = server.url.replace(f":{server.port}/", f":{port}/")

    def cut(self) -> None:
        self._toxiproxy.set_enabled(self._name, False)

    def silence(self) -> None:
        """Connections stay open, and nothing comes through."""
        self._toxiproxy.set_lag(self._name, 3_600_000)

    def heal(self) -> None:
        self._toxiproxy.set_enabled(self._name, True)
        self._toxiproxy.set_lag(self._name, 0)


class Blog:
    """A replicated store whose replica in B lags: what messages depend on."""

    def __init__(self) -> None:
        self.store = memory.Store("blog", regions=["a", "b"], lag=0.0)
        self.posts_a, self.posts_b = self.store.client("a"), self.store.client("b")


class Consumer:
    """A thread that consumes by its own connection until it is told to stop."""

    def __init__(self, region: Region, queue: str, callback: Callable[..., Any], **options: Any) -> None:
        self.errors: list[BaseException] = []
        self._connection = region.lab.connection(region.name, **options.pop("connection", {}))
        auto_ack = options.pop("auto_ack", False)
        prefetch = options.pop("prefetch", 10)
        self.channel = antipode_rabbitmq.wrap(self._connection.channel(), **({"store": "notifications"} | options))
        self.channel.basic_qos(prefetch_count=prefetch)
        self.channel.basic_consume(queue, callback, auto_ack=auto_ack)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.channel.start_consuming()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> Consumer:
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive() and self._connection.is_open:
            self._connection.add_callback_threadsafe(self.channel.stop_consuming)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the consumer does not end"
        if self._connection.is_open:
            self._connection.close()

    def __exit__(self, *_: object) -> None:
        self.stop()
        for error in self.errors:
            logging.getLogger("tests").error("the consumer ended with %r", error)


def properties(**given: Any) -> Any:
    return pika.BasicProperties(**given)


def delivered(tag: int = 1) -> Any:
    """The method of a delivery that no broker made."""
    return pika.spec.Basic.Deliver(delivery_tag=tag)


@contextmanager
def select_channel(region: Region, on_channel: Callable[[Any], None], **options: Any) -> Iterator[list[Any]]:
    """Runs a SelectConnection in a thread; `on_channel` gets its wrapped channel. Yields what went wrong."""
    errors: list[Any] = []

    def opened(plain: Any) -> None:
        channel = antipode_rabbitmq.wrap(plain, store="notifications", **options)
        assert isinstance(channel, pika.channel.Channel)
        try:
            on_channel(channel)
        except BaseException as error:
            errors.append(error)

    def failed(made: Any, error: Any) -> None:
        errors.append(error)
        made.ioloop.stop()

    connection = pika.SelectConnection(
        pika.URLParameters(region.url),
        on_open_callback=lambda made: made.channel(on_open_callback=opened),
        on_open_error_callback=failed,
        on_close_callback=lambda made, _: made.ioloop.stop(),
    )

    def run() -> None:
        try:
            connection.ioloop.start()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield errors
    finally:
        connection.ioloop.add_callback_threadsafe(lambda: connection.is_open and connection.close())
        thread.join(10)
        connection.ioloop.close()
    assert not thread.is_alive()
