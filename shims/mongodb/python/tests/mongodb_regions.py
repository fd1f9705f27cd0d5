"""A store in two regions for the tests: wrapped clients of the lab's servers, and barriers on what they wrote."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import antipode
import antipode_mongodb
from antipode import BarrierResult, Lineage, Verdict
from antipode._model.write_id import Ordered
from antipode_lab.errors import LabError
from antipode_lab.stores.mongodb import MongoStore
from antipode_mongodb import tombstones

STORE = "blog-posts"
DATABASE = "blog"
BARE = "bare"
"""A database without a collection for tombstones."""
LAGS = {"b1": 5, "b2": 20}
SLACK_S = 3.0
NUMBERS = itertools.count()
"""For names that nobody has used."""


def versions(lineage: Lineage) -> dict[bytes, int]:
    """The counters in a lineage, by key."""
    found = {}
    for each in lineage.of_store(STORE):
        assert isinstance(each.version, Ordered)
        found[each.key] = each.version.counter
    return found


def until(condition: Callable[[], object], why: str, seconds: float = 60.0) -> None:
    """Polls a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {why}"
        time.sleep(0.005)


def prepare(lab: MongoStore) -> None:
    """What the servers hold before the first test."""
    with lab.client(lab.primary) as client:
        for name in (DATABASE, "fuzz"):
            client[name][tombstones.COLLECTION].create_index(tombstones.EXPIRES, expireAfterSeconds=0)
    lab.wait_links()


def restore(lab: MongoStore) -> None:
    """Links and servers as they were at first."""
    for name in lab.servers:
        if not lab.running(name):
            with suppress(LabError):
                lab.thaw(name)
    for name, lag in LAGS.items():
        if name in lab.servers and lab.pair_lag(name, "a") != lag:
            lab.lag(name, f"{lag}ms")
    if lab.state.details["cuts"]:
        lab.heal()


class Posts:
    """One store of the lab, wrapped at every server; region B's readers may use all its servers."""

    def __init__(self, lab: MongoStore, **options: Any) -> None:
        self.lab = lab
        self.readers = [name for name in lab.servers if name != "a"]
        self.plain = {name: lab.client(name) for name in lab.servers}
        self.wrapped = {name: self.wrap(plain, **options) for name, plain in self.plain.items()}

    def wrap(self, plain: Any, **options: Any) -> Any:
        replicas = [self.lab.mongo_url(name) for name in self.readers]
        return antipode_mongodb.wrap(plain, store=STORE, **{"replicas": replicas, **options})

    def close(self) -> None:
        for client in self.plain.values():
            client.close()

    @property
    def posts(self) -> Any:
        """The collection at the primary, wrapped."""
        return self.wrapped["a"][DATABASE]["posts"]

    def raw(self, name: Any, at: str = "a", collection: str = "posts") -> dict[str, Any] | None:
        """A document as a server has it, without Antipode."""
        found: dict[str, Any] | None = self.plain[at][DATABASE][collection].find_one({"_id": name})
        return found

    def look(self, lineage: Lineage, timeout: float = 30.0, **options: Any) -> BarrierResult:
        """A barrier that raises for no verdict, and never takes longer than its deadline."""
        began = time.monotonic()
        result = antipode.barrier(
            lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed", stores=[STORE], **options
        )
        assert time.monotonic() - began < timeout + SLACK_S, "past its deadline"
        return result

    def verdict(self, lineage: Lineage, timeout: float = 30.0) -> Verdict:
        """The verdict for this store."""
        return self.look(lineage, timeout).stores[STORE].verdict
