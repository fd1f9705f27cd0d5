"""The conformance kit on a replica set of real servers, where a mongod is at hand (spec SHIM-33, EPOCH-27).

None is to be had where this is built: what is here has not been run. `$MONGOD`, or a `mongod` on the PATH, runs it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar

import antipode_mongodb
import pytest
from antipode.shim import Capabilities
from antipode.testing.conformance import ShimConformance
from antipode.testing.under_test import Transaction
from antipode_lab.stores.mongod import MongodStore
from mongodb_regions import DATABASE
from mongodb_under_test import MongoUnderTest
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

_HERE = shutil.which(os.environ.get("MONGOD") or "mongod") is not None


class MongodUnderTest(MongoUnderTest):
    """A replica set of three: positions, transactions, and elections that roll back."""

    kind = "mongod"
    store = MongodStore
    exceptions: ClassVar[Mapping[str, str]] = {
        "missing_rights": "the lab's replica set asks nobody for a login",
        "repointed_replica": "a member finds its source by itself",
        "commit_inside_a_transaction": "a commit ends its transaction, and none is open behind it",
    }

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(versions="position", blocking_wait=True, rest=("field",))

    def prepare(self) -> None:
        with self.lab.client("a") as client:
            client[DATABASE].create_collection("kit")
        self.lab.wait_links()

    def _posts(self, client: Any) -> Any:
        posts = super()._posts(client)
        return posts.with_options(read_concern=ReadConcern("majority"))

    def begin(self) -> None:
        urls = [self.lab.mongo_url(name) for name in self.replicas]
        words = {"timeout": 10.0, "w": "majority"}
        self._more: list[Any] = []
        self._plain = {name: self.lab.client(name, **words) for name in self.lab.servers}
        self._wrapped = {
            name: antipode_mongodb.wrap(plain, store=self.name, replicas=urls) for name, plain in self._plain.items()
        }

    def promote(self, replica: str, lost: Callable[[], None] | None = None) -> None:
        old = self.primary

        def write(_: Any) -> None:
            # Without a majority a write is not acknowledged in time: it is there, and has no position.
            with suppress(PyMongoError):
                if lost is not None:
                    lost()

        self.lab.promote(replica, lose=0 if lost is None else write)
        if lost is not None:
            self.lab.heal()
            self.lab.wait_caught_up(old)

    def transaction(self) -> AbstractContextManager[Transaction]:
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        client = self._wrapped[self.primary]
        with client.start_session() as session, session.start_transaction():
            yield _InTransaction(self._posts(client), session)


class _InTransaction:
    def __init__(self, posts: Any, session: Any) -> None:
        self._posts, self._session = posts, session

    def read(self, key: str) -> object:
        return self._posts.find_one({"_id": key}, session=self._session)

    def write(self, key: str, value: str) -> None:
        change = {"$set": {"value": value}}
        self._posts.update_one({"_id": key}, change, upsert=True, session=self._session)


@pytest.mark.stores
@pytest.mark.skipif(not _HERE, reason="there is no mongod here")
class TestConformanceOnMongod(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[MongodUnderTest]:
        store = MongodUnderTest()
        yield store
        store.close()
