"""The failover fuzzer on FerretDB (spec EPOCH-27): a primary and two secondaries behind slow links, a lab a run.

    python mongodb_fuzzer.py --runs 100 --seed 1

Versions of documents are of no epoch and need no marks: what a failover lost is nowhere, and never passes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import antipode_mongodb
import pymongo
from antipode.testing import failover
from antipode.testing.failover import Tally
from antipode_lab import Lab
from antipode_lab.failover import LabDriver
from antipode_lab.stores.mongodb import MongoStore
from mongodb_regions import prepare
from pymongo.errors import AutoReconnect, PyMongoError

_DATABASE = "fuzz"


class MongoDriver(LabDriver):
    """FerretDB's servers."""

    lab: MongoStore

    def __enter__(self) -> MongoDriver:
        self._whole = Lab("mongodb", replicas=2, lag=["2ms", "10ms"]).start()
        try:
            self.lab = self._whole.get(MongoStore)
            prepare(self.lab)
            urls = [self.lab.mongo_url(name) for name in self.servers]
            self._plain: dict[str, pymongo.MongoClient[dict[str, Any]]] = {}
            self._wrapped: dict[str, Any] = {}
            for name in self.servers:
                self._plain[name] = self.lab.client(name, timeout=10.0)
                self._wrapped[name] = antipode_mongodb.wrap(self._plain[name], store=self.name, replicas=urls)
        except BaseException:
            self._whole.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._plain.values():
            client.close()
        self._whole.close()

    def write(self, server: str, key: str, value: str) -> None:
        """By one of the operations that write, as the number in the key says."""
        with suppress(AutoReconnect):  # finds out which of the client's connections are from before a restart
            self._plain[server].admin.command("ping")
        written = self._wrapped[server][_DATABASE]["written"]
        kind = int(key.rpartition("-")[2]) % 4
        if kind == 0:
            written.insert_one({"_id": key, "v": value})
        elif kind == 1:
            written.update_one({"_id": key}, {"$set": {"v": value}}, upsert=True)
        elif kind == 2:
            written.insert_many([{"_id": key, "v": value}])
        else:
            written.replace_one({"_id": key}, {"v": value}, upsert=True)

    def shows(self, server: str, key: str, value: str) -> bool | None:
        with suppress(PyMongoError):
            return self._plain[server][_DATABASE]["written"].find_one({"_id": key, "v": value}) is not None
        return None

    def history(self, server: str) -> int | None:
        """A live server never takes back what it has: its process names its data."""
        with suppress(PyMongoError):
            self._plain[server].admin.command("ping")
            return self.lab.server(server).pid
        return None

    def settle_marks(self) -> None:
        """There are none."""

    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        self.lab.kill(replica)
        write()
        self.lab.restart(replica, crash=True, wait=wait)


def fuzz(runs: int, seed: int, *, say: Callable[[str], object] | None = None) -> Tally:
    """Plays so many runs, each in a lab of its own."""
    return failover.run(lambda _: MongoDriver(), runs, seed, say=say)


if __name__ == "__main__":
    sys.exit(failover.command_line(fuzz, __doc__ or ""))
