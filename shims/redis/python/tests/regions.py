"""A store in two regions for the tests: wrapped clients of the lab's servers, and barriers on what they wrote."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import antipode
import antipode_redis
import redis
from antipode import BarrierResult, Lineage, Verdict
from antipode_lab.stores.redis import RedisStore

STORE = "blog-posts"
DEADLINE_SLACK_S = 1.0


def until(
    condition: Callable[[], object], seconds: float = 15.0, why: Callable[[], str] = lambda: "the condition"
) -> None:
    """Polls a condition, with a deadline; `why` says what was the matter at the last try."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{why()} did not come true"
        time.sleep(0.002)


def wait_marked(lab: RedisStore, lineage: Lineage) -> None:
    """Waits until a mark in the primary's data covers these writes: what happens within a second of the last."""
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, antipode.Ordered)
    epoch, counter = write_id.version
    client = lab.client(lab.primary)

    def marked() -> bool:
        value: Any = client.hget(antipode_redis.marks.DEFAULT_KEY, epoch)
        found = antipode_redis.marks.position_of(value)
        return found is not None and found >= counter

    until(marked)


class Posts:
    """One store of the lab, wrapped at every server; region B's readers may use all its replicas."""

    def __init__(self, lab: RedisStore, **options: Any) -> None:
        self.lab = lab
        self.names = list(lab.servers)
        self.readers = [name for name in self.names if name != "a"]
        self.wrapped = {name: self.wrap(name, **options) for name in self.names}

    def wrap(self, name: str, **options: Any) -> redis.Redis:
        options.setdefault("replicas", [self.lab.url(reader) for reader in self.readers])
        return antipode_redis.wrap(redis.Redis.from_url(self.lab.url(name)), store=STORE, **options)

    def write(self, key: str, value: str = "v", *, at: str | None = None) -> Lineage:
        """Writes through the wrapped client, at the primary unless said otherwise; the scope's lineage."""
        with antipode.scope() as scope:
            self.wrapped[at or self.lab.primary].set(key, value)
            return scope.lineage

    def shows(self, name: str, key: str) -> bytes | None:
        """What a server has, without Antipode."""
        found: bytes | None = self.lab.client(name).get(key)  # type: ignore[assignment]
        return found

    def look(self, lineage: Lineage, timeout: float = 1.0, **options: Any) -> BarrierResult:
        """A barrier that never raises for a verdict, and never takes longer than its deadline."""
        began = time.monotonic()
        result = antipode.barrier(
            lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed", stores=[STORE], **options
        )
        assert time.monotonic() - began < timeout + DEADLINE_SLACK_S, "past its deadline"
        return result

    def verdict(self, lineage: Lineage, timeout: float = 1.0) -> Verdict:
        """The verdict for this store."""
        return self.look(lineage, timeout).stores[STORE].verdict

    def wait_marked(self, lineage: Lineage) -> None:
        """Waits until a mark in the primary's data covers these writes."""
        wait_marked(self.lab, lineage)
