"""What a run is, and what its services are told. Both travel to the services' processes as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

BarrierPlace = Literal["follower", "wait-on-read", "nowhere", "none"]
Language = Literal["python", "java", "cpp"]

REGIONS = {"a": ("post-upload", "post-storage-a", "notifier"), "b": ("follower-notify", "post-storage-b")}
"""The services of each region; `post-storage` runs in both."""
SERVICES = REGIONS["a"] + REGIONS["b"]

STORE = "blog-posts"
"""The logical name of the posts' store, the same in every service and region."""
QUEUE = "notifications"
"""The logical name of the notifier's queue; its exchange and its queue are called so, too, where there is one."""


SHARED_STORES = ("postgresql", "redis")
"""The posts' stores that the services of every language know."""
SHARED_NOTIFIERS = ("http", "rabbitmq")
"""The notifiers that the services of every language know."""


@dataclass(frozen=True, slots=True)
class Options:
    """One run of the benchmark, with and without Antipode."""

    post_storage: str = "memory"
    """`memory`, or the name of a module in `stores`."""
    notifier: str = "memory"
    """`memory`, or the name of a module in `queues`."""
    barrier: BarrierPlace = "follower"
    """Where the run with Antipode waits: in follower-notify, at each read in post-storage, `nowhere`
    (for dry-run, which says where it belongs); `none`: baseline alone."""
    requests: int = 300
    rate: float = 40.0
    """Uploads a second, sent open-loop: whether or not earlier ones are answered."""
    lags_ms: tuple[int, ...] = (80, 120)
    """One-way lag of each replica's link, in order: b1, b2, …"""
    queue_lag_ms: int = 10
    size: int = 1024
    """Octets of a post."""
    warmup: int = 20
    """Uploads before those that are measured; they are checked like the others."""
    timeout: float = 5.0
    """Deadline of a barrier or of a waiting read, in seconds."""
    delay_ms: int = 0
    """How long post-upload waits between the post and its notification (paper figure 6)."""
    track: bool = False
    """Whether a notification is a write itself, where the notifier can have that."""
    consumers: int = 32
    """Threads of follower-notify that take messages; each handles one at a time."""
    writer: Language = "python"
    """The language of post-storage in region A."""
    relay: Language = "python"
    """The language of post-upload and notifier."""
    reader: Language = "python"
    """The language of follower-notify and of post-storage in region B."""

    def language(self, service: str) -> Language:
        """The language that a service is hosted in."""
        if service in {"post-upload", "notifier"}:
            return self.relay
        return self.writer if service == "post-storage-a" else self.reader

    @property
    def replicas(self) -> dict[str, int]:
        """The replicas in region B with their lags, in ms."""
        return {f"b{number}": lag for number, lag in enumerate(self.lags_ms, 1)}

    @property
    def slowest_lag_ms(self) -> int:
        """The lag of the slowest replica: no barrier for the region can be shorter."""
        return max(self.lags_ms)

    @property
    def embedded(self) -> bool:
        """Whether a store lives in the services' own process, so that one process must host them all."""
        return "memory" in (self.post_storage, self.notifier)


@dataclass(frozen=True, slots=True)
class Setup:
    """What every service is told before it starts."""

    options: Options
    antipode: bool
    """False: the baseline, without a wrapped client, a middleware or a barrier anywhere."""
    addresses: dict[str, str]
    """Base URL of each service."""
    posts: dict[str, str] = field(default_factory=dict)
    """URLs of the posts' servers: `a`, `b1`, `b2`, …; empty for the embedded store."""
    queues: dict[str, str] = field(default_factory=dict)
    """URLs of the brokers: `a`, `b`; empty where there are none."""
    exchange: str = QUEUE
    """Where notifier publishes, in a broker."""
    queue: str = QUEUE
    """What follower-notify consumes, in a broker."""
    stores: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of a worker: each store's servers by name, and as `here` the one at which it reads."""
    rest: Literal["none", "envelope"] = "none"
    """Of a worker: where lineages rest beside its values."""
    clients: Literal["blocking", "asynchronous"] = "blocking"
    """Of a worker: how it touches its stores, and waits at its barriers."""
    run: str = ""
    """Names this phase in its notifications: what another has left in a queue is not delivered in this one."""

    @property
    def barrier_in_follower(self) -> bool:
        """Whether follower-notify calls `barrier()`."""
        return self.antipode and self.options.barrier == "follower"

    @property
    def wait_on_read(self) -> bool:
        """Whether each read in post-storage waits."""
        return self.antipode and self.options.barrier == "wait-on-read"

    def routed(self, other: Self) -> Self:
        """This one with what a host may be told anew: the addresses, the notifier and the exchange of another."""
        options = replace(self.options, notifier=other.options.notifier)
        return replace(self, options=options, addresses=other.addresses, exchange=other.exchange)

    def to_json(self) -> str:
        """One line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """Reads what `to_json` wrote; raises an error for anything else."""
        data: dict[str, Any] = json.loads(text)
        options = data.pop("options")
        options["lags_ms"] = tuple(options["lags_ms"])
        return cls(Options(**options), **data)
