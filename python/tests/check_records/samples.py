"""Records of every kind, as files of them hold them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

HEAD: Record = {"record": 1, "service": "follower-notify", "region": "b", "process": "host:1:1"}
AFTER_MESSAGE = {"scope": "message", "opened_by": "followers/app.py:28", "store": "notifications"}
SITE = "followers/app.py:31"


def look(store: str = "blog-posts", verdict: str = "visible", **more: Any) -> Record:
    """What a barrier saw of a store."""
    return {"store": store, "store_kind": "redis", "verdict": verdict, "servers": ["redis://b1"]} | more


def barrier(*looks: Record, time: float = 1.0, **more: Any) -> Record:
    stores = list(looks or (look(),))
    seen = all(each["verdict"] in {"visible", "elsewhere"} for each in stores)
    told = {"site": SITE, "origin": AFTER_MESSAGE, "reach": "region", "satisfied": seen, "complete": seen}
    return HEAD | {"kind": "barrier", "time": time, "stores": stores} | told | more


def read(kind: str, visible_after: float | None = 0.08, time: float = 1.0, **more: Any) -> Record:
    """`behind` or `stale`."""
    told = {"site": SITE, "origin": AFTER_MESSAGE, "store": "blog-posts", "store_kind": "redis", "server": "redis://b1"}
    confirmed = {"confirmed": "version"} if kind == "stale" else {}
    return HEAD | {"kind": kind, "time": time, "visible_after": visible_after} | told | confirmed | more


def summary(*counts: Record, time: float = 60.0, **more: Any) -> Record:
    return HEAD | {"kind": "summary", "time": time, "since": 0.0, "counts": list(counts)} | more


def count(what: str, number: int, **more: Any) -> Record:
    return {"what": what, "count": number} | more


def followed(number: int, of: int) -> Record:
    """A summary: so many reads at the site, so many of them followed."""
    where = {"site": SITE, "store": "blog-posts"}
    return summary(count("reads", of, **where), count("followed_reads", number, **where), count("messages", of))


OTHERS: dict[str, Record] = {
    "published_before_commit": {
        "site": "posts/app.py:58",
        "store": "orders",
        "target": "followers",
        "written_at": "posts/app.py:50",
    },
    "concurrent_write": {"site": "posts/app.py:59", "store": "orders", "target": "followers"},
    "orphan": {"site": "posts/app.py:70", "store": "orders"},
    "late_write": {"site": "posts/app.py:80", "store": "orders", "reason": "sent"},
    "vacuous": {
        "site": "posts/app.py:71",
        "origin": {"scope": "task"},
        "lineage_stores": ["blog-post"],
        "registered": ["blog-posts"],
    },
    "incomplete": {"origin": {"scope": "request", "opened_by": "GET /posts/{post}"}, "reason": "budget"},
}


def other(kind: str, time: float = 2.0, **more: Any) -> Record:
    return HEAD | {"kind": kind, "time": time} | OTHERS[kind] | more


def written(path: Path, records: Iterable[Record]) -> Path:
    """A file of records."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
