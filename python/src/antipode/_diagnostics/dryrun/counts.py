"""What dry-run's summaries count: plain integers that only grow, so that counting costs a look-up (REC-16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_MOST: Final = 10_000


class CounterKey(NamedTuple):
    """What is counted, and where: the site and the store, as far as they belong to it."""

    what: str
    site: str = ""
    store: str = ""


REQUESTS: Final = CounterKey("requests")
MESSAGES: Final = CounterKey("messages")
ENFORCED: Final = CounterKey("enforced_barriers")
OF_SCOPES: Final = {"request": REQUESTS, "message": MESSAGES}
"""By the kind of a scope."""

_counts: dict[CounterKey, int] = {}


def add(counted: CounterKey) -> None:
    """One more. Past so many different ones new ones are counted without their site."""
    if counted not in _counts:
        if counted.site and len(_counts) >= _MOST:
            counted = counted._replace(site="")
        _counts.setdefault(counted, 0)
    _counts[counted] += 1  # nothing is called in between, so that no other thread of CPython is let in


def snapshot() -> dict[CounterKey, int]:
    """Every count as it is now."""
    return dict(_counts)


def between(before: dict[CounterKey, int], now: dict[CounterKey, int]) -> Iterator[dict[str, Any]]:
    """What was counted between two snapshots, as summaries have it."""
    for counted, count in sorted(now.items()):
        new = count - before.get(counted, 0)
        if new:
            named = {"site": counted.site, "store": counted.store}
            yield {"what": counted.what} | {name: word for name, word in named.items() if word} | {"count": new}


def reset() -> None:
    """Counts from nothing (tests, and the child of a fork)."""
    _counts.clear()
