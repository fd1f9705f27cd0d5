"""Clients of Java and C++ for the adversary (spec SHIM-49): the servers are those of Python's stages, the judge, too.

By hand: PYTHONPATH=… python language_adversary.py java postgresql --runs 500 --seed 1
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from antipode.testing import adversary, isolated
from antipode.testing.adversary import Stage
from antipode_benchmarks.adversary import Client, ClientError, Worker
from antipode_benchmarks.postnotification.options import Language
from antipode_lab import Lab
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_adversary import PostgresqlStage
from pg_regions import prepare
from redis_adversary import RedisStage


def _go(kind: str, way: str) -> Callable[..., Any]:
    return lambda client, row="": client.go(kind, way, row)


class _WorkerStage(Stage):
    """What both stores' have in common, before the store's own stage."""

    errors: ClassVar[tuple[type[Exception], ...]] = (ClientError,)
    worker: Worker

    def attach(self, worker: Worker) -> None:
        """Have the clients of a worker."""
        self.worker = worker
        ways = worker.ways
        own = {kind: {way: _go(kind, way) for way in ways[f"{kind}s"]} for kind in ("write", "act", "read")}
        vars(self).update(application=worker, writes=own["write"], acts=own["act"], reads=own["read"])

    def open(self, kind: int, *, plain: bool = False) -> Any:
        return Client(self.worker, "open", kind=kind, plain=plain)

    def close(self, client: Any) -> None:
        client.close()

    def reader(self) -> Any:
        return Client(self.worker, "reader")

    def tell(self, result: Any) -> str:
        words = re.sub(r"\d{13}-\d+", "an entry", str(result))
        words = re.sub(r"adversary-(java|cpp)-\d+", "a transaction", words)
        words = re.sub(r"(JedisConnection|Redis|StacklessClosedChannel)Exception: .*", "lost", words)  # as it may show
        return f"{type(result).__name__}: {words}" if isinstance(result, Exception) else words


LOST = re.compile(
    r"(FATAL:  terminating connection due to administrator command\s*|server closed the connection unexpectedly\s*"
    r"|This probably means the server terminated abnormally\s*before or while processing the request\.\s*"
    r"|SSL connection has been closed unexpectedly\s*|no connection to the server\s*)+"
)
"""How libpq says that a connection is lost, by how soon it sees that."""


class WorkerPostgresqlStage(_WorkerStage, PostgresqlStage):
    """PostgreSQL by JDBC or libpq."""

    def tell(self, result: Any) -> str:
        return LOST.sub("lost", super().tell(result))


class WorkerRedisStage(_WorkerStage, RedisStage):
    """Redis by Jedis and Lettuce, or hiredis."""

    def attach(self, worker: Worker) -> None:
        """What others do to the clients is done from here."""
        super().attach(worker)
        own = {"kill": lambda client: self.kill_clients(), "disturb the watched": lambda client: self.touch()}
        vars(self).update(acts={**self.acts, **own})


@contextmanager
def staged(language: Language, kind: str) -> Iterator[Stage]:
    """A stage of one of the four pairs, on a lab of its own."""
    config = {"max_prepared_transactions": "20", "max_connections": "300"}
    options = {"postgresql": {"config": config}} if kind == "postgresql" else {}
    with Lab(kind, replicas=1, lag="3ms", options=options) as lab, isolated():
        if kind == "postgresql":
            prepare(lab.get(PostgresqlStore))
            stage: Any = WorkerPostgresqlStage(lab.get(PostgresqlStore))
        else:
            stage = WorkerRedisStage(lab.redis)
        with Worker(language, kind, stage.name, stage.lab.url("a"), stage.lab.url("b1")) as worker:
            stage.attach(worker)
            yield stage


def main() -> None:
    """Play by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=["java", "cpp"])
    parser.add_argument("store", choices=["postgresql", "redis"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    with staged(words.language, words.store) as stage:
        tally = adversary.play(stage, words.runs, words.seed, say=print)
    print(tally)
    sys.exit(1 if tally.findings else 0)


if __name__ == "__main__":
    main()
