"""FerretDB for the adversary (spec SHIM-49): one document a row, by both of PyMongo's clients, also in the place of one
that a clock ahead has written."""

from __future__ import annotations

import asyncio
import contextvars
import re
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from unittest.mock import patch

import antipode_mongodb
import pymongo
from antipode._store.hybrid_clock import HybridClock
from antipode.testing.adversary import Stage
from antipode.testing.driven import BlockingProxy
from antipode_lab.stores.mongodb import MongoStore
from antipode_mongodb import tombstones, writing
from mongodb_regions import DATABASE
from pymongo import DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateOne
from pymongo.errors import PyMongoError

POSTS = "adversary"
AHEAD = 12
"""So many documents have a version of a clock that is ahead."""
AHEAD_S = 600
OLDER = "older"


def _on(method: str, *arguments: Any, **options: Any) -> Callable[[Any, str], object]:
    """Return what calls a method of the collection; ROW stands for the row's name."""

    def write(client: Any, row: str) -> object:
        return getattr(client[DATABASE][POSTS], method)(*_filled(arguments, row), **options)

    return write


ROW = object()


def _filled(value: Any, row: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, row) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_filled(each, row) for each in value)
    return row if value is ROW else value


def _bulk(ordered: bool, *, fails: bool = False) -> Callable[[Any, str], object]:
    def write(client: Any, row: str) -> object:
        requests: list[Any] = [
            InsertOne({"_id": row, "n": 1}),
            UpdateOne({"_id": row}, {"$inc": {"n": 1}}),
            ReplaceOne({"_id": f"{row}-b"}, {"n": 3}, upsert=True),
            DeleteOne({"_id": f"{row}-b"}),
        ]
        again = [InsertOne({"_id": row}), InsertOne({"_id": f"{row}-c"})] if fails else []
        return client[DATABASE][POSTS].bulk_write([*requests, *again], ordered=ordered)

    return write


def _command(client: Any, row: str) -> object:
    return client[DATABASE].command("insert", POSTS, documents=[{"_id": row, "n": 1}])["n"]


def _again(client: Any, row: str) -> object:
    posts = client[DATABASE][POSTS]
    posts.insert_one({"_id": row, "n": 1})
    posts.delete_one({"_id": row})
    return posts.insert_one({"_id": row, "n": 2})


def _deleted(client: Any, row: str) -> object:
    posts = client[DATABASE][POSTS]
    posts.insert_one({"_id": row, "n": 1})
    return posts.find_one_and_delete({"_id": row})


class _Died(BaseException):
    """The process, in effect."""


def _die(*_: Any, **__: Any) -> Any:
    raise _Died


def _ahead(row: str) -> str:
    """The document whose place a row takes."""
    return f"ahead-{zlib.crc32(row.encode()) % AHEAD:02}"


def _behind_a_death(client: Any, row: str) -> object:
    """Another process deletes a document, and dies before its tombstone; a document takes its place."""
    posts = client[DATABASE][POSTS]
    with patch.object(writing, "bury", _die), suppress(_Died):
        contextvars.Context().run(posts.delete_one, {"_id": _ahead(row), "row": OLDER})
    return posts.insert_one({"_id": _ahead(row), "row": row})


def _where(row: str) -> dict[str, Any]:
    return {"$or": [{"_id": row}, {"row": row}]}


BY_ID = {"_id": ROW}
SET = {"$set": {"n": 1}}


class MongoStage(Stage):
    """One lab of a primary and a secondary, whose documents have versions."""

    errors = (PyMongoError,)
    is_of_asyncio = False
    writes: ClassVar = {
        "insert": _on("insert_one", {"_id": ROW, "n": 1}),
        "insert many": _on("insert_many", [{"_id": ROW, "n": 1}]),
        "insert twice": _on("insert_many", [{"_id": ROW, "n": 1}, {"_id": ROW}]),
        "update": _on("update_one", BY_ID, SET, upsert=True),
        "update by a pipeline": _on("update_one", BY_ID, [{"$set": {"n": 1}}], upsert=True),
        "update many": _on("update_many", BY_ID, SET, upsert=True),
        "replace": _on("replace_one", BY_ID, {"n": 1}, upsert=True),
        "find and update": _on("find_one_and_update", BY_ID, SET, upsert=True, return_document=ReturnDocument.AFTER),
        "find and replace": _on("find_one_and_replace", BY_ID, {"n": 1}, upsert=True),
        "bulk": _bulk(True),
        "bulk out of order": _bulk(False),
        "bulk that fails": _bulk(True, fails=True),
        "bulk out of order that fails": _bulk(False, fails=True),
        "command": _command,
        "insert, delete, insert": _again,
        "insert, delete": _deleted,
        "in the place of one whose deletion has no tombstone": _behind_a_death,
    }
    acts: ClassVar = {
        "read": lambda client: client[DATABASE][POSTS].find_one({"_id": "nothing"}),
        "error": lambda client: client[DATABASE][POSTS].update_one({"_id": "nothing"}, {"$nothing": 1}),
        "update nothing": lambda client: client[DATABASE][POSTS].update_one({"_id": "nothing"}, {"$set": {"n": 1}}),
        "delete nothing": lambda client: client[DATABASE][POSTS].delete_many({"_id": "nothing"}),
        "update all": lambda client: client[DATABASE][POSTS].update_many({"n": {"$gt": 0}}, {"$inc": {"m": 1}}),
    }
    reads: ClassVar = {
        "find one": lambda reader, row: reader[DATABASE][POSTS].find_one(_where(row)),
        "find": lambda reader, row: list(reader[DATABASE][POSTS].find(_where(row))),
        "count": lambda reader, row: reader[DATABASE][POSTS].count_documents(_where(row)),
        "distinct": lambda reader, row: reader[DATABASE][POSTS].distinct("_id", _where(row)),
        "command": lambda reader, row: reader[DATABASE].command("find", POSTS, filter=_where(row))["cursor"][
            "firstBatch"
        ],
    }
    replicas = ("b1",)

    def __init__(self, lab: MongoStore) -> None:
        self.lab = lab
        self._loop = asyncio.new_event_loop()
        self._plain: dict[str, Any] = {name: lab.client(name) for name in ("a", "b1")}
        self._clients = {plain: self._made("a", plain=plain) for plain in (False, True)}
        self._reader = self._made("b1", wait_on_read=True)
        self._other = antipode_mongodb.wrap(self._plain["a"], store=self.name, replicas=[lab.mongo_url("b1")])
        self._other._antipode.clock = HybridClock(time_ns=lambda: time.time_ns() + AHEAD_S * 10**9)

    def _made(self, server: str, *, plain: bool = False, **options: Any) -> Any:
        kind = pymongo.AsyncMongoClient if self.is_of_asyncio else pymongo.MongoClient
        client: Any = kind(self.lab.mongo_url(server), directConnection=True)
        if not plain:
            replicas = [self.lab.mongo_url(name) for name in self.replicas]
            client = antipode_mongodb.wrap(client, store=self.name, replicas=replicas, **options)
        return BlockingProxy(client, self._loop) if self.is_of_asyncio else client

    def open(self, kind: int, *, plain: bool = False) -> Any:
        return self._clients[plain]

    def close(self, client: Any) -> None:
        """All share one client a server."""

    def reader(self) -> Any:
        return self._reader

    def contents(self, server: str = "a") -> Mapping[str, object]:
        return {
            found.get("row", found["_id"]): {name: value for name, value in found.items() if not name.startswith("_ap")}
            for found in self._plain[server][DATABASE][POSTS].find()
        }

    def rows(self, server: str | None = None) -> set[str]:
        return {row for row in self.contents(server or "a") if row.startswith("adv-")}

    def tell(self, result: Any) -> str:
        for words in (("matched_count", "upserted_id"), ("deleted_count",), ("inserted_ids",), ("inserted_id",)):
            if hasattr(result, words[0]) and not isinstance(result, BlockingProxy):
                return super().tell([getattr(result, word, None) for word in words])
        return re.sub(r", full error.*", "", super().tell(result), flags=re.DOTALL)

    def clear(self) -> None:
        for name in (POSTS, tombstones.COLLECTION):
            self._plain["a"][DATABASE][name].delete_many({})
        for number in range(AHEAD):
            self._other[DATABASE][POSTS].insert_one({"_id": f"ahead-{number:02}", "row": OLDER})

    def cut(self) -> None:
        self.lab.wait_caught_up("b1")
        self.lab.partition("b1")

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)


class AsyncMongoStage(MongoStage):
    """The same by PyMongo's asyncio client."""

    is_of_asyncio = True
