"""The rows of closed branches: one string key each, which Redis forgets by itself (spec BRANCH-22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode import Store, UnfitStoreError
from antipode.shim import Server
from antipode.shim.branch_writer import TIMEOUT_S, ReadOnlyError, RowWriter
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.probe import CLUSTER
from antipode_redis.resp import ServerError
from antipode_redis.session import Session
from antipode_redis.targets import target_of

PREFIX: Final = "antipode:branch:"
RIGHTS: Final = "+set +mget"
GRANT: Final = f"ACL SETUSER <user> {RIGHTS} ~{PREFIX}*"
_CHECK: Final = PREFIX + "check"
_BUSY: Final = frozenset({"LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN"})
"""Errors of a server that cannot answer now, and will."""


def row_writer(store: Store) -> RowWriter:
    """Where rows are written from."""
    return RowWriter(
        store,
        lambda server: Session(target_of(server.target), TIMEOUT_S),
        Session.close,
        (OSError, RedisConnectionError, RedisTimeoutError),
    )


def find(session: Session, ids: Sequence[str]) -> Mapping[str, str]:
    """The rows that a server shows, by one MGET."""
    values = _command(session, "MGET", *(PREFIX + name for name in ids))
    return {name: value.decode("latin-1") for name, value in zip(ids, values, strict=True) if value is not None}


def close(session: Session, branch: str, text: str, life: float) -> bool:
    """Writes a row where there is none; raises ReadOnlyError at a replica."""
    return _command(session, "SET", PREFIX + branch, text, "NX", "PX", max(int(life * 1000), 1)) is not None


def check(session: Session, server: Server, store: str) -> None:
    """Asks for the rights by using them, on a key that stands for nothing."""
    if session.hello.get("mode") == "cluster":
        raise UnfitStoreError(f"{server.address} {CLUSTER}", code="AP511")
    try:
        _command(session, "MGET", _CHECK)
        _command(session, "SET", _CHECK, "1", "NX", "PX", 1)
    except (ReadOnlyError, OSError):
        return
    except ServerError as error:
        cure = f". Grant it at every server: {GRANT}" if error.code == "NOPERM" else ""
        raise UnfitStoreError(f"{store} cannot hold branches: {error}{cure}", code="AP511") from error


def wanted(*, primary: bool) -> list[tuple[str | int, ...]]:
    """The commands that are sent for branches at such a server: to look them up, and to close them."""
    return [("MGET", _CHECK), *([("SET", _CHECK, "1", "NX", "PX", 1)] if primary else [])]


def _command(session: Session, *words: str | int) -> Any:
    try:
        return session.command(*words)
    except ServerError as error:
        if error.code == "READONLY":
            raise ReadOnlyError(str(error)) from error
        if error.code in _BUSY:
            raise OSError(str(error)) from error  # as if it were out of reach (BAR-26)
        raise
