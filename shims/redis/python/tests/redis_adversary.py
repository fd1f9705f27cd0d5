"""Redis for the adversary (spec SHIM-49): redis-py's commands, pipelines, transactions, scripts and functions."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import antipode_redis
import redis
import redis.asyncio
from antipode.testing.adversary import Stage
from antipode.testing.driven import BlockingProxy
from antipode_lab.stores.redis import RedisStore
from regions import until

LIBRARY = """#!lua name=adversary
redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], 'f') end)
redis.register_function{function_name='look', callback=function(keys, args) return redis.call('EXISTS', keys[1]) end,
  flags={'no-writes'}}
"""
SET = "return redis.call('SET', KEYS[1], 's')"
SET_AND_FAIL = "redis.call('SET', KEYS[1], 's'); return redis.call('NO SUCH COMMAND')"
EXISTS = "return redis.call('EXISTS', KEYS[1])"


class Client:
    """A wrapped client, and the pipeline that is open on it."""

    def __init__(self, stage: RedisStage, *, executes: bool, plain: bool) -> None:
        self._stage = stage
        self.executes = executes
        """Whether what is open when it is closed is executed before."""
        self._plain = plain
        self.pipe: Any = None
        self.reopen()

    def reopen(self) -> None:
        """Have another client, of one connection."""
        plain = self._stage.connect("a", single_connection_client=True)
        self.wrapped: Any = self._stage.drive(plain if self._plain else self._stage.wrap(plain))
        self.pipe = None

    @property
    def target(self) -> Any:
        """The pipeline where one is open, else the client."""
        return self.wrapped if self.pipe is None else self.pipe

    def open(self, *, transaction: bool) -> None:
        """Open a pipeline; one that was open is left as it is, with all that it holds."""
        self.pipe = self.wrapped.pipeline(transaction=transaction)

    def end(self, method: str) -> None:
        """Call a method of the pipeline; it stays open, as redis-py's do."""
        if self.pipe is not None:
            getattr(self.pipe, method)()

    def execute(self) -> object:
        """Execute the pipeline, else what was queued by hand."""
        return self.wrapped.execute_command("EXEC") if self.pipe is None else self.pipe.execute()

    def shut(self) -> None:
        """Reset the pipeline, and forget it."""
        self.end("reset")
        self.pipe = None

    def kill(self) -> None:
        """Have the server end the client's connections."""
        self._stage.kill_clients()

    def renew(self) -> None:
        """Close the client in whatever state it is; have another one."""
        self._stage.shut(self.wrapped)
        self.reopen()


def _call(method: str, *after: Any, before: tuple[Any, ...] = ()) -> Callable[[Client, str], object]:
    return lambda client, row: getattr(client.target, method)(*before, row, *after)


def _command(*words: Any) -> Callable[[Client, str], object]:
    return lambda client, row: client.target.execute_command(*(row if word is None else word for word in words))


def _transaction(client: Client, row: str) -> None:
    client.wrapped.transaction(lambda pipe: pipe.set(row, "t"), f"watched-{row}")


def _pipeline(transaction: bool, *, fails: bool = False) -> Callable[[Client, str], object]:
    def write(client: Client, row: str) -> None:
        with client.wrapped.pipeline(transaction=transaction) as pipe:
            pipe.set(row, "p")
            if fails:
                pipe.lpush(row, "1")
            pipe.execute()

    return write


def _immediate(client: Client, row: str) -> None:
    """Between WATCH and MULTI a pipeline's commands are sent at once."""
    with client.wrapped.pipeline() as pipe:
        pipe.watch("watched")
        pipe.set(row, "w")
        pipe.multi()


def _failing(client: Client, row: str) -> object:
    """A script that fails, alone in its pipeline, whose errors come as its results."""
    with client.wrapped.pipeline(transaction=False) as pipe:
        return [str(each) for each in pipe.eval(SET_AND_FAIL, 1, row).execute(raise_on_error=False)]


def _killed(client: Client, row: str) -> None:
    """The connection is lost behind EXEC, in the middle of its reply."""
    with client.wrapped.pipeline() as pipe:
        pipe.watch("watched")
        own = pipe.client_id()
        pipe.multi()
        pipe.set(row, "k").client_kill_filter(_id=own, skipme=False).exists(row).execute()


def _script(client: Client, row: str) -> None:
    client.wrapped.register_script(SET)(keys=[row], client=client.target)


class RedisStage(Stage):
    """One lab of a primary and a replica."""

    is_of_asyncio = False

    commits_at_once = True
    errors: ClassVar[tuple[type[Exception], ...]] = (redis.RedisError,)
    writes: ClassVar = {
        "set": _call("set", "v"),
        "set with options": lambda client, row: client.target.set(row, "v", px=600_000, nx=True),
        "mset": lambda client, row: client.target.mset({row: "v"}),
        "append": _call("append", "v"),
        "increment": _call("incr"),
        "hash": _call("hset", "f", "v"),
        "list": _call("rpush", "v"),
        "sorted set": lambda client, row: client.target.zadd(row, {"v": 1}),
        "stream": lambda client, row: client.target.xadd(row, {"f": "v"}),
        "bit": _call("setbit", 3, 1),
        "hyperloglog": _call("pfadd", "v"),
        "copy": lambda client, row: client.target.copy("source", row),
        "sort and store": lambda client, row: client.target.sort("numbers", store=row),
        "command": _command("SET", None, "v"),
        "command of several words": _command("BITFIELD", None, "SET", "u8", 0, 255),
        "command in small letters": _command("getset", None, "v"),
        "script": lambda client, row: client.target.eval(SET, 1, row),
        "script that fails": lambda client, row: client.target.eval(SET_AND_FAIL, 1, row),
        "script that fails in a pipeline": _failing,
        "script by its hash": _script,
        "function": lambda client, row: client.target.fcall("put", 1, row),
        "pipeline": _pipeline(False),
        "pipeline that fails": _pipeline(False, fails=True),
        "transaction": _pipeline(True),
        "transaction that fails": _pipeline(True, fails=True),
        "transaction's function": _transaction,
        "behind a watch": _immediate,
        "transaction that is killed": _killed,
    }
    acts: ClassVar = {
        "open a pipeline": lambda client: client.open(transaction=False),
        "open a transaction": lambda client: client.open(transaction=True),
        "execute": lambda client: client.execute(),
        "execute without raising": lambda client: client.pipe and client.pipe.execute(raise_on_error=False),
        "reset": lambda client: client.end("reset"),
        "discard": lambda client: client.end("discard"),
        "multi": lambda client: client.end("multi"),
        "watch": lambda client: client.pipe and client.pipe.watch("watched"),
        "unwatch": lambda client: client.end("unwatch"),
        "close the pipeline": lambda client: client.shut(),
        "MULTI": lambda client: client.wrapped.execute_command("MULTI"),
        "EXEC": lambda client: client.wrapped.execute_command("EXEC"),
        "DISCARD": lambda client: client.wrapped.execute_command("DISCARD"),
        "read": lambda client: client.target.exists("source"),
        "error": lambda client: client.target.lpush("source", "1"),
        "disturb the watched": lambda client: client._stage.touch(),
        "kill": lambda client: client.kill(),
        "new client": lambda client: client.renew(),
    }
    reads: ClassVar = {
        "exists": lambda reader, row: reader.exists(row),
        "type": lambda reader, row: reader.type(row) != b"none",
        "keys": lambda reader, row: reader.keys(row),
        "scan": lambda reader, row: list(reader.scan_iter(row)),
        "command": lambda reader, row: reader.execute_command("exists", row),
        "script": lambda reader, row: reader.eval_ro(EXISTS, 1, row),
        "script that may write": lambda reader, row: reader.eval(EXISTS, 1, row),
        "script by its hash": lambda reader, row: reader.register_script(EXISTS)(keys=[row]),
        "function": lambda reader, row: reader.fcall_ro("look", 1, row),
        "pipeline": lambda reader, row: reader.pipeline(transaction=False).exists(row).execute()[0],
        "transaction": lambda reader, row: reader.pipeline().exists(row).execute()[0],
        "script in a pipeline": lambda reader, row: reader.pipeline().eval(EXISTS, 1, row).execute()[0],
        "behind a watch": lambda reader, row: reader.transaction(
            lambda pipe: pipe.exists(row), row, value_from_callable=True
        ),
    }
    replicas = ("b1",)

    def __init__(self, lab: RedisStore) -> None:
        self.lab = lab
        self._loop = asyncio.new_event_loop()
        self._batches = itertools.count(1)
        self._plain = {name: redis.Redis.from_url(lab.url(name)) for name in ("a", "b1")}

    def connect(self, server: str, **options: Any) -> Any:
        """Return a plain client of a server."""
        return (redis.asyncio if self.is_of_asyncio else redis).Redis.from_url(self.lab.url(server), **options)

    def drive(self, client: Any) -> Any:
        """Return what has a blocking client's ways."""
        return BlockingProxy(client, self._loop) if self.is_of_asyncio else client

    def wrap(self, plain: Any, **options: Any) -> Any:
        """Wrap a client under the stage's name."""
        return antipode_redis.wrap(plain, store=self.name, replicas=[self.lab.url("b1")], **options)

    def open(self, kind: int, *, plain: bool = False) -> Client:
        client = Client(self, executes=kind // 5 % 2 == 0, plain=plain)
        if kind % 5 == 4:
            client.wrapped.execute_command("MULTI")
        elif kind % 5 >= 2:
            client.open(transaction=kind % 5 == 2)
        return client

    def close(self, client: Any) -> None:
        if not isinstance(client, Client):
            self.shut(client)
            return
        with suppress(*self.errors):
            if client.executes:
                client.execute()
        self.shut(client.wrapped)

    def shut(self, client: Any) -> None:
        """Close a client of redis-py."""
        client.aclose() if self.is_of_asyncio else client.close()

    def reader(self) -> Any:
        return self.drive(self.wrap(self.connect("b1"), wait_on_read=True))

    def touch(self) -> None:
        """Change what pipelines watch."""
        self._plain["a"].incr("watched")

    def kill_clients(self) -> None:
        """End the connections of all wrapped clients of the primary."""
        self._plain["a"].client_kill_filter(_type="normal", skipme=True)

    def rows(self, server: str | None = None) -> set[str]:
        keys: Any = self._plain[server or "a"].keys("adv-*")
        return {key.decode() for key in keys}

    def contents(self) -> Mapping[str, object]:
        primary: Any = self._plain["a"]
        return {row: b"a stream" if primary.type(row) == b"stream" else primary.dump(row) for row in self.rows()}

    def tell(self, result: Any) -> str:
        return re.sub(r"\d{13}-\d+", "an entry", super().tell(result))

    def clear(self) -> None:
        primary = self._plain["a"]
        primary.flushdb()
        primary.function_load(LIBRARY, replace=True)
        primary.set("source", "v")
        primary.rpush("numbers", "2", "1")

    def cut(self) -> None:
        self._plain["a"].set("batch", next(self._batches))
        last = self._plain["a"].get("batch")
        until(lambda: self._plain["b1"].get("batch") == last, 60.0)
        self.lab.partition("b1")

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)


class AsyncRedisStage(RedisStage):
    """The same by redis-py's asyncio client."""

    is_of_asyncio = True
