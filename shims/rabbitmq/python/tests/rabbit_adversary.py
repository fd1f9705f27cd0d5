"""RabbitMQ for the adversary (spec SHIM-49): tracked messages from A to B, and messages that are taken many a time."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

import antipode
import antipode_rabbitmq
import pika
from antipode import Lineage
from antipode.testing.adversary import Stage
from antipode_lab.stores.rabbitmq import RabbitStore
from antipode_rabbitmq import Tap, declare_tap
from pika.exceptions import AMQPError
from rabbit_regions import Region, wait_for

EXCHANGE = "notifications"
CUT_S = 60.0


class Client:
    """A channel that publishes from A to B, and one with a queue of its own in A."""

    def __init__(self, stage: RabbitStage, *, plain: bool) -> None:
        self._stage = stage
        self._plain = plain
        self._numbers = itertools.count(1)
        self._sent: dict[bytes, Lineage] = {}
        self.queue = ""
        self.reopen()

    def _channel(self, **options: Any) -> Any:
        channel = self._stage.lab.connection("a").channel()
        return channel if self._plain else antipode_rabbitmq.wrap(channel, store=self._stage.name, **options)

    def reopen(self) -> None:
        """Have other connections."""
        self.wrapped = self._channel(track=True)
        self._taking = self._channel(redeliver_delay=0.01)

    def close(self) -> None:
        """Close both connections, which gives back what was taken."""
        for channel in (self.wrapped, self._taking):
            with suppress(AMQPError):
                channel.connection.close()

    def renew(self) -> None:
        """Close the connections in whatever state they are; have others."""
        self.close()
        self.reopen()

    def publish_to_nowhere(self) -> None:
        """Publish what comes back. With confirms: without them nobody knows in time, as the page says."""
        channel = self._channel(track=True)
        try:
            channel.confirm_delivery()
            channel.basic_publish("", "nothing", b"", mandatory=True)
        finally:
            channel.connection.close()

    def send(self, **properties: Any) -> None:
        """Send a message to the own queue; note what its scope depends on."""
        if not self.queue:
            self.queue = f"adv-{uuid.uuid4().hex[:12]}"
            self._taking.queue_declare(self.queue, arguments={"x-expires": 600_000})
        body = str(next(self._numbers)).encode()
        opened = antipode.current_scope()
        self._sent[body] = Lineage() if opened is None else opened.lineage
        self._taking.basic_publish("", self.queue, body, pika.BasicProperties(**properties))

    def take(self, end: Callable[[Any, int], object]) -> str:
        """Take a message of the own queue, and end with it; each delivery of it has its lineage."""
        if not self.queue:
            return "nothing"
        method, properties, body = self._taking.basic_get(self.queue)
        if method is None:
            return "empty"
        taken = nullcontext() if self._plain else antipode_rabbitmq.scope_of(method, properties, channel=self._taking)
        with taken as opened:
            if opened is not None and not (opened.lineage >= self._sent[body] or opened.lineage.incomplete):
                raise AssertionError(f"{body!r} has {opened.lineage}, and left with {self._sent[body]}")
            end(self._taking, method.delivery_tag)
        return f"{body!r}, {'again' if method.redelivered else 'first'}"

    def give_back_by_barrier(self) -> str:
        """Take a message, and give it back by a barrier that waits for what nobody has."""

        def end(channel: Any, tag: int) -> None:
            if self._plain:
                channel.basic_nack(tag, requeue=True)
            else:
                antipode.barrier(Lineage([_NOWHERE]), timeout=0, on_timeout="redeliver", on_unproven="redeliver")

        said = self.take(end)
        if said not in ("nothing", "empty"):
            wait_for("what was given back", self._is_back, CUT_S)
        return said

    def _is_back(self) -> bool:
        self._taking.connection.process_data_events(0)
        return self._stage.count(self.queue) > 0


_NOWHERE = antipode.WriteId("adversary", b"nowhere", antipode.Opaque("x"))


def _publish(**options: Any) -> Callable[[Client, str], object]:
    properties = options.pop("properties", {})

    def publish(client: Client, row: str) -> object:
        given = pika.BasicProperties(**properties) if properties else None
        return client.wrapped.basic_publish(EXCHANGE, "", row.encode(), given, **options)

    return publish


def _committed(client: Client, row: str) -> None:
    client.wrapped.tx_select()
    client.wrapped.basic_publish(EXCHANGE, "", row.encode())
    client.wrapped.tx_commit()


def _rolled_back(client: Client, row: str) -> None:
    client.wrapped.tx_select()
    client.wrapped.basic_publish(EXCHANGE, "", row.encode())
    client.wrapped.tx_rollback()


class RabbitStage(Stage):
    """A broker a region; what is published in A comes to B by federation, where a tap sees it arrive."""

    errors = (AMQPError,)
    writes: ClassVar = {
        "publish": _publish(),
        "publish with properties": _publish(properties={"content_type": "text/plain", "headers": {"x": 1}}),
        "publish what lasts": _publish(properties={"delivery_mode": 2}),
        "publish with an identifier": _publish(properties={"message_id": "m"}),
        "publish what has to be routed": _publish(mandatory=True),
        "in a transaction": _committed,
        "in a transaction, rolled back": _rolled_back,
    }
    acts: ClassVar = {
        "confirm": lambda client: client.wrapped.confirm_delivery(),
        "select": lambda client: client.wrapped.tx_select() and None,
        "commit": lambda client: client.wrapped.tx_commit() and None,
        "roll back": lambda client: client.wrapped.tx_rollback() and None,
        "error": lambda client: client.wrapped.queue_declare("nothing", passive=True),
        "publish to nowhere": lambda client: client.publish_to_nowhere(),
        "send to oneself": lambda client: client.send(),
        "send what lasts to oneself": lambda client: client.send(delivery_mode=2, headers={"x": "y"}),
        "take": lambda client: client.take(lambda channel, tag: channel.basic_ack(tag)),
        "take, give back": lambda client: client.take(lambda channel, tag: channel.basic_nack(tag, requeue=True)),
        "take, reject": lambda client: client.take(lambda channel, tag: channel.basic_reject(tag, requeue=True)),
        "take, give back by a barrier": lambda client: client.give_back_by_barrier(),
        "take, and keep": lambda client: client.take(lambda channel, tag: None),
        "new connections": lambda client: client.renew(),
    }
    reads: ClassVar = {}
    replicas = ("b",)

    def __init__(self, lab: RabbitStore) -> None:
        self.lab = lab
        self._regions = {name: Region(lab, name) for name in ("a", "b")}
        self._oracles = {name: region.queue() for name, region in self._regions.items()}
        for name, region in self._regions.items():
            region.own.queue_bind(self._oracles[name], EXCHANGE)
        self._arrived: dict[str, dict[str, list[object]]] = {"a": {}, "b": {}}
        self._lock = threading.Lock()
        b = self._regions["b"]
        tap = declare_tap(b.own, EXCHANGE, f"adv-{uuid.uuid4().hex[:12]}")
        b.queues.append(tap)
        antipode_rabbitmq.register(self.name, tap=Tap(b.url, tap))
        lab.wait_probe(EXCHANGE)

    def open(self, kind: int, *, plain: bool = False) -> Client:
        client = Client(self, plain=plain)
        if kind % 2:
            client.wrapped.confirm_delivery()
        return client

    def close(self, client: Any) -> None:
        if client is not None:
            client.close()

    def count(self, queue: str) -> int:
        """Return how many messages wait in a queue of A."""
        return self._regions["a"].count(queue)

    def reader(self) -> Any:
        """Nothing waits when a message is read: who waits for it has it."""

    def contents(self, server: str = "a") -> Mapping[str, object]:
        with self._lock:
            own, found = self._regions[server].own, self._arrived[server]
            while (got := own.basic_get(self._oracles[server], auto_ack=True))[0]:
                _, properties, body = got
                headers = {k: v for k, v in (properties.headers or {}).items() if not k.startswith(("antipode", "x-"))}
                found.setdefault(body.decode(), []).append((properties.content_type, properties.delivery_mode, headers))
            return {row: list(each) for row, each in found.items()}

    def rows(self, server: str | None = None) -> set[str]:
        return {row for row in self.contents(server or "a") if row.startswith("adv-")}

    def clear(self) -> None:
        for name in self._arrived:
            self.contents(name)
            with self._lock:
                self._arrived[name].clear()

    def cut(self) -> None:
        wait_for("all messages in B", lambda: self.rows("b") >= self.rows("a"), CUT_S)
        self.lab.partition("b")

    def heal(self) -> None:
        self.lab.heal("b", wait=False)

    def end(self) -> None:
        """Close what is open, and delete its queues."""
        for region in self._regions.values():
            region.close()
