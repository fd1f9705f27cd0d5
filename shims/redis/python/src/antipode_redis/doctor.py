"""What an operator asks: the marks at a server, settling an epoch, and what would be unproven there and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from antipode import ConfigurationError
from antipode.shim.administration import EpochRecord, Finding, Level, no_answer, not_at_primary, not_ended

from antipode_redis import branch_rows, marks
from antipode_redis.info import EPOCH_DIGITS, Replication
from antipode_redis.probe import CLUSTER, Facts, ask, grant
from antipode_redis.resp import ServerError, pack
from antipode_redis.session import Session
from antipode_redis.targets import target_of

_TIMEOUT_S: Final = 5.0
_REFUSED: Final = {"replica": not_at_primary, "current": not_ended}


def _session(target: Any) -> closing[Session]:
    return closing(Session(target_of(target), _TIMEOUT_S))


def list_epochs(target: Any, key: str = marks.DEFAULT_KEY) -> list[EpochRecord]:
    """The marks at a server, oldest epoch first; raises ServerError where they cannot be read."""
    with _session(target) as session:
        known = marks.read_marks(session.command("HGETALL", key))
        current = session.replication().epoch
    return [EpochRecord(mark.epoch, mark.position, mark.epoch == current) for mark in known]


def settle(target: Any, epoch: str, position: int | None = None, key: str = marks.DEFAULT_KEY) -> None:
    """Write a mark by hand, at the primary: an operator says that an ended epoch is there, whole or up to a position.

    One atomic step asks and writes: settled, the epoch that is written now would let later writes pass unseen.
    Raises ConfigurationError for what is no epoch or has not ended, or at a server that is not the primary.
    """
    if not epoch or len(epoch) > 32 or set(epoch) - set("0123456789abcdef"):
        raise ConfigurationError(
            f"{epoch!r} is no Redis epoch: it is the first 16 hex digits of a replication id", code="AP513"
        )
    with _session(target) as session:
        words = (epoch[:EPOCH_DIGITS], marks.ALL if position is None else position, marks.MOST, EPOCH_DIGITS)
        answer = session.command("EVAL", marks.SETTLE, 1, key, *words)
        word = answer.decode() if isinstance(answer, bytes) else str(answer)
        if word in _REFUSED:
            raise _REFUSED[word](target_of(target))
        if word != "OK":
            raise ConfigurationError(f"{target_of(target)} {word}", code="AP513")


def diagnose(target: Any, key: str = marks.DEFAULT_KEY) -> list[Finding]:
    """Asks a server; never raises for what is wrong with it."""
    try:
        with _session(target) as session:
            facts = ask(session, key)
            found = list(_of_facts(facts, key))
            if facts.replication is not None and facts.marks_readable:
                found += _of_marks(session, facts.replication, key)
            if facts.replication is not None and facts.replication.primary:
                found += _of_marking(target, key)
            if facts.replication is not None and not facts.cluster:
                found.append(_of_branches(target, facts.replication))
            found.append(_of_tracking(session))
            return found
    except Exception as error:
        return [no_answer(f"does not answer: {error}")]


def _of_facts(facts: Facts, key: str) -> Iterator[Finding]:
    yield Finding(Level.OK, f"Redis {facts.version or 'of unknown version'}")
    if facts.cluster:
        yield Finding(Level.UNPROVEN, "cluster mode", f"it {CLUSTER}", "use a primary with replicas", code="AP208")
    now = facts.replication
    if now is None:
        yield Finding(
            Level.UNPROVEN,
            f"rights: its user may not ask where it is ({facts.refusal})",
            "writes are recorded as incomplete, waits are unproven",
            grant(key),
            code="AP203",
        )
    else:
        yield from _of_replication(now)
    if not facts.marks_readable:
        yield Finding(
            Level.UNPROVEN,
            f"rights: its user may not read the marks ({facts.marks_refusal})",
            "positions of older epochs are unproven",
            grant(key),
            code="AP203",
        )
    if facts.policy.startswith("allkeys"):
        yield Finding(
            Level.WARNING,
            f"maxmemory-policy {facts.policy}",
            f"it may evict the marks in {key}, and older epochs are then unproven",
            "CONFIG SET maxmemory-policy volatile-lru (or noeviction)",
            code="AP508",
        )


def _of_replication(now: Replication) -> Iterator[Finding]:
    role = "primary" if now.primary else "replica"
    yield Finding(Level.OK, f"role: {role}, in epoch {now.epoch} at {now.offset}")
    if now.primary and not now.backlog:
        yield Finding(
            Level.UNPROVEN,
            "no replica and no backlog",
            "its offset stands still, so writes get no position and are recorded as incomplete",
            "attach a replica; to keep the backlog without one: CONFIG SET repl-backlog-ttl 0",
            code="AP516",
        )
    if not now.primary and not now.link:
        yield Finding(
            Level.WARNING,
            "its link to the primary is down",
            "waits for newer writes time out",
            "see INFO replication there, and the network between them",
            code="AP705",
        )
    if not now.primary and not now.read_only:
        yield Finding(
            Level.WARNING,
            "it is a replica that takes writes of its own",
            "no replication carries them: they get no position",
            "CONFIG SET replica-read-only yes",
            code="AP709",
        )


def _of_marks(session: Session, now: Replication, key: str) -> Iterator[Finding]:
    reply = session.ask(pack("HGETALL", key))[0]
    if isinstance(reply, ServerError):
        what = f"rights: its user may not list the marks ({reply})"
        yield Finding(Level.WARNING, what, "what they say is not shown here", grant(key), code="AP203")
        return
    known = marks.read_marks(reply)
    own = [mark for mark in known if mark.epoch == now.epoch]
    listed = f"marks: {len(known)} of at most {marks.MOST} epochs in {key}"
    if own:
        yield Finding(Level.OK, f"{listed}, the current one up to {own[0].position}")
    else:
        yield Finding(
            Level.WARNING,
            f"{listed}, and the current one is not among them",
            "after a failover or restart its positions may be unproven, and older epochs do not end here until it is",
            "any process with a wrapped client of the primary marks it within two seconds",
            code="AP508",
        )


def _refused(target: Any, wanted: Sequence[Sequence[str | int]]) -> tuple[bool, str]:
    """Whether a server can be asked what its user may do, and the first of these commands that they may not.

    Rights are looked at when a command is queued in a transaction, and nothing of it is run: the connection ends, for a
    user may have the right to MULTI and none to DISCARD.
    """
    with _session(target) as session:
        [opened] = session.ask(pack("MULTI"))
        if isinstance(opened, ServerError):  # what came behind it would be run
            return False, str(opened)
        queued = session.ask(*(pack(*words) for words in wanted))
    return True, next((str(reply) for reply in queued if isinstance(reply, ServerError)), "")


def _of_marking(target: Any, key: str) -> Iterator[Finding]:
    """Whether its user may write marks."""
    wanted: list[tuple[str | int, ...]] = [
        ("EVAL", "return 1", 1, key),
        ("HGET", key, "-"),
        ("HSET", key, "-", "-"),
        ("HLEN", key),
        ("HGETALL", key),
        ("HDEL", key, "-"),
        ("TIME",),
    ]
    _, refused = _refused(target, wanted)
    if refused:
        yield Finding(
            Level.UNPROVEN,
            f"rights: its user may not write marks ({refused})",
            "unless another process marks this store, positions of an epoch that ends are unproven",
            grant(key),
            code="AP203",
        )


def _of_branches(target: Any, now: Replication) -> Finding:
    """Whether branches can be kept here. Most stores keep none: that its user may not risks nothing else."""
    told, refused = _refused(target, branch_rows.wanted(primary=now.primary))
    if not refused:
        return Finding(Level.OK, "branches: its user may keep them here")
    if not told:
        return Finding(Level.OK, f"branches: nobody knows whether its user may keep them ({refused})")
    why = "configure(branches=…) refuses this store with this user, and branches are unproven"
    return Finding(Level.OK, f"branches: its user may not keep them ({refused})", why, branch_rows.GRANT)


def _of_tracking(session: Session) -> Finding:
    try:
        session.track()
    except ServerError as error:
        what, why = f"no client-side tracking ({error})", "barriers poll instead, and wake up later"
        return Finding(Level.WARNING, what, why, "Redis 6 or later, and the right +client|tracking", code="AP515")
    return Finding(Level.OK, "client-side tracking: waits wake up at once")
