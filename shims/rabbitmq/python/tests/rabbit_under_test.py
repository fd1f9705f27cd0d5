"""RabbitMQ as the conformance kit drives it: tracked messages from region A, and two taps that see them arrive in B."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import antipode_rabbitmq
import pika
from antipode.shim import Shim
from antipode.testing.under_test import StoreUnderTest, Transaction
from antipode_lab.stores.rabbitmq import RabbitStore
from antipode_rabbitmq import Tap, declare_tap
from rabbit_regions import Link, Region

EXCHANGE = "notifications"
LAG = "10ms"
NO_FAILOVER = "brokers of two regions are parted by federation: none takes the other's place"
OWN_BROKERS = "both regions are one broker here, which all tests share; test_restarts.py restarts two of its own"


class RabbitUnderTest(StoreUnderTest):
    """Servers: the broker in A, and in B a tap that is read straight and one through a link of its own."""

    shim: ClassVar[type[Shim]] = antipode_rabbitmq.RabbitMQShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "promotion": NO_FAILOVER,
        "promotion_with_lost_writes": NO_FAILOVER,
        "second_promotion": NO_FAILOVER,
        "parked_across_a_promotion": NO_FAILOVER,
        "repointed_replica": NO_FAILOVER,
        "restarted_replica": OWN_BROKERS,
        "restarted_primary": OWN_BROKERS,
    }
    patience = 30.0
    rights_cure = "set_permissions"
    unfit_cure = "no stream queue"

    def __init__(self, lab: RabbitStore) -> None:
        self.lab = lab
        self.a, self.b = Region(lab, "a"), Region(lab, "b")
        self._link = Link(self.b)
        self._oracle = self.b.queue()
        self.b.own.queue_bind(self._oracle, EXCHANGE)
        self.taps = [Tap(url, self._declared()) for url in (self.b.url, self._link.url)]
        lab.wait_probe(EXCHANGE)

    def _declared(self) -> str:
        queue = declare_tap(self.b.own, EXCHANGE, f"kit-{uuid.uuid4().hex[:12]}")
        self.b.queues.append(queue)
        return queue

    def close(self) -> None:
        self.b.own.queue_purge(EXCHANGE)  # the lab's own queue of that name got all that was published
        self.b.close()
        self.a.close()
        self._link.cut()

    def begin(self) -> None:
        self._channels = threading.local()
        self._connections: list[pika.BlockingConnection] = []
        self._arrived: dict[str, str] = {}
        antipode_rabbitmq.register(self.name, tap=self.taps)

    def recover(self, *, spoiled: bool) -> None:
        for connection in self._connections:
            if connection.is_open:
                connection.close()
        self._link.heal()
        self.lab.lag("b", LAG)
        self.lab.heal()

    @property
    def primary(self) -> str:
        return "a"

    @property
    def replicas(self) -> Sequence[str]:
        return ["b", "b through a link"]

    # Messages

    def _channel(self) -> Any:
        """This thread's own: pika's channels are not to be shared."""
        channel = getattr(self._channels, "own", None)
        if channel is None or channel.is_closed:
            connection = self.lab.connection("a")
            self._connections.append(connection)
            channel = antipode_rabbitmq.wrap(connection.channel(), store=self.name, track=True)
            channel.confirm_delivery()
            self._channels.own = channel
        return channel

    def write(self, key: str, value: str) -> None:
        self._channel().basic_publish(EXCHANGE, "", f"{key}={value}".encode())

    def look(self, key: str, at: str) -> str | None:
        while True:
            method, _, body = self.b.own.basic_get(self._oracle, auto_ack=True)
            if method is None:
                return self._arrived.get(key)
            name, _, value = body.decode().partition("=")
            self._arrived[name] = value

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        connection = self.lab.connection("a")
        self._connections.append(connection)
        channel = antipode_rabbitmq.wrap(connection.channel(), store=self.name, track=True)
        channel.tx_select()
        try:
            yield _Transaction(channel)
        except BaseException:
            channel.tx_rollback()
            raise
        channel.tx_commit()

    def commits_inside(self) -> Mapping[str, Callable[[str, str], None]]:
        return {"tx.commit": self._commit_and_roll_back}

    def _commit_and_roll_back(self, key: str, value: str) -> None:
        connection = self.lab.connection("a")
        self._connections.append(connection)
        channel = antipode_rabbitmq.wrap(connection.channel(), store=self.name, track=True)
        channel.tx_select()
        channel.basic_publish(EXCHANGE, "", f"{key}={value}".encode())
        channel.tx_commit()  # the channel is in another transaction then
        channel.basic_publish(EXCHANGE, "", f"{key}-never={value}".encode())
        channel.tx_rollback()

    # Links and servers

    def set_lag(self, replica: str, seconds: float) -> None:
        self.lab.lag("b", f"{round(seconds * 1000)}ms")

    def partition(self, replica: str) -> None:
        self.lab.partition("b")

    def heal(self, replica: str) -> None:
        self.lab.heal("b", wait=False)

    def freeze(self, server: str) -> None:
        assert server == self.far
        self._link.silence()

    def thaw(self, server: str) -> None:
        self._link.heal()

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        link = Link(self.a)
        connection = pika.BlockingConnection(pika.URLParameters(link.url))
        channel = antipode_rabbitmq.wrap(connection.channel(), store=self.name, track=True)
        channel.confirm_delivery()
        link.silence()
        cut = threading.Timer(0.3, link.cut)
        cut.start()
        try:
            channel.basic_publish(EXCHANGE, "", f"{key}={value}".encode())
        finally:
            cut.join()

    def write_refused(self, key: str) -> None:
        self._channel().basic_publish("", f"no-such-queue-{key}", b"", mandatory=True)

    def write_without_rights(self, key: str, value: str) -> None:
        tap = Tap(self.b.url.replace("guest:guest", "publisher:publisher"), self.taps[0].queue)
        antipode_rabbitmq.register(self.name, tap=tap)

    def wrap_unfit(self) -> None:
        antipode_rabbitmq.register(self.name, tap=Tap(self.b.url, self.b.queue()))


class _Transaction:
    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def read(self, key: str) -> object:
        """Taking a message is no write."""
        return None

    def write(self, key: str, value: str) -> None:
        self._channel.basic_publish(EXCHANGE, "", f"{key}={value}".encode())
