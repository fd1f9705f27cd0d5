"""What an operator asks: the marks at a server, settling an epoch, and what would be unproven there and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from antipode.administration import SETTLED, EpochRecord, Finding, Level
from antipode.errors import ConfigurationError

from antipode_redis import marks
from antipode_redis.info import EPOCH_DIGITS, Replication
from antipode_redis.probe import CLUSTER, Facts, ask, grant
from antipode_redis.resp import ServerError, pack
from antipode_redis.session import Session
from antipode_redis.targets import target_of

_TIMEOUT_S: Final = 5.0
_HEX: Final = frozenset("0123456789abcdef")


@contextmanager
def _session(target: Any) -> Iterator[Session]:
    session = Session(target_of(target), _TIMEOUT_S)
    try:
        yield session
    finally:
        session.close()


def list_epochs(target: Any, key: str) -> list[EpochRecord]:
    """The epochs that a server knows, oldest first; raises ServerError where they cannot be read."""
    with _session(target) as session:
        now = session.replication()
        known = {mark.epoch: mark.position for mark in marks.read_marks(session.command("HGETALL", key))}
    details = dict.fromkeys(known, "marked")
    for epoch, counter, detail in (
        (now.before, now.before_end - 1, "the history before this one"),
        (now.epoch, now.offset, "primary" if now.primary else "replica"),
    ):
        if epoch and counter > known.get(epoch, -1):
            known[epoch] = counter
            details[epoch] = detail if epoch not in details else f"{detail}, marked"
    return [EpochRecord(epoch, known[epoch], epoch == now.epoch, details[epoch]) for epoch in known]


def settle(target: Any, epoch: str, key: str) -> None:
    """Writes a mark by hand, at the primary, for an epoch that has ended."""
    if len(epoch) not in {EPOCH_DIGITS, 40} or set(epoch) - _HEX:
        raise ConfigurationError(f"{epoch!r} is no Redis epoch: it is the first 16 hex digits of a replication id")
    own = epoch[:EPOCH_DIGITS]
    with _session(target) as session:
        told = session.command("EVAL", marks.SETTLE, 1, key, own, SETTLED, marks.MOST, EPOCH_DIGITS)
    address = target_of(target).address
    if told == b"replica":
        raise ConfigurationError(f"{address} is a replica: settle an epoch at the primary")
    if told == b"current":
        raise ConfigurationError(
            f"{own} is the epoch that {address} writes now: only one that has ended can be settled"
        )


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
        return [Finding(Level.UNKNOWN, f"reach: {address} does not answer: {error}", "Barriers leave it out.")]


def _of_facts(facts: Facts, key: str) -> Iterator[Finding]:
    yield Finding(Level.OK, f"server: Redis {facts.version or 'of unknown version'}")
    if facts.cluster:
        yield Finding(Level.UNPROVEN, "topology: Redis Cluster", f"It {CLUSTER}.", "Use a primary with replicas.")
    now = facts.replication
    if now is None:
        yield Finding(
            Level.UNPROVEN,
            f"rights: its user may not ask where it is ({facts.refusal})",
            "Writes are recorded as incomplete, and waits are unproven.",
            grant(key),
        )
    else:
        yield from _of_replication(now)
    if not facts.marks_readable:
        yield Finding(
            Level.UNPROVEN,
            f"marks: cannot be read ({facts.marks_refusal})",
            "Positions of epochs before the current one are unproven.",
            grant(key),
        )
    if facts.policy.startswith("allkeys"):
        yield Finding(
            Level.WARNING,
            f"maxmemory-policy: {facts.policy}",
            f"It may evict the marks in {key}: older epochs are then unproven.",
            "CONFIG SET maxmemory-policy volatile-lru (or noeviction)",
        )


def _of_replication(now: Replication) -> Iterator[Finding]:
    role = "primary" if now.primary else "replica"
    yield Finding(Level.OK, f"role: {role} in epoch {now.epoch} at {now.offset}")
    if now.primary and not now.backlog:
        yield Finding(
            Level.UNPROVEN,
            "backlog: none, because no replica was ever attached",
            "Its offset stands still, so writes get no position and are recorded as incomplete.",
            "Attach a replica; to keep the backlog without one: CONFIG SET repl-backlog-ttl 0",
        )
    if not now.primary and not now.link:
        yield Finding(Level.WARNING, "link: down", "Waits for newer writes time out here.", "Heal the replication.")
    if not now.primary and not now.read_only:
        yield Finding(
            Level.WARNING,
            "replica-read-only: no",
            "It takes writes of its own, which no replication carries: they are recorded as incomplete.",
            "CONFIG SET replica-read-only yes",
        )


def _of_marks(session: Session, now: Replication, key: str) -> Iterator[Finding]:
    reply = session.ask(pack("HGETALL", key))[0]
    if isinstance(reply, ServerError):
        yield Finding(Level.UNKNOWN, f"marks: cannot be listed ({reply})", "", grant(key))
        return
    known = marks.read_marks(reply)
    own = [mark for mark in known if mark.epoch == now.epoch]
    listed = f"marks: {len(known)} of at most {marks.MOST} epochs in {key}"
    if own:
        yield Finding(Level.OK, f"{listed}, the current one up to {own[0].position}")
    else:
        yield Finding(
            Level.WARNING,
            f"{listed}, the current one not",
            "After a failover or restart its positions may be unproven, and older epochs do not end here until it is.",
            "A process with a wrapped client of the primary marks it within two seconds, if it has the right.",
        )


def _of_tracking(session: Session) -> Finding:
    try:
        session.track()
    except ServerError as error:
        return Finding(
            Level.WARNING, f"push: no client-side tracking ({error})", "Waits poll.", "Redis 6, +client|tracking"
        )
    return Finding(Level.OK, "push: client-side tracking, waits wake up at once")
