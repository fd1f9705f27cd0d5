"""How large an experiment is: the same for all of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from antipode_benchmarks.postnotification import queues, stores
from antipode_benchmarks.postnotification.options import Options

MOST_OCTETS: Final = {"dynamodb": 399_000}
"""What an object may have at most, with its key and its lineage; a post is never larger there (paper 7.2)."""
STORES: Final = tuple(name for name in stores.names() if name != "memory")
"""The posts' stores that have servers."""
NOTIFIERS: Final = tuple(name for name in queues.names() if name not in {"memory", "http"})
"""The notifiers that have servers."""


@dataclass(frozen=True, slots=True)
class Scale:
    """One experiment's scale; times in ms."""

    requests: int
    rate: float
    size: int
    lags_ms: tuple[int, ...]
    queue_lag_ms: int
    warmup: int = 5

    def options(self, post_storage: str, notifier: str, **others: Any) -> Options:
        """One run of it."""
        return Options(
            post_storage=post_storage,
            notifier=notifier,
            requests=self.requests,
            rate=self.rate,
            size=min(self.size, MOST_OCTETS.get(post_storage, self.size)),
            lags_ms=self.lags_ms,
            queue_lag_ms=self.queue_lag_ms,
            warmup=self.warmup,
            timeout=max(5.0, 10 * max(self.lags_ms) / 1000),
            **others,
        )
