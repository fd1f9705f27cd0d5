"""RabbitMQ: a broker in each region; what is published in A reaches B by exchange federation over a link."""

from __future__ import annotations

import shutil
import signal
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

import pika
import pika.exceptions

from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, Package, verb
from antipode_lab.stores import _rabbitmq_node as node

PROBE_EXCHANGE = "antipode-lab.probe"
_QUIET_S = 2.0
"""A probe that has not arrived for so long after another one is sent anew."""


@dataclass(frozen=True, slots=True)
class RabbitOptions:
    """RabbitMQ's options.

    Attributes:
        one_broker: both regions are virtual hosts of one broker, which is federated with itself over the
        link: half the
            memory, and up in half the time. Freezing, killing or restarting one region then does so to both.
        exchanges: durable exchanges of both regions, name to type.
        queues: durable queues of region B, name to exchange; bound by their name, or ``#`` for a topic
        exchange.
    """

    one_broker: bool = False
    exchanges: Mapping[str, str] = field(default_factory=lambda: {"notifications": "fanout"})
    queues: Mapping[str, str] = field(default_factory=lambda: {"notifications": "notifications"})


class RabbitStore(BaseStore[RabbitOptions]):
    """The lab's RabbitMQ: servers "a" and "b"; B fetches from A."""

    kind: ClassVar[str] = "rabbitmq"
    is_queue: ClassVar[bool] = True
    packages: ClassVar[Sequence[Package]] = (Package("rabbitmq-server", node.LAUNCHER),)
    options_type: ClassVar[type[Any]] = RabbitOptions

    # -- start

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the brokers, and returns when each exchange's link has carried a probe."""
        options, supervisor = self.options, self.context.supervisor
        for queue, exchange in options.queues.items():
            if exchange not in options.exchanges:
                raise LabError(f"rabbitmq queue {queue!r}: there is no exchange {exchange!r}")
        self.set_base_lags({"a": 0, "b": lags_ms[0]})
        epmd = supervisor.ports(1)[0]
        brokers = ["ab"] if options.one_broker else ["a", "b"]
        ports = {name: supervisor.ports(2) for name in brokers}
        self.state.details.update(
            epmd_port=epmd,
            dist_ports={name: ports[name][1] for name in brokers},
            exchanges=dict(options.exchanges),
        )
        for region in ("a", "b"):
            port = ports["ab" if options.one_broker else region][0]
            role, source = ("upstream", None) if region == "a" else ("downstream", "a")
            url = f"amqp://guest:guest@127.0.0.1:{port}/{quote(self._vhost(region), safe='')}"
            self.state.servers[region] = Server(region, region, role, "127.0.0.1", port, url, source=source)
        self._start_epmd(epmd)
        for broker in brokers:
            self._write_files(broker)
            self._spawn(broker)
        for region in ("a", "b"):
            self._wait_answers(region)
        self.wait_links()
        for exchange in options.exchanges:
            self.wait_probe(exchange)
        with self.connection("b") as connection:
            channel = connection.channel()
            for queue in options.queues:  # the probes went there too; the last one has arrived
                channel.queue_purge(queue)

    def _start_epmd(self, port: int) -> None:
        """An Erlang port mapper of our own: without one, the broker makes a daemon of one for the whole
        machine.
        """
        program = shutil.which("epmd")
        if program is None:
            raise LabError("there is no `epmd`, which comes with Erlang; run: antipode-lab install rabbitmq")

        def listens() -> bool:
            with socket.socket() as connection:
                return connection.connect_ex(("127.0.0.1", port)) == 0

        supervisor = self.context.supervisor
        supervisor.spawn("rabbitmq:epmd", [program, "-port", str(port), "-address", "127.0.0.1"])
        supervisor.wait_ready("rabbitmq:epmd", listens, 10)

    def _broker(self, region: str) -> str:
        return "ab" if self.options.one_broker else region

    def _vhost(self, region: str) -> str:
        return region if self.options.one_broker else "/"

    def process(self, server: str) -> str:
        """The broker's process; one for both regions with ``one_broker``."""
        return f"{self.kind}:{self._broker(server)}"

    def _write_files(self, broker: str) -> None:
        downstream = "b" in broker
        upstream = f"amqp://guest:guest@127.0.0.1:{self.link('b', 'a').port}/{quote(self._vhost('a'), safe='')}"
        node.write_files(
            self.context.folder / broker,
            self.server(broker[0]).port,
            node.definitions(
                cluster=f"region-{broker}",
                vhosts=["a", "b"] if broker == "ab" else ["/"],
                exchanges={**self.options.exchanges, PROBE_EXCHANGE: "fanout"},
                queues=self.options.queues,
                federated=self._vhost("b") if downstream else None,
                upstream=upstream if downstream else None,
            ),
        )

    def _spawn(self, broker: str) -> None:
        details, folder = self.state.details, self.context.folder / broker
        self.context.supervisor.spawn(
            f"{self.kind}:{broker}",
            [node.LAUNCHER],
            env=node.environment(
                folder,
                node=f"lab{broker}",
                port=self.server(broker[0]).port,
                dist_port=details["dist_ports"][broker],
                epmd_port=details["epmd_port"],
            ),
            cwd=folder,
        )

    def _wait_answers(self, region: str, timeout: float = 90.0) -> None:
        def answers() -> bool:
            try:
                with self.connection(region, connection_attempts=1) as connection:
                    connection.channel().exchange_declare(PROBE_EXCHANGE, passive=True)
            except (pika.exceptions.AMQPError, OSError):
                return False
            return True

        self.context.supervisor.wait_ready(self.process(region), answers, timeout)

    # -- clients

    def connection(self, region: str, **parameters: Any) -> pika.BlockingConnection:
        """A new pika connection to a region's broker, straight, not through the link."""
        wanted = pika.URLParameters(self.url(region))
        wanted.socket_timeout = 10
        for name, value in parameters.items():
            setattr(wanted, name, value)
        return pika.BlockingConnection(wanted)

    def url(self, region: str) -> str:
        """The AMQP URL of a region."""
        return self.server(region).url

    # -- the link

    def upstream_queue(self, exchange: str) -> str:
        """The queue in region A that holds what the link of ``exchange`` has still to carry."""
        return node.upstream_queue(exchange, f"region-{self._broker('b')}", self._vhost("a"), self._vhost("b"))

    def _attached(self, exchange: str) -> tuple[bool, int]:
        """Whether the exchange's link is attached in region A, and how many messages wait there for it."""
        with self.connection("a", connection_attempts=1) as connection:
            try:
                found = connection.channel().queue_declare(self.upstream_queue(exchange), passive=True)
            except pika.exceptions.ChannelClosedByBroker:
                return False, 0
            return found.method.consumer_count > 0, found.method.message_count

    def wait_links(self, timeout: float = 60.0) -> None:
        """Waits until every federated exchange's link is attached, unless it is parted; then for a probe."""
        if self.link("b", "a").state != "up" or not (self.running("a") and self.running("b")):
            return

        def attached() -> bool:
            with suppress(pika.exceptions.AMQPError, OSError):
                return all(self._attached(name)[0] for name in (*self.state.details["exchanges"], PROBE_EXCHANGE))
            return False

        wait_until("the federation links of rabbitmq", attached, timeout, 0.05)
        self.wait_probe(PROBE_EXCHANGE, timeout)

    def wait_probe(self, exchange: str, timeout: float = 60.0) -> None:
        """Waits until messages that are published to ``exchange`` in A arrive in B, and those sent for it
        have.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        token = f"antipode-lab.probe.{uuid.uuid4().hex}"
        with self.connection("a") as up, self.connection("b") as down:
            sender, receiver = up.channel(), down.channel()
            sender.confirm_delivery()
            queue = receiver.queue_declare("", exclusive=True).method.queue
            receiver.queue_bind(queue, exchange, routing_key=token)
            sent, seen, heard_at = 0, 0, time.monotonic()
            while seen < sent or sent == 0:
                now = time.monotonic()
                if now > deadline:
                    raise LabError(
                        f"no probe came over the link of rabbitmq exchange {exchange!r} in {timeout:g} s "
                        f"({sent} were sent, the last to arrive was number {seen or 'none'})"
                    )
                # What is published before the link knows our binding never arrives, nor what a breaking link lost.
                if seen == 0 or now - heard_at > _QUIET_S:
                    sent += 1
                    sender.basic_publish(exchange, token, str(sent).encode())
                for _ in range(50):
                    method, _, body = receiver.basic_get(queue, auto_ack=True)
                    if method is not None:
                        seen, heard_at = max(seen, int(body)), time.monotonic()
                        break
                    down.sleep(0.002)

    @verb
    def declare(
        self, exchange: str, kind: str = "fanout", queue: str | None = None, routing_key: str | None = None
    ) -> None:
        """Declares a durable exchange in both regions, and a queue bound to it in B; returns when its link
        carries.

        The routing key is the queue's name if none is given, or ``#`` for a topic exchange.
        """
        for region in ("a", "b"):
            with self.connection(region) as connection:
                channel = connection.channel()
                channel.exchange_declare(exchange, kind, durable=True)
                if region == "b" and queue is not None:
                    channel.queue_declare(queue, durable=True)
                    key = routing_key or ("#" if kind == "topic" else queue)
                    channel.queue_bind(queue, exchange, routing_key=key)
        self.state.details["exchanges"][exchange] = kind
        if self.link("b", "a").state == "up":
            self.wait_probe(exchange)
            if queue is not None:
                with self.connection("b") as connection:
                    connection.channel().queue_purge(queue)

    def detail(self, server: Server) -> str:
        """In A: what waits there for the link, by exchange."""
        if server.name != "a":
            return ""
        try:
            links = {name: self._attached(name) for name in self.state.details["exchanges"]}
        except (pika.exceptions.AMQPError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return ", ".join(
            f"{name}: {'attached' if attached else 'not attached'}, {waiting} waiting"
            for name, (attached, waiting) in links.items()
        )

    # -- verbs

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a broker and starts it again on the same port.

        Args:
            server: the region.
            source: ``disk`` (default): durable queues and persistent messages survive; ``nothing``: an
            empty broker.
            crash: SIGKILL, in place of an orderly stop.
            wait: returns when the links carry again.
        """
        self.server(server)
        chosen = source or "disk"
        if chosen not in ("disk", "nothing"):
            raise LabError(f"rabbitmq restarts from 'disk' or 'nothing', not {chosen!r}")
        self.context.supervisor.stop(
            self.process(server), signal.SIGKILL if crash or chosen == "nothing" else signal.SIGTERM
        )
        broker = self._broker(server)
        if chosen == "nothing":
            shutil.rmtree(self.context.folder / broker / "mnesia", ignore_errors=True)
        self._spawn(broker)
        for region in broker:
            self._wait_answers(region)
        if wait:
            self.wait_links()


STORE = RabbitStore

__all__ = ["PROBE_EXCHANGE", "STORE", "RabbitOptions", "RabbitStore"]
