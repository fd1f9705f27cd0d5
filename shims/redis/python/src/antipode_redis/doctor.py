"""What an operator asks: the marks at a server, settling an epoch, and what would be unproven there and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple

from antipode.errors import ConfigurationError

from antipode_redis import marks
from antipode_redis.info import EPOCH_DIGITS, Replication
from antipode_redis.probe import CLUSTER, Facts, ask, grant
from antipode_redis.resp import ServerError, pack
from antipode_redis.session import Session
from antipode_redis.targets import target_of

_TIMEOUT_S: Final = 5.0


class Finding(NamedTuple):
    """One thing about a server: how bad, what, and what cures it."""

    level: Literal["ok", "note", "warning", "error"]
    subject: str
    message: str
    cure: str = ""

    def __str__(self) -> str:
        return f"{self.level}: {self.subject}: {self.message}" + (f"\n  {self.cure}" if self.cure else "")


@contextmanager
def _session(target: Any) -> Iterator[Session]:
    session = Session(target_of(target), _TIMEOUT_S)
    try:
        yield session
    finally:
        session.close()


def list_epochs(target: Any, key: str) -> list[marks.Mark]:
    """The marks at a server, oldest epoch first; raises ServerError where they cannot be read."""
    with _session(target) as session:
        return marks.read_marks(session.command("HGETALL", key))


def settle(target: Any, epoch: str, position: int, key: str) -> None:
    """Writes a mark by hand, at the primary."""
    with _session(target) as session:
        if not session.replication().primary:
            raise ConfigurationError(f"{target_of(target).address} is a replica: settle an epoch at the primary")
        session.command("EVAL", marks.SETTLE, 1, key, epoch[:EPOCH_DIGITS], position, marks.MOST)


def diagnose(target: Any, key: str) -> list[Finding]:
    """Asks a server; never raises for what is wrong with it."""
    address = target_of(target).address
    try:
        with _session(target) as session:
            facts = ask(session, key)
            found = list(_of_facts(facts, key))
            if facts.replication is not None and facts.marks_readable:
                found += _of_marks(session, facts.replication, key)
            found.append(_of_tracking(session))
            return found
    except Exception as error:
        return [Finding("error", "reach", f"{address} does not answer: {error}", "Barriers leave it out.")]


def _of_facts(facts: Facts, key: str) -> Iterator[Finding]:
    yield Finding("ok", "server", f"Redis {facts.version or 'of unknown version'}")
    if facts.cluster:
        yield Finding("error", "cluster", f"it {CLUSTER}.", "Use a primary with replicas.")
    now = facts.replication
    if now is None:
        yield Finding(
            "error",
            "rights",
            f"its user may not ask where it is ({facts.refusal}): writes are incomplete, waits unproven",
            grant(key),
        )
    else:
        yield from _of_replication(now)
    if not facts.marks_readable:
        yield Finding(
            "error",
            "marks",
            f"they cannot be read ({facts.marks_refusal}): positions of older epochs are unproven",
            grant(key),
        )
    if facts.policy.startswith("allkeys"):
        yield Finding(
            "warning",
            "eviction",
            f"maxmemory-policy {facts.policy} may evict the marks in {key}",
            "CONFIG SET maxmemory-policy volatile-lru (or noeviction)",
        )


def _of_replication(now: Replication) -> Iterator[Finding]:
    role = "primary" if now.primary else "replica"
    yield Finding("ok", "role", f"{role} in epoch {now.epoch} at {now.offset}")
    if now.primary and not now.backlog:
        yield Finding(
            "warning",
            "backlog",
            "it has no replica and no backlog, so its offset stands still: writes get no position",
            "Attach a replica; to keep the backlog without one: CONFIG SET repl-backlog-ttl 0",
        )
    if not now.primary and not now.link:
        yield Finding("warning", "link", "its link to the primary is down: waits for newer writes time out")
    if not now.primary and not now.read_only:
        yield Finding(
            "warning",
            "writable",
            "it takes writes of its own, which no replication carries: they get no position",
            "CONFIG SET replica-read-only yes",
        )


def _of_marks(session: Session, now: Replication, key: str) -> Iterator[Finding]:
    reply = session.ask(pack("HGETALL", key))[0]
    if isinstance(reply, ServerError):
        yield Finding("error", "marks", f"they cannot be listed ({reply})", grant(key))
        return
    known = marks.read_marks(reply)
    own = [mark for mark in known if mark.epoch == now.epoch]
    listed = f"{len(known)} of at most {marks.MOST} epochs are marked in {key}"
    if own:
        yield Finding("ok", "marks", f"{listed}; the current one up to {own[0].position}")
    else:
        yield Finding(
            "warning",
            "marks",
            f"{listed}, and the current one is not: after a failover or restart its positions may be unproven, and "
            "older epochs do not end here until it is",
            "Any process with a wrapped client of the primary marks it within two seconds.",
        )


def _of_tracking(session: Session) -> Finding:
    try:
        session.track()
    except ServerError as error:
        return Finding("note", "push", f"no client-side tracking ({error}): waits poll", "Redis 6+, +client|tracking")
    return Finding("ok", "push", "client-side tracking is to be had: waits wake up at once")
