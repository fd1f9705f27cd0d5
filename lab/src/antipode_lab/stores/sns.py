"""SNS and SQS: a server of moto in each region; what is published in A reaches the queues of B over a link."""

from __future__ import annotations

import functools
import json
import signal
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from antipode_lab.built import Tool
from antipode_lab.errors import LabError
from antipode_lab.model import Link, Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, verb
from antipode_lab.stores._sns_moto import Moto

ACCESS_KEY: Final = "antipode"
"""Of all clients; the secret is the same word."""
ACCOUNT: Final = "123456789012"
REGIONS: Final = ("eu-central-1", "us-east-1", "ap-northeast-1", "sa-east-1", "af-south-1")
MOTO: Final = Moto()
_making: Final = threading.Lock()
"""A boto3 session makes clients for one thread at a time; the clients are safe for all."""


@dataclass(frozen=True, slots=True)
class SnsOptions:
    """The options of SNS and SQS.

    Attributes:
        topics: topics of region A; a name that ends in ``.fifo`` makes a FIFO topic.
        queues: queues of every other region, name to the topic that they subscribe to.
        raw: whether queues get messages as they were published, and not wrapped into JSON.
        more: more regions beside "b", name to the one-way lag of their links in ms.
    """

    topics: Sequence[str] = ("notifications",)
    queues: Mapping[str, str] = field(default_factory=lambda: {"notifications": "notifications"})
    raw: bool = True
    more: Mapping[str, int] = field(default_factory=dict)


class SnsStore(BaseStore[SnsOptions]):
    """The lab's SNS and SQS: servers "a" and "b" (and more); topics in A have subscriptions in B."""

    kind: ClassVar[str] = "sns"
    is_queue: ClassVar[bool] = True
    tools: ClassVar[Sequence[Tool]] = (MOTO,)
    options_type: ClassVar[type[Any]] = SnsOptions

    # -- start

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the servers, the topics and the queues, and returns when every link carries."""
        options = self.options
        for queue, topic in options.queues.items():
            if topic not in options.topics:
                raise LabError(f"sns queue {queue!r}: there is no topic {topic!r}")
        lags = {"a": 0, "b": lags_ms[0], **options.more}
        if len(lags) > len(REGIONS):
            raise LabError(f"sns has at most {len(REGIONS)} regions here")
        self.set_base_lags(lags)
        details = self.state.details
        details.update(regions=dict(zip(lags, REGIONS, strict=False)), account=ACCOUNT, access_key=ACCESS_KEY)
        details.update(topics=list(options.topics), queues=dict(options.queues))
        for name, port in zip(lags, self.context.supervisor.ports(len(lags)), strict=True):
            role, source = ("publisher", None) if name == "a" else ("subscriber", "a")
            url = f"http://127.0.0.1:{port}"
            self.state.servers[name] = Server(
                name, "a" if name == "a" else "b", role, "127.0.0.1", port, url, source=source
            )
        for name in lags:
            self._spawn(name)
        for name in lags:
            self._wait_answers(name)
            self._make(name)
        for queue, topic in options.queues.items():
            for name in self._others("a"):
                self.subscribe(topic, name, queue)
        self.wait_links()

    def _others(self, name: str) -> list[str]:
        return [other for other in self.state.servers if other != name]

    def _spawn(self, name: str) -> None:
        server = self.server(name)
        config = {
            "region": self.region(name),
            "port": server.port,
            "links": {self.region(other): self.link(other, name).port for other in self._others(name)},
        }
        path = self.context.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        server.pid = self.context.supervisor.spawn(self.process(name), MOTO.command(path))

    def _wait_answers(self, name: str) -> None:
        def answers() -> bool:
            try:
                self._ask(name, "status", 2)
            except (OSError, ValueError):
                return False
            return True

        self.context.supervisor.wait_ready(self.process(name), answers, 120)

    def _make(self, name: str) -> None:
        """What a server has at first."""
        if name == "a":
            for topic in self.state.details["topics"]:
                fifo = {"FifoTopic": "true"} if topic.endswith(".fifo") else {}
                self.client("a", "sns").create_topic(Name=topic, Attributes=fifo)
            return
        for queue in self.state.details["queues"]:
            self._make_queue(name, queue)

    def _make_queue(self, name: str, queue: str) -> str:
        attributes = {"FifoQueue": "true"} if queue.endswith(".fifo") else {}
        return str(self.client(name, "sqs").create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"])

    def subscribe(self, topic: str, server: str, queue: str, *, raw: bool | None = None) -> None:
        """Subscribes a region's queue to a topic of region A."""
        attributes = {"RawMessageDelivery": "true"} if (self.options.raw if raw is None else raw) else {}
        self.client("a", "sns").subscribe(
            TopicArn=self.topic_arn(topic),
            Protocol="sqs",
            Endpoint=self.queue_arn(server, queue),
            Attributes=attributes,
        )

    def link(self, target: str, source: str) -> Link:
        """The link over which ``source`` sends to ``target``: made when first asked for."""
        key = self._key(target, source)
        if key not in self.state.links:
            proxy = f"{self.kind}-{target}-from-{source}"
            port = self.context.toxiproxy.create(proxy, self.server(target).port)
            self.state.links[key] = Link(target, source, proxy, port, self.pair_lag(target, source))
            self._apply(self.state.links[key], anew=True)
        return self.state.links[key]

    # -- links

    def _ask(self, name: str, what: str, timeout: float = 10) -> Any:
        """One question to a server's courier."""
        with urllib.request.urlopen(f"{self.url(name)}/antipode-lab/{what}", timeout=timeout) as answer:
            return json.load(answer)

    def wait_links(self, timeout: float = 60.0) -> None:
        """Returns when every link between servers that run carries, unless it is parted."""
        running = [name for name in self.state.servers if self.running(name)]
        for source in running:
            for target in running:
                if target != source and self._wanted(self.link(target, source)) == "up":
                    wait_until(
                        f"the link from sns {source} to {target}",
                        lambda: bool(self._ask(source, f"probe/{self.region(target)}")),  # noqa: B023
                        timeout,
                        0.02,
                    )

    @verb
    def wait_arrived(self, timeout: float = 60.0) -> None:
        """Returns when everything that was published in A until now has reached the other regions' queues."""
        wait_until("what sns a published to arrive", lambda: not any(self._ask("a", "status").values()), timeout, 0.01)

    def arrived(self, server: str, queue: str) -> list[str]:
        """The first 100 characters of what a queue has got until now, also of what was deleted since."""
        return [str(each) for each in self._ask(server, f"arrived/{queue}")]

    def detail(self, server: Server) -> str:
        """How much a region has still to give to each of the others."""
        try:
            waiting = self._ask(server.name, "status", 2)
        except (OSError, ValueError):
            return ""
        names = {self.region(name): name for name in self.state.servers}
        return ", ".join(f"{count} waiting for {names[region]}" for region, count in waiting.items())

    # -- clients

    def region(self, server: str) -> str:
        """The name of the AWS region that a server plays."""
        return str(self.state.details["regions"][server])

    def url(self, server: str) -> str:
        """A server's endpoint, straight, not through a link."""
        return self.server(server).url

    def topic_arn(self, topic: str, server: str = "a") -> str:
        """A topic's name at AWS."""
        return f"arn:aws:sns:{self.region(server)}:{ACCOUNT}:{topic}"

    def queue_arn(self, server: str, queue: str) -> str:
        """A queue's name at AWS."""
        return f"arn:aws:sqs:{self.region(server)}:{ACCOUNT}:{queue}"

    def queue_url(self, server: str, queue: str, port: int | None = None) -> str:
        """A queue's URL, as SQS's calls take it; through a proxy where its port is given."""
        return f"http://127.0.0.1:{port or self.server(server).port}/{ACCOUNT}/{queue}"

    def client(self, server: str, service: str, *, port: int | None = None, timeout: float = 60) -> Any:
        """A boto3 client of one server (``sns`` or ``sqs``); shared by all that ask for the same."""
        return _client(f"http://127.0.0.1:{port or self.server(server).port}", self.region(server), service, timeout)

    def resource(self, server: str, service: str) -> Any:
        """A boto3 resource of one server."""
        with _making:
            return _session().resource(service, **_where(self.url(server), self.region(server)))

    # -- verbs

    @verb
    def create_topic(self, topic: str) -> str:
        """Makes a topic in region A; its ARN."""
        if topic not in self.state.details["topics"]:
            self.state.details["topics"].append(topic)
        self._make("a")
        return self.topic_arn(topic)

    @verb
    def create_queue(self, queue: str, topic: str, *, raw: bool | None = None) -> None:
        """Makes a queue in every region but A, and subscribes it to a topic of A."""
        for name in self._others("a"):
            self._make_queue(name, queue)
            self.subscribe(topic, name, queue, raw=raw)

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False) -> None:
        """Ends a server and starts it again on the same port. moto keeps all in memory: it comes back with the topics
        and queues of its options, and nothing in them; region A's subscriptions are those of the options.
        """
        self.server(server)
        if source not in (None, "nothing"):
            raise LabError(f"sns restarts from nothing, not from {source!r}")
        self.context.supervisor.stop(self.process(server), signal.SIGKILL if crash else signal.SIGTERM)
        self._spawn(server)
        self._wait_answers(server)
        self._make(server)
        if server == "a":
            for queue, topic in self.state.details["queues"].items():
                for name in self._others("a"):
                    self.subscribe(topic, name, queue)
        self.wait_links()


@functools.cache
def _session() -> Any:
    import boto3  # here: reading it takes a while, and most labs have no SNS

    return boto3.session.Session()


def _where(url: str, region: str) -> dict[str, str]:
    return {
        "endpoint_url": url,
        "region_name": region,
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": ACCESS_KEY,
    }


@functools.lru_cache(maxsize=64)
def _client(url: str, region: str, service: str, timeout: float) -> Any:
    from botocore.config import Config

    config = Config(connect_timeout=timeout, read_timeout=timeout, max_pool_connections=50)
    with _making:
        return _session().client(service, config=config, **_where(url, region))


STORE = SnsStore

__all__ = ["ACCESS_KEY", "ACCOUNT", "STORE", "SnsOptions", "SnsStore"]
