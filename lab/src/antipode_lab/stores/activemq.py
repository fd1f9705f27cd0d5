"""ActiveMQ: a broker in each region; what is sent in A reaches B by a network connector over a link."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import stomp
import stomp.exception

from antipode_lab.built import Tool
from antipode_lab.errors import LabError
from antipode_lab.model import Link, Server
from antipode_lab.store import BaseStore, Package, verb
from antipode_lab.stores._activemq_broker import BROKER, command

PROBE_QUEUE: Final = "antipode-lab.probe"
USER: Final = "app"
"""May do everything; the password is the same. `publisher` may only send, `reader` only read queues `readers.*`."""
_QUIET_S = 1.0
"""A probe that has not arrived for so long after another one is sent anew."""


@dataclass(frozen=True, slots=True)
class ActiveMqOptions:
    """ActiveMQ's options.

    Attributes:
        queues: what is sent to them in A crosses the link in a queue `wan.NAME`, goes to B's queue of that name, and
            after that to the topic `antipode.tap.NAME` there.
        topics: the same for topics, which have their subscribers in A as well: nothing is lost in a partition.
        plain_topics: forwarded as topics are by themselves: what is published during a partition is lost.
        remember: how many messages a tap's topic keeps for those who subscribe later.
        demand: the connector also forwards what anybody in B subscribes to, taps too, as ActiveMQ's default is.
        taps_in_a: A has taps as well.
        scheduler: the brokers deliver late what `AMQ_SCHEDULED_DELAY` says.
        heap_mib: of each broker.
    """

    queues: Sequence[str] = ("notifications",)
    topics: Sequence[str] = ("news",)
    plain_topics: Sequence[str] = ("plain",)
    remember: int = 20_000
    demand: bool = False
    taps_in_a: bool = False
    scheduler: bool = False
    heap_mib: int = 160


class ActiveMqStore(BaseStore[ActiveMqOptions]):
    """The lab's ActiveMQ: servers "a" and "b"; A's network connector forwards to B."""

    kind: ClassVar[str] = "activemq"
    is_queue: ClassVar[bool] = True
    packages: ClassVar[Sequence[Package]] = (
        Package("openjdk-17-jdk-headless", "javac"),
        Package("maven", "mvn"),
    )
    tools: ClassVar[Sequence[Tool]] = (BROKER,)
    options_type: ClassVar[type[Any]] = ActiveMqOptions

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the brokers, and returns when the link has carried a probe."""
        self.set_base_lags({"a": 0, "b": lags_ms[0]})
        stomp_a, stomp_b, wire_a, wire_b = self.context.supervisor.ports(4)
        self.state.details["openwire"] = {"a": wire_a, "b": wire_b}
        for region, port in (("a", stomp_a), ("b", stomp_b)):
            role, source = ("upstream", None) if region == "a" else ("downstream", "a")
            url = f"stomp://{USER}:{USER}@127.0.0.1:{port}"
            self.state.servers[region] = Server(region, region, role, "127.0.0.1", port, url, source=source)
        self.link("b", "a")
        for region in ("a", "b"):
            self._spawn(region)
        for region in ("a", "b"):
            self._wait_answers(region)
        self.wait_links()

    def link(self, target: str, source: str) -> Link:
        """The link over which ``source`` pushes to ``target``: the connector of A connects to B."""
        key = self._key(target, source)
        if key not in self.state.links:
            proxy = f"{self.kind}-{target}-from-{source}"
            port = self.context.toxiproxy.create(proxy, self.state.details["openwire"][target])
            self.state.links[key] = Link(target, source, proxy, port, self.pair_lag(target, source))
            self._apply(self.state.links[key], anew=True)
        return self.state.links[key]

    def _spawn(self, region: str) -> None:
        options, details = self.options, self.state.details
        settings: dict[str, object] = {
            "name": f"region-{region}",
            "region": region,
            "stomp": self.server(region).port,
            "openwire": details["openwire"][region],
            "scheduler": str(options.scheduler).lower(),
            "remember": options.remember,
            "queues": ",".join(options.queues),
            "topics": ",".join(options.topics),
            "plain": ",".join(options.plain_topics),
            "taps": str(region == "b" or options.taps_in_a).lower(),
        }
        if region == "a":
            settings |= {"link": self.link("b", "a").port, "demand": str(options.demand).lower()}
        self.server(region).pid = self.context.supervisor.spawn(
            self.process(region), command(self.context.folder / region, settings, options.heap_mib)
        )

    def _wait_answers(self, region: str, timeout: float = 60.0) -> None:
        def answers() -> bool:
            with socket.socket() as asked:  # stomp.py logs a warning where nobody listens yet
                if asked.connect_ex(("127.0.0.1", self.server(region).port)):
                    return False
            try:
                with self.connection(region):
                    return True
            except (stomp.exception.StompException, OSError):
                return False

        self.context.supervisor.wait_ready(self.process(region), answers, timeout)

    # -- clients -----------------------------------------------------------------------------------

    def url(self, region: str) -> str:
        """The STOMP URL of a region, with the user that may do everything."""
        return self.server(region).url

    def plain_connection(self, region: str, **parameters: Any) -> stomp.StompConnection12:
        """A stomp.py connection to a region's broker that is not connected yet."""
        settings = {"reconnect_attempts_max": 1, "timeout": 10, **parameters}
        return stomp.StompConnection12([("127.0.0.1", self.server(region).port)], **settings)

    @contextmanager
    def connection(self, region: str, **parameters: Any) -> Iterator[stomp.StompConnection12]:
        """A stomp.py connection to a region's broker, straight, not through the link."""
        connection = self.plain_connection(region, **parameters)
        connection.connect(USER, USER, wait=True)
        try:
            yield connection
        finally:
            with suppress(stomp.exception.StompException, OSError):
                connection.disconnect()

    # -- the link ----------------------------------------------------------------------------------

    def wait_links(self, timeout: float = 60.0) -> None:
        """Waits until a probe comes over the link, unless it is parted."""
        if self.link("b", "a").state != "up" or not (self.running("a") and self.running("b")):
            return
        self.wait_probe(timeout)

    def wait_probe(self, timeout: float = 60.0) -> None:
        """Waits until what is sent in A arrives in B.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        token, arrived = uuid.uuid4().hex, threading.Event()
        with self.connection("a") as up, self.connection("b") as down:
            down.set_listener("probe", _Listener(token, arrived))
            down.subscribe(f"/queue/{PROBE_QUEUE}", "probe", ack="auto")
            while True:
                up.send(f"/queue/{PROBE_QUEUE}", token, expires=str(round((time.time() + timeout) * 1000)))
                if arrived.wait(_QUIET_S):
                    return
                if time.monotonic() > deadline:
                    raise LabError(f"no probe came over the link of activemq in {timeout:g} s")

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a broker and starts it again on the same ports.

        Args:
            server: the region.
            source: ``disk`` (default): persistent messages survive; ``nothing``: an empty broker.
            crash: SIGKILL, in place of an orderly stop.
            wait: returns when the link carries again.
        """
        self.server(server)
        chosen = source or "disk"
        if chosen not in ("disk", "nothing"):
            raise LabError(f"activemq restarts from 'disk' or 'nothing', not {chosen!r}")
        self.context.supervisor.stop(
            self.process(server), signal.SIGKILL if crash or chosen == "nothing" else signal.SIGTERM
        )
        if chosen == "nothing":
            shutil.rmtree(self.context.folder / server / "data", ignore_errors=True)
        self._spawn(server)
        self._wait_answers(server)
        if wait:
            self.wait_links()


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Tells when a message with this body has come."""

    def __init__(self, wanted: str, arrived: threading.Event) -> None:
        self._wanted = wanted
        self._arrived = arrived

    def on_message(self, frame: Any) -> None:
        if frame.body == self._wanted:
            self._arrived.set()


STORE = ActiveMqStore

__all__ = ["PROBE_QUEUE", "STORE", "USER", "ActiveMqOptions", "ActiveMqStore"]
