"""The failover fuzzer on MariaDB and MySQL (spec EPOCH-27): a primary and two GTID replicas behind slow links, in a
lab a run. With fresh server ids for every server that is rebuilt or rejoins, and with ids that are used again.

    python sql_fuzzer.py --runs 100 --seed 1     (--mysql; --reuse: ids are used again, and nobody says otherwise)
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import antipode
import antipode_mysql
import pymysql
from antipode._engine.server import ServerPoller
from antipode.testing import failover
from antipode.testing.failover import Tally
from antipode_lab import Lab
from antipode_lab.failover import LabDriver
from antipode_lab.stores._sql_store import SqlStore
from pymysql.constants import CLIENT


class SqlDriver(LabDriver):
    """A lab of three servers, all of which readers may use.

    kind: the lab's word for the store. fresh_ids: what operators do. claimed: what they say of it to `wrap`.
    """

    def __init__(self, kind: str, *, fresh_ids: bool, claimed: bool) -> None:
        self.kind = kind
        self.fresh_ids = fresh_ids
        self.claimed = claimed

    def __enter__(self) -> SqlDriver:
        options = {self.kind: {"fresh_server_ids": self.fresh_ids}}
        self._whole = Lab(self.kind, replicas=2, lag=["2ms", "10ms"], options=options).start()
        try:
            found = self._whole[self.kind]
            assert isinstance(found, SqlStore)
            self.lab = found
            self.lab.run("a", "CREATE TABLE written (k VARCHAR(64) PRIMARY KEY, v TEXT)")
            self.lab.wait_links()
            self._wrapped: dict[str, tuple[int, Any]] = {}
            self._idle: dict[str, deque[Any]] = {name: deque() for name in self.servers}
            for name in self.servers:
                self._client(name)
        except BaseException:
            self._whole.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._whole.close()

    def _client(self, name: str) -> Any:
        """The wrapped connection of a server; a new one for each life of it."""
        pid, client = self._wrapped.get(name, (0, None))
        if pid != self.lab.server(name).pid:
            urls = [self.lab.url(each) for each in self.servers]
            plain = self.lab.client(name, client_flag=CLIENT.SESSION_TRACK)
            client = antipode_mysql.wrap(plain, store=self.name, replicas=urls, fresh_server_ids=self.claimed)
            self._wrapped[name] = self.lab.server(name).pid, client
        return client

    def write(self, server: str, key: str, value: str) -> None:
        with self._client(server).cursor() as cursor:
            cursor.execute("INSERT INTO written VALUES (%s, %s)", (key, value))

    def shows(self, server: str, key: str, value: str) -> bool | None:
        rows = self._ask(server, "SELECT v FROM written WHERE k = %s", key)
        return None if rows is None else rows == [(value,)]

    def history(self, server: str) -> int | None:
        """A live server never takes back what it has: its process names its data."""
        rows = self._ask(server, "SELECT 1")
        return None if rows is None else self.lab.server(server).pid

    def _ask(self, server: str, question: str, *words: str) -> list[tuple[Any, ...]] | None:
        """Asks without Antipode, on a connection that nobody else uses meanwhile; None where nobody answers."""
        idle = self._idle[server]
        with suppress(IndexError, pymysql.MySQLError):
            return self._asked(idle, idle.pop(), question, words)
        try:
            return self._asked(idle, self.lab.client(server, connect_timeout=2, read_timeout=5), question, words)
        except pymysql.MySQLError:
            return None

    @staticmethod
    def _asked(idle: deque[Any], client: Any, question: str, words: Sequence[str]) -> list[tuple[Any, ...]]:
        with client.cursor() as cursor:
            cursor.execute(question, words or None)
            rows = list(cursor.fetchall())
        idle.append(client)
        return rows

    def settle_marks(self) -> None:
        """The log itself says what each server wrote."""

    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        self.lab.kill(replica)
        write()
        self.lab.restart(replica, crash=True, wait=wait)
        self._wait_noticed()

    def promote(self, replica: str, lost: Callable[[], None] | None) -> None:
        super().promote(replica, lost)
        self._wait_noticed()

    def rejoin(self, server: str, *, wait: bool) -> None:
        super().rejoin(server, wait=wait)
        self._wait_noticed()

    def _wait_noticed(self) -> None:
        """A server that was away for two seconds is left out of barriers until it has been asked again."""
        [store] = antipode.stores()
        deadline = time.monotonic() + 20
        while any(cast("ServerPoller", server).is_out(time.monotonic()) for server in store.servers()):
            assert time.monotonic() < deadline, "a server that answers is still left out"
            time.sleep(0.02)

    def wait_caught_up(self) -> None:
        super().wait_caught_up()
        self._wait_noticed()
        with antipode.scope() as scope:  # and each has been asked since it answers again, on a busy machine, too
            self.write(self.primary, f"calm-{time.monotonic_ns()}", "v")
            antipode.barrier(timeout=20, on_timeout="proceed", on_unproven="proceed", stores=[self.name])
            assert scope.lineage


def fuzz(
    runs: int,
    seed: int,
    *,
    fresh_ids: bool = True,
    claimed: bool | None = None,
    kind: str = "mariadb",
    say: Callable[[str], object] | None = None,
) -> Tally:
    """Plays so many runs, each in a lab of its own. `claimed`: what `wrap` is told of the ids; None: the truth."""
    told = fresh_ids if claimed is None else claimed
    return failover.run(lambda _: SqlDriver(kind, fresh_ids=fresh_ids, claimed=told), runs, seed, say=say)


if __name__ == "__main__":
    reuse, on_mysql = "--reuse" in sys.argv, "--mysql" in sys.argv
    sys.argv = [word for word in sys.argv if word not in ("--reuse", "--mysql")]

    def chosen(runs: int, seed: int, say: Callable[[str], object] | None = None) -> Tally:
        return fuzz(runs, seed, fresh_ids=not reuse, kind="mysql" if on_mysql else "mariadb", say=say)

    sys.exit(failover.command_line(chosen, __doc__ or ""))
