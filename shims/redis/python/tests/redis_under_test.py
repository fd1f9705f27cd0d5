"""Redis as the conformance kit drives it: values are a field of a hash, so that lineages rest beside them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import antipode
import antipode_redis
import redis
from antipode._model.lineage import Lineage
from antipode.shim import Shim
from antipode.testing.under_test import Transaction
from antipode_lab.stores.redis import RedisStore
from antipode_lab.under_test import LabUnderTest

FIELD = "value"
MARK_PERIOD_MS = 200
_SCRIPT = f"return redis.call('hget', KEYS[1], '{FIELD}')"


class RedisUnderTest(LabUnderTest):
    """A lab of a primary and two replicas; made anew after the cases that spoil it."""

    kind = "redis"
    store = RedisStore
    shim: ClassVar[type[Shim]] = antipode_redis.RedisShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "past_moment": "Redis has no snapshots and no cursors over one: each reply shows what is there then"
    }
    rights_cure = "+info"
    unfit_cure = "Redis Cluster"

    def begin(self) -> None:
        self._period, antipode_redis.marks.PERIOD_MS = antipode_redis.marks.PERIOD_MS, MARK_PERIOD_MS
        urls = {name: self.lab.url(name) for name in self.lab.servers}
        self._more: list[redis.Redis] = []
        self._plain = {name: redis.Redis.from_url(url, decode_responses=True) for name, url in urls.items()}
        self._wrapped = {
            name: antipode_redis.wrap(
                plain, store=self.name, replicas=[urls[replica] for replica in self.replicas], rest="field"
            )
            for name, plain in self._plain.items()
        }

    def close_clients(self) -> None:
        antipode_redis.marks.PERIOD_MS = self._period
        for client in [*self._plain.values(), *self._more]:
            client.close()

    # Data

    def write(self, key: str, value: str) -> None:
        self._wrapped[self.primary].hset(key, FIELD, value)

    def read(self, key: str, at: str) -> str | None:
        return _text(self._wrapped[at].hget(key, FIELD))

    def look(self, key: str, at: str) -> str | None:
        return _text(self._plain[at].hget(key, FIELD))

    def delete(self, key: str) -> None:
        self._wrapped[self.primary].delete(key)

    def raw_write(self, key: str, value: str) -> None:
        self._plain[self.primary].hset(key, FIELD, value)

    def write_nothing(self) -> None:
        assert self._wrapped[self.primary].delete(self.new_key("never there")) == 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._wrapped[self.primary].pipeline(transaction=True) as pipe:
            opened = _Transaction(pipe)
            yield opened
            if opened.wrote:
                pipe.execute()

    def commits_inside(self) -> Mapping[str, Callable[[str, str], None]]:
        def in_a_pipeline(key: str, value: str) -> None:
            with self._wrapped[self.primary].pipeline(transaction=True) as pipe:
                pipe.hset(key, FIELD, value)
                pipe.execute()
                pipe.hset(key, FIELD, "never")
                pipe.reset()

        def in_a_block_of_ones_own(key: str, value: str) -> None:
            wrapped: Any = self._wrapped[self.primary]
            with wrapped.client() as client:
                for words in (("MULTI",), ("HSET", key, FIELD, value), ("EXEC",), ("MULTI",), ("DISCARD",)):
                    client.execute_command(*words)

        return {"pipeline": in_a_pipeline, "MULTI by hand": in_a_block_of_ones_own}

    # More clients

    def wrap_client(
        self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False
    ) -> redis.Redis:
        plain = redis.Redis.from_url(self.lab.url(server), decode_responses=True)
        self._more.append(plain)
        urls = None if replicas is None else [self.lab.url(replica) for replica in replicas]
        return antipode_redis.wrap(plain, store=self.name, replicas=urls, rest="field", wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        script = client.register_script(_SCRIPT)

        def in_a_pipeline(key: str) -> object:
            with client.pipeline(transaction=False) as pipe:
                return pipe.hget(key, FIELD).execute()[-1]

        def in_a_transaction(key: str) -> object:
            with client.pipeline(transaction=True) as pipe:
                return pipe.hget(key, FIELD).execute()[-1]

        return {
            "HGET": lambda key: client.hget(key, FIELD),
            "HSCAN": lambda key: client.hscan(key)[1].get(FIELD),
            "EVAL": lambda key: client.eval(_SCRIPT, 1, key),
            "EVAL_RO": lambda key: client.eval_ro(_SCRIPT, 1, key),
            "EVALSHA": lambda key: script(keys=[key]),
            "by its name": lambda key: client.execute_command("hget", key, FIELD),
            "pipeline": in_a_pipeline,
            "transaction": in_a_transaction,
        }

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        return {
            "EXISTS": client.exists,
            "TYPE": lambda key: client.type(key) == "hash",
            "HLEN": client.hlen,
            "HEXISTS": lambda key: client.hexists(key, FIELD),
            "HSTRLEN": lambda key: client.hstrlen(key, FIELD),
            "KEYS": client.keys,
            "SCAN": lambda key: list(client.scan_iter(key)),
            "DBSIZE": lambda key: client.dbsize(),
            "TTL": lambda key: client.ttl(key) == -1,
            "EXISTS in a pipeline": lambda key: client.pipeline(transaction=False).exists(key).execute()[0],
        }

    def list_port(self, port: int) -> None:
        antipode_redis.register(self.name, replicas=[f"redis://127.0.0.1:{port}"])

    # Links and servers

    def wait_marked(self, lineage: Lineage) -> None:
        [write_id] = lineage.of_store(self.name)
        assert isinstance(write_id.version, antipode.Ordered)
        epoch, counter = write_id.version

        def marked() -> bool:
            value: Any = self._plain[self.primary].hget(antipode_redis.marks.DEFAULT_KEY, epoch)
            found = antipode_redis.marks.position_of(value and value.encode())
            return found is not None and found >= counter

        self.until(marked, "a mark covers the write")

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        plain = redis.Redis.from_url(self.lab.url(self.primary), socket_timeout=0.2, retry=None)
        client = antipode_redis.wrap(plain, store=self.name)
        client.ping()
        self.lab.freeze(self.primary)
        try:
            client.hset(key, FIELD, value)
        finally:
            self.lab.thaw(self.primary)
            client.close()

    def write_refused(self, key: str) -> None:
        self._plain[self.primary].set(key, "no hash")
        self.write(key, "v")

    def write_without_rights(self, key: str, value: str) -> None:
        self.lab.create_user("app", "secret")
        url = self.lab.url(self.primary).replace("redis://", "redis://app:secret@")
        with antipode_redis.wrap(redis.Redis.from_url(url), store=self.name) as client:
            client.hset(key, FIELD, value)

    def wrap_unused(self, server: str) -> object:
        return antipode_redis.wrap(redis.Redis.from_url(self.lab.url(server)), store=self.name)

    def wrap_unfit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            socket = Path(folder) / "cluster.sock"
            program = shutil.which("redis-server") or "redis-server"
            options = ["--port", "0", "--cluster-enabled", "yes", "--save", "", "--dir", folder, "--unixsocket", socket]
            server = subprocess.Popen([program, *map(str, options)], stdout=subprocess.DEVNULL)
            try:
                self.until(socket.exists, "the server listens")
                client = redis.Redis(unix_socket_path=str(socket), socket_timeout=self.patience)
                client.ping()  # on a busy machine its first answer takes long
                antipode_redis.wrap(client, store="cluster")
            finally:
                server.terminate()
                server.wait(10)


class _Transaction:
    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self.wrote = False

    def read(self, key: str) -> object:
        self._pipe.watch(key)
        return self._pipe.hget(key, FIELD)

    def write(self, key: str, value: str) -> None:
        self.wrote = True
        self._pipe.hset(key, FIELD, value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
