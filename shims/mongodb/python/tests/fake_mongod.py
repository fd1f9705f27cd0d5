"""A server that answers MongoDB's wire protocol from a script: what no mongod is here for.

It is not a database. It knows a replica set's time: each write moves it on, a majority read stands on `committed`, and
a read after a time that has not been committed waits, as MongoDB documents it.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import bson
import pymongo
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

SET_ID = ObjectId("65f0a1b2c3d4e5f6a7b8c9d0")
_OP_MSG = 2013
_WRITES = (
    *("insert", "update", "delete", "findAndModify", "commitTransaction"),
    *("drop", "dropDatabase", "renameCollection"),
)


class FakeMongod:
    """One server: a member of a replica set, or a router of a sharded cluster."""

    def __init__(
        self,
        *,
        sharded: bool = False,
        honours: bool = True,
        default_w: Any = "majority",
        set_id: ObjectId = SET_ID,
        journal: bool = True,
        primary: bool = True,
    ) -> None:
        self.sharded = sharded
        self.honours = honours
        self.default_w = default_w
        self.set_id = set_id
        self.journal = journal
        self.primary = primary
        self.initiated = True
        """Whether it has its set's configuration."""
        self.in_set = True
        self.syncing = False
        """Whether it is neither primary nor secondary: in its initial sync, say."""
        self.now = Timestamp(1_800_000_000, 1)
        self.committed = self.now
        self.concern_error = False
        self.election = ObjectId("7fffffff0000000000000001")
        self.commands: list[dict[str, Any]] = []
        self.more: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = True
        self._sockets: list[socket.socket] = []
        self._clients: list[Any] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        self._open = False
        self._listener.close()
        self.drop()

    def drop(self) -> None:
        """Ends all its connections."""
        ended, self._sockets = self._sockets, []
        for each in ended:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def client(self, *, whole: bool = False, **options: Any) -> Any:
        """A client of it, or of the whole set that it is the only member of."""
        url = f"mongodb://127.0.0.1:{self.port}/?replicaSet=rs0" if whole else self.url
        client: Any = pymongo.MongoClient(url, serverSelectionTimeoutMS=20_000, **options)
        self._clients.append(client)
        return client

    def named(self, *names: str) -> list[dict[str, Any]]:
        """The commands of these names that have come."""
        return [each for each in self.commands if next(iter(each)) in names]

    # The protocol

    def _accept(self) -> None:
        while self._open:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while True:
                head = _exactly(connection, 16)
                size, request, _, code = struct.unpack("<iiii", head)
                body = _exactly(connection, size - 16)
                reply = bson.encode(self._reply(_command(code, body)))
                if code == _OP_MSG:
                    payload, answer = struct.pack("<I", 0) + b"\x00" + reply, _OP_MSG
                else:
                    payload, answer = struct.pack("<iqii", 8, 0, 0, 1) + reply, 1
                connection.sendall(struct.pack("<iiii", 16 + len(payload), 1, request, answer) + payload)

    def _reply(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        self.commands.append(command)
        reply = self._answer(name, command)
        if not self.sharded and "operationTime" not in reply:
            reply["operationTime"] = self.now
        reply["$clusterTime"] = {"clusterTime": self.now, "signature": {"hash": b"\0" * 20, "keyId": 0}}
        return reply

    def _answer(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if name in self.more:
            return self.more[name](command)
        if name.lower() in ("hello", "ismaster"):
            return self._hello()
        if name == "buildInfo":
            return {"version": "8.0.4", "ok": 1.0}
        if name == "replSetGetConfig":
            config = {"settings": {"replicaSetId": self.set_id}, "writeConcernMajorityJournalDefault": self.journal}
            return {"config": config, "ok": 1.0}
        if name == "getDefaultRWConcern":
            return {"defaultWriteConcern": {"w": self.default_w, "wtimeout": 0}, "ok": 1.0}
        if name == "find":
            return self._find(command)
        if name == "listIndexes":
            return {"ok": 0.0, "code": 26, "codeName": "NamespaceNotFound", "errmsg": "ns does not exist"}
        if name in _WRITES:
            return self.written(command)
        return {"ok": 1.0}

    def _hello(self) -> dict[str, Any]:
        hello: dict[str, Any] = {
            "ok": 1.0,
            "isWritablePrimary": self.primary,
            "ismaster": self.primary,
            "maxBsonObjectSize": 16777216,
            "maxMessageSizeBytes": 48000000,
            "maxWriteBatchSize": 100000,
            "logicalSessionTimeoutMinutes": 30,
            "minWireVersion": 0,
            "maxWireVersion": 25,
            "readOnly": False,
        }
        if self.sharded:
            return {**hello, "msg": "isdbgrid"}
        if not self.in_set:
            return hello
        if not self.initiated:
            return {**hello, "isWritablePrimary": False, "ismaster": False, "secondary": False, "isreplicaset": True}
        me = f"127.0.0.1:{self.port}"
        view = {"setName": "rs0", "setVersion": 1, "hosts": [me], "me": me, "primary": me}
        if self.syncing:
            return {**hello, **view, "isWritablePrimary": False, "ismaster": False, "secondary": False}
        if self.primary:
            view["electionId"] = self.election
        return {**hello, **view, "secondary": not self.primary}

    def _find(self, command: dict[str, Any]) -> dict[str, Any]:
        concern = command.get("readConcern", {})
        after = concern.get("afterClusterTime")
        if after is not None and self.honours:
            if after > self.now:
                return {"ok": 0.0, "code": 72, "codeName": "InvalidOptions", "errmsg": "greater than clusterTime"}
            deadline = time.monotonic() + command.get("maxTimeMS", 1000) / 1000
            while self.committed < after:
                if time.monotonic() > deadline:
                    return {"ok": 0.0, "code": 50, "codeName": "MaxTimeMSExpired", "errmsg": "exceeded time limit"}
                time.sleep(0.002)
        at = self.committed if concern.get("level") == "majority" else self.now
        space = f"{command['$db']}.{command['find']}"
        return {"cursor": {"id": 0, "ns": space, "firstBatch": []}, "operationTime": at, "ok": 1.0}

    def written(self, command: dict[str, Any]) -> dict[str, Any]:
        """Its time moves on; the answer to a command that has written."""
        self.now = Timestamp(self.now.time, self.now.inc + 1)
        reply: dict[str, Any] = {"ok": 1.0, "n": 1, "nModified": 1}
        if "findAndModify" in command:
            reply = {"ok": 1.0, "value": None, "lastErrorObject": {"n": 0}}
        if self.concern_error:
            reply["writeConcernError"] = {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "timed out"}
        return reply


def _command(code: int, body: bytes) -> dict[str, Any]:
    if code != _OP_MSG:  # OP_QUERY: a client's first hello
        end = body.index(b"\0", 4)
        return dict(bson.decode(body[end + 9 :]))
    command: dict[str, Any] = {}
    place = 4
    while place < len(body):
        kind = body[place]
        [size] = struct.unpack_from("<i", body, place + 1)
        if kind == 0:
            command = {**bson.decode(body[place + 1 : place + 1 + size]), **command}
        else:
            section = body[place + 5 : place + 1 + size]
            word, _, documents = section.partition(b"\0")
            command[word.decode()] = bson.decode_all(documents)
        place += 1 + size
    return command


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise OSError("the client has gone")
        found += more
    return found


async def done(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def with_client(member: FakeMongod, is_async: bool, use: Callable[[Any], Any]) -> None:
    """Runs `use(client)`, of a client of either kind."""

    async def with_async() -> None:
        async with pymongo.AsyncMongoClient[Any](member.url) as client:
            await use(client)

    asyncio.run(with_async() if is_async else use(member.client()))
