"""Records as dry-run would have written them, of a made-up application: for measuring, and for trying the command.

    python python/tests/check_records/generating.py --records 1000000 > records.jsonl

Services get requests and messages, look by barriers, and read; some of it comes too early. The same seed gives the same
records.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

_STORES: Final = (("blog-posts", "redis"), ("user-acl", "redis"), ("orders", "postgresql"), ("media", "s3"))
_QUEUES: Final = ("notifications", "orders-made", "uploads")
_BEGAN: Final = 1_700_000_000.0
_A_MINUTE: Final = 60.0

Record = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What the application looks like."""

    records: int = 1000
    services: int = 6
    processes: int = 4
    """Of each service."""
    sites: int = 5
    """Of each service."""
    late: float = 0.05
    """The share of looks that come too early."""
    lag: float = 0.08
    """The median of how much too early, in seconds."""
    a_second: float = 500.0
    """Records a second."""


def generate(seed: int, shape: Shape | None = None) -> Iterator[Record]:
    """Records in the order of time: barriers, and for every 100 of those a stale read with its summary."""
    shape = shape or Shape()
    chance = random.Random(seed)
    for number in range(shape.records):
        service = chance.randrange(shape.services)
        site = chance.randrange(shape.sites)
        head: Record = {
            "record": 1,
            "kind": "barrier",
            "time": round(_BEGAN + number / shape.a_second, 6),
            "service": f"service-{service}",
            "region": "ab"[service % 2],
            "process": f"host-{service}:{100 + chance.randrange(shape.processes)}:1700000000",
        }
        if number % 100 == 99:
            yield _summary(head, shape, service)
            continue
        head |= {"trace_id": f"{chance.getrandbits(128):032x}", "span_id": f"{chance.getrandbits(64):016x}"}
        head |= {"site": f"service_{service}/handlers.py:{10 * site + 31}", "origin": _origin(service, site)}
        store, kind = _STORES[(service + site) % len(_STORES)]
        if number % 100 == 98:
            lag = _lag(chance, shape)
            read = {"store": store, "store_kind": kind, "server": "b1", "visible_after": lag, "confirmed": "version"}
            yield head | {"kind": "stale"} | read
            continue
        look: Record = {"store": store, "store_kind": kind, "verdict": "visible", "servers": ["b1:6379", "b2:6379"]}
        seen = chance.random() >= shape.late
        if not seen:
            look |= {"verdict": "not_yet", "visible_after": _lag(chance, shape)}
        yield head | {"reach": "region", "satisfied": seen, "complete": seen, "stores": [look]}


def _origin(service: int, site: int) -> Record:
    if site % 2:
        return {"scope": "request", "opened_by": f"GET /things/{site}/{{thing}}"}
    queue = _QUEUES[service % len(_QUEUES)]
    return {"scope": "message", "opened_by": f"service_{service}/handlers.py:{10 * site + 28}", "store": queue}


def _lag(chance: random.Random, shape: Shape) -> float | None:
    """One in fifty was given up."""
    return None if chance.random() < 0.02 else round(shape.lag * chance.lognormvariate(0, 0.5), 6)


def _summary(head: Record, shape: Shape, service: int) -> Record:
    counts: list[Record] = [{"what": "requests", "count": 3000}]
    for site in range(shape.sites):
        where = {"site": f"service_{service}/handlers.py:{10 * site + 31}"}
        where["store"] = _STORES[(service + site) % len(_STORES)][0]
        counts += [{"what": "reads", "count": 2000, **where}, {"what": "followed_reads", "count": 20, **where}]
    return head | {"kind": "summary", "since": max(head["time"] - _A_MINUTE, 0.0), "counts": counts}


def main(words: Sequence[str] | None = None) -> int:
    """Writes records to standard output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", type=float, default=Shape.late, help="share of looks that come too early")
    parser.add_argument("--lag", type=float, default=Shape.lag, metavar="SECONDS", help="median of how much")
    parser.add_argument("--services", type=int, default=Shape.services)
    given = parser.parse_args(words)
    if given.records < 0 or given.services < 1 or not 0 <= given.late <= 1 or given.lag < 0:
        parser.error("want --records and --lag of 0 or more, --services of 1 or more, --late from 0 to 1")
    shape = Shape(given.records, given.services, late=given.late, lag=given.lag)
    encode = msgspec.json.Encoder().encode
    for record in generate(given.seed, shape):
        sys.stdout.buffer.write(encode(record) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
