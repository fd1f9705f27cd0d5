"""FerretDB as the conformance kit drives it: a primary and two secondaries, whose documents have versions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import antipode_mongodb
from antipode.shim import Shim
from antipode_lab.stores.mongodb import MongoStore
from antipode_lab.under_test import LabUnderTest
from fake_mongod import FakeMongod
from mongodb_regions import DATABASE, prepare
from pymongo.errors import PyMongoError

_NO_TRANSACTIONS = "FerretDB has no transactions: it refuses to commit, and what was written stays"


class MongoUnderTest(LabUnderTest):
    """A lab of its own, made anew after the cases that spoil it."""

    kind = "mongodb"
    store: ClassVar[type[Any]] = MongoStore
    shim: ClassVar[type[Shim]] = antipode_mongodb.MongoShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "open_transaction": _NO_TRANSACTIONS,
        "transaction_over_two_scopes": _NO_TRANSACTIONS,
        "transaction_only_read_so_far": _NO_TRANSACTIONS,
        "rolled_back_transaction": _NO_TRANSACTIONS,
        "barrier_in_a_transaction": _NO_TRANSACTIONS,
        "commit_inside_a_transaction": _NO_TRANSACTIONS,
        "hashed_keys": "a document is asked for by its name, which a hash does not give back: unproven",
        "overwritten_without_antipode": "a document that a plain writer put has no version: it may be older or newer",
        "missing_rights": "FerretDB has one role, which may do everything",
    }
    patience = 40.0
    unfit_cure = "Wrap a client of a replica set"

    def prepare(self) -> None:
        prepare(self.lab)

    def begin(self) -> None:
        self._lock = threading.Lock()
        self._more: list[Any] = []
        self._plain = {name: self.lab.client(name, timeout=10.0) for name in self.lab.servers}
        urls = [self.lab.mongo_url(name) for name in self.replicas]
        self._wrapped = {
            name: antipode_mongodb.wrap(plain, store=self.name, replicas=urls) for name, plain in self._plain.items()
        }

    def close_clients(self) -> None:
        for client in [*self._plain.values(), *self._more]:
            with suppress(PyMongoError):
                client.close()

    # Data

    def _posts(self, client: Any) -> Any:
        return client[DATABASE]["kit"]

    def write(self, key: str, value: str) -> None:
        posts = self._posts(self._wrapped[self.primary])
        posts.update_one({"_id": key}, {"$set": {"value": value}}, upsert=True)

    def read(self, key: str, at: str) -> str | None:
        return _value(self._posts(self._wrapped[at]).find_one({"_id": key}))

    def look(self, key: str, at: str) -> str | None:
        return _value(self._posts(self._plain[at]).find_one({"_id": key}))

    def delete(self, key: str) -> None:
        self._posts(self._wrapped[self.primary]).delete_one({"_id": key})

    def raw_write(self, key: str, value: str) -> None:
        self._posts(self._plain[self.primary]).replace_one({"_id": key}, {"value": value}, upsert=True)

    def write_nothing(self) -> None:
        done = self._posts(self._wrapped[self.primary]).delete_one({"_id": self.new_key("never there")})
        assert done.deleted_count == 0

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        plain = self.lab.client(server, timeout=10.0)
        self._more.append(plain)
        urls = None if replicas is None else [self.lab.mongo_url(name) for name in replicas]
        return antipode_mongodb.wrap(plain, store=self.name, replicas=urls, wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        posts = self._posts(client)
        return {
            "find_one": lambda key: _value(posts.find_one({"_id": key})),
            "find": lambda key: _value(next(iter(posts.find({"_id": key})), None)),
            "aggregate": lambda key: _value(next(iter(posts.aggregate([{"$match": {"_id": key}}])), None)),
            "distinct": lambda key: next(iter(posts.distinct("value", {"_id": key})), None),
            "command": lambda key: _value(
                client[DATABASE].command("find", "kit", filter={"_id": key})["cursor"]["firstBatch"][0]
            ),
        }

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        posts = self._posts(client)
        return {
            "count_documents": lambda key: posts.count_documents({"_id": key}),
            "estimated_document_count": lambda key: posts.estimated_document_count(),
            "count": lambda key: client[DATABASE].command("count", "kit", query={"_id": key})["n"],
        }

    @contextmanager
    def past_moment(self, client: Any, key: str) -> Iterator[Callable[[], object]]:
        first = f"{key} first"
        self.raw_write(first, "v")
        self.until(lambda: self.shows(first, "v"), "the document before arrives")
        with self._posts(client).find({"_id": {"$in": [key, first]}}, sort=[("_id", -1)], batch_size=1) as cursor:
            assert next(cursor)["_id"] == first
            yield lambda: _value(next(cursor))

    def _port(self, server: str) -> int:
        return urlsplit(self.lab.mongo_url(server)).port or 0

    def list_port(self, port: int) -> None:
        antipode_mongodb.register(self.name, replicas=[self.lab.client_url(port)])

    # Servers

    def restart(self, server: str) -> None:
        self.lab.restart(server, crash=True)
        # A pooled connection to the server's last life fails once, and a single server's writes are not retried.
        self._plain[server].close()
        self._plain[server] = self.lab.client(server, timeout=10.0)
        self._wrapped[server] = antipode_mongodb.wrap(self._plain[server], store=self.name)

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        with self.lab.client(self.primary, timeout=0.5, retryWrites=False) as plain:
            client = antipode_mongodb.wrap(plain, store=self.name)
            self._posts(client).insert_one({"_id": self.new_key("connects")})
            self.lab.freeze(self.primary)
            try:
                self._posts(client).insert_one({"_id": key, "value": value})
            finally:
                self.lab.thaw(self.primary)

    def write_refused(self, key: str) -> None:
        self._posts(self._wrapped[self.primary]).update_one({"_id": key}, {"$nothing": {"value": 1}})

    def wrap_unfit(self) -> None:
        with FakeMongod(sharded=True) as router:
            antipode_mongodb.wrap(router.client(), store="unfit")


def _value(found: Mapping[str, Any] | None) -> str | None:
    return None if found is None else str(found["value"])
