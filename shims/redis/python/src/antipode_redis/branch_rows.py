"""The rows of closed branches: one string key each, which Redis forgets by itself (spec BRANCH-22)."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from antipode import logs
from antipode.errors import ConfigurationError, UnfitStoreError
from antipode.store import Store
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.probe import CLUSTER
from antipode_redis.resp import ServerError
from antipode_redis.session import Session
from antipode_redis.targets import Target, target_of

PREFIX: Final = "antipode:branch:"
RIGHTS: Final = "+set +mget"
_TIMEOUT_S: Final = 1.0
_BUSY: Final = frozenset({"LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN"})
"""Errors of a server that cannot answer now, and will."""


def find(session: Session, ids: Sequence[str]) -> Mapping[str, str]:
    """The rows that a server shows, by one MGET."""
    try:
        values = session.command("MGET", *(PREFIX + name for name in ids))
    except ServerError as error:
        if error.code in _BUSY:
            raise OSError(str(error)) from error  # as if it were out of reach (BAR-26)
        raise
    return {name: value.decode("latin-1") for name, value in zip(ids, values, strict=True) if value is not None}


class BranchRows:
    """Writes rows at the primary, on one connection of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._open: tuple[str, Session] | None = None
        """The connection, and the address that it reaches."""

    def close(self, branch: str, text: str, life: float) -> bool:
        """As the table's `close_branch` says."""
        words = ("SET", PREFIX + branch, text, "NX", "PX", max(int(life * 1000), 1))
        with self._lock:
            self._forget_parents()
            return self._ask(words) is not None

    def _ask(self, words: Sequence[str | int]) -> object:
        failure: Exception | None = None
        for target in self._targets():
            for _ in range(2):  # a connection that was idle may have been ended; sent twice it does no more
                fresh = self._open is None or self._open[0] != target.address
                try:
                    return self._session(target).command(*words)
                except ServerError as error:
                    self.end()
                    failure = error
                    if error.code not in ("READONLY", *_BUSY):
                        raise
                    break
                except (OSError, RedisConnectionError, RedisTimeoutError) as error:
                    self.end()
                    failure = error
                    if fresh:
                        break
        if failure is None or isinstance(failure, ServerError):
            raise ConfigurationError(
                f"no server of {self._store.name} that this process has wrapped takes writes: branches are closed at its "
                f"primary; wrap a client of that. {failure or ''}".rstrip()
            ) from failure
        raise failure

    def _targets(self) -> list[Target]:
        """The servers behind wrapped clients, the one that took the last row first."""
        targets = {server.address: target_of(server.target) for server in self._store._own.values()}
        last = None if self._open is None else self._open[0]
        return sorted(targets.values(), key=lambda target: target.address != last)

    def _session(self, target: Target) -> Session:
        if self._open is None or self._open[0] != target.address:
            self.end()
            self._open = (target.address, Session(target, _TIMEOUT_S))
        return self._open[1]

    def check(self) -> None:
        """As the table's `check_branches` says: asks for the rights by using them, on a key that stands for nothing."""
        name = "check"
        for target in self._targets():
            try:
                session = Session(target, _TIMEOUT_S)
            except (OSError, RedisConnectionError, RedisTimeoutError) as error:
                logs.info(
                    f"branches {target.address}",
                    f"{target.address} does not answer yet ({error}): whether it can hold branches is seen at the first",
                )
                continue
            try:
                if session.hello.get("mode") == "cluster":
                    raise UnfitStoreError(f"{target.address} {CLUSTER}")
                session.command("MGET", PREFIX + name)
                session.command("SET", PREFIX + name, "1", "NX", "PX", 1)
            except ServerError as error:
                if error.code == "NOPERM":
                    raise UnfitStoreError(
                        f"{self._store.name} cannot hold branches: {error}. Grant it at every server: ACL SETUSER <user> "
                        f"{RIGHTS} ~{PREFIX}*"
                    ) from error
                if error.code not in ("READONLY", *_BUSY):
                    raise UnfitStoreError(f"{self._store.name} cannot hold branches: {error}") from error
            finally:
                session.close()

    def _forget_parents(self) -> None:
        """A connection does not cross a fork."""
        if self._process != os.getpid():
            self._process, self._open = os.getpid(), None

    def end(self) -> None:
        """Gives the connection up; never raises."""
        last, self._open = self._open, None
        if last is not None:
            last[1].close()
