"""The servers of random workloads: two stores with their primaries in different regions, and a broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from antipode._store.envelope import open_envelope
from antipode_lab import Lab
from antipode_lab.stores.rabbitmq import RabbitStore
from antipode_lab.stores.redis import RedisStore

REGIONS: Final = ("a", "b", "c")
SERVERS: Final[Mapping[str, Mapping[str, str]]] = {
    "posts": {"a": "a", "b": "b1", "c": "b2"},
    "follows": {"b": "a", "c": "b1", "a": "b2"},
}
"""Each store's server in each region, as its own lab calls it: `a` is the primary at first."""
LAGS: Final = ("100ms", "200ms")
"""Of a store's two replicas, one way."""
QUEUE_LAG: Final = "10ms"
PARTED_S: Final = 0.3


def worker(region: str) -> str:
    """The worker of a region; its exchange and its queue have its name."""
    return f"worker-{region}"


@dataclass(frozen=True)
class Stage:
    """Servers that outlast a run; another one begins with what the one before has left, under other keys."""

    stores: Mapping[str, RedisStore]
    broker: RabbitStore

    def addresses(self, region: str) -> dict[str, dict[str, str]]:
        """Of each store its servers' URLs, and where a region reads."""
        return {
            name: {server: store.url(server) for server in store.servers} | {"here": store.url(SERVERS[name][region])}
            for name, store in self.stores.items()
        }

    @property
    def queues(self) -> dict[str, str]:
        """The brokers' URLs by region; messages go from `a` to `b`."""
        return {name: server.url for name, server in self.broker.servers.items()}

    def clear(self) -> None:
        """Drops messages that a run which failed has left."""
        with self.broker.connection("b") as connection:
            channel = connection.channel()
            for region in REGIONS:
                channel.queue_purge(worker(region))

    def part(self, name: str, server: str, *, silent: bool) -> None:
        """Parts a replica from its primary for a while."""
        store = self.stores[name]
        store.partition(server, mode="silent" if silent else "cut")
        time.sleep(PARTED_S)
        store.heal()

    def promote(self, name: str, server: str) -> None:
        """Moves a store's primary, without losing anything, while nobody writes."""
        store = self.stores[name]
        old = store.primary
        store.promote(server, lose=0)
        store.repoint(old, server)

    def lose(self, name: str, server: str, write: Callable[[], object]) -> None:
        """Moves a store's primary, and what `write` does at the old one, with no replica behind it, is lost.

        Everything from before is not: the replicas have it. The old primary is one of them afterwards.
        """
        store = self.stores[name]
        old = store.primary
        for replica in store.replicas:
            store.wait_caught_up(replica)
        store.promote(server, lose=lambda _: write(), wait=False)
        store.heal(wait=False)
        store.repoint(old, server)
        store.wait_links()

    def values(self, name: str, run: str) -> set[int]:
        """The numbers of the writes that a run's keys hold at a store's primary."""
        store = self.stores[name]
        with store.client(store.primary) as client:
            held = [client.get(key) for key in client.scan_iter(f"{run}-*", count=1000)]
        return {int(open_envelope(octets).value) for octets in held if octets is not None}


@contextmanager
def stage() -> Iterator[Stage]:
    """The servers, from the lab: one lab a store, for they are of one kind."""
    names = {worker(region): "fanout" for region in REGIONS}
    broker = {"exchanges": names, "queues": {name: name for name in names}, "one_broker": True}
    labs = [Lab("redis", replicas=len(LAGS), lag=LAGS) for _ in SERVERS]
    labs.append(Lab("rabbitmq", options={"rabbitmq": broker}, queue_lag=QUEUE_LAG))
    with ExitStack() as started:
        for lab in labs:
            started.callback(lab.close)
        with ThreadPoolExecutor(len(labs)) as pool:
            list(pool.map(Lab.start, labs))
        yield Stage({name: lab.redis for name, lab in zip(SERVERS, labs, strict=False)}, labs[-1].rabbitmq)
