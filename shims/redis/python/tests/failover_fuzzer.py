"""The failover fuzzer on Redis (spec EPOCH-27): a primary and two replicas behind slow links, in a lab a run.

Time is scaled: marks come every 60 ms and failovers every few hundred ms.

    python failover_fuzzer.py --runs 160 --seed 1
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import antipode_redis
import redis
from antipode.testing import failover
from antipode.testing.failover import Tally
from antipode_lab import Lab
from antipode_lab.failover import LabDriver

MARK_PERIOD_MS = 60


class RedisDriver(LabDriver):
    """A lab of three servers."""

    may_crash_primary = True

    def __enter__(self) -> RedisDriver:
        self._period, antipode_redis.marks.PERIOD_MS = antipode_redis.marks.PERIOD_MS, MARK_PERIOD_MS
        self._whole = Lab("redis", replicas=2, lag=["2ms", "10ms"]).start()
        self.lab = self._whole.redis
        urls = {name: self.lab.url(name) for name in self.servers}
        self._plain = {name: redis.Redis.from_url(url, socket_timeout=5) for name, url in urls.items()}
        self._wrapped = {
            name: antipode_redis.wrap(redis.Redis.from_url(url), store=self.name, replicas=list(urls.values()))
            for name, url in urls.items()
        }
        return self

    def __exit__(self, *_: object) -> None:
        antipode_redis.marks.PERIOD_MS = self._period
        self._whole.close()

    def write(self, server: str, key: str, value: str) -> None:
        self._wrapped[server].set(key, value)

    def shows(self, server: str, key: str, value: str) -> bool | None:
        try:
            return bool(self._plain[server].get(key) == value.encode())
        except redis.RedisError:
            return None

    def history(self, server: str) -> tuple[str, str] | None:
        try:
            found = self._plain[server].info()
        except redis.RedisError:
            return None
        if found.get("master_sync_in_progress") == 1 or found.get("loading") == 1:
            return None
        return str(found["run_id"]), str(found["master_replid"])

    def settle_marks(self) -> None:
        time.sleep(3 * MARK_PERIOD_MS / 1000)

    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        self.lab.save(replica)
        write()
        self.lab.restart(replica, "rdb", crash=True, wait=wait)

    def promote(self, replica: str, lost: Callable[[], None] | None) -> None:
        self.lab.promote(replica, lose=0 if lost is None else lambda _: lost())

    def crash_primary(self, write: Callable[[], None]) -> None:
        """It starts again from an older RDB."""
        primary = self.lab.primary
        self.lab.save(primary)
        write()
        self.lab.restart(primary, "rdb", crash=True)


def fuzz(runs: int, seed: int, *, say: Callable[[str], object] | None = None) -> Tally:
    """Plays so many runs, each in a lab of its own."""
    return failover.run(lambda _: RedisDriver(), runs, seed, say=say)


if __name__ == "__main__":
    sys.exit(failover.command_line(fuzz, __doc__ or ""))
