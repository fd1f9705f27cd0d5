"""`antipode doctor`: what of a server matters to Antipode, what would be unproven there, and what cures it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from antipode.shim.administration import Finding, Level

from antipode_postgresql import branch_rows, ownership
from antipode_postgresql.looking import Look
from antipode_postgresql.ownership import ADMINISTRATOR
from antipode_postgresql.positions import lsn_of
from antipode_postgresql.probe import Facts, probe
from antipode_postgresql.session import RefusedError, Session
from antipode_postgresql.targets import Target, target_of

_TIMEOUT_S: Final = 2.0
_SILENT_S: Final = 60.0
"""A primary says something twice a minute, by default."""
_INIT: Final = f"antipode init STORE --at URL-OF-THE-PRIMARY --user {{user}} --run, {ADMINISTRATOR}"
_INIT_BRANCHES: Final = "antipode init STORE --at URL-OF-THE-PRIMARY --user {user} --set branches=yes --run"


def diagnose(target: Any) -> list[Finding]:
    """Role, log, rights, settings, the pooler before it, the table of epochs. Raises what psycopg raises."""
    place = target_of(target)
    facts = probe(place, _TIMEOUT_S)
    return [*_server(facts), *_settings(facts), *_history(place, facts)]


def _server(facts: Facts) -> Iterator[Finding]:
    version = f"PostgreSQL {facts.version // 10000}"
    if facts.recovering:
        yield Finding(Level.OK, f"role: hot standby, {version}")
        yield _link(facts)
        return
    yield Finding(Level.OK, f"role: primary, {version}")
    if facts.replicas:
        yield Finding(Level.OK, f"standbys that follow it: {facts.replicas}")
    else:
        yield Finding(
            Level.WARNING,
            "standbys that follow it: none",
            "Barriers elsewhere wait for servers that get nothing.",
            "Make a standby (pg_basebackup -R). A logical subscriber is none: its positions are its own.",
            code="AP516",
        )


def _link(facts: Facts) -> Finding:
    """Return what comes to a standby, and how far behind it is."""
    behind = "" if facts.lag is None else f", replays what is {facts.lag:.1f} s old" if facts.lag else ", all replayed"
    if not facts.receives:
        return Finding(
            Level.UNPROVEN,
            f"log: it is cut off from its primary, or replays from an archive{behind}",
            "Barriers wait here in vain for what does not come.",
            "Look at primary_conninfo, at the primary, and at the server's log.",
            code="AP705",
        )
    if facts.silent > _SILENT_S:
        what = f"log: nothing has come from its primary for {facts.silent:.0f} s{behind}"
        return Finding(
            Level.UNPROVEN,
            what,
            "It may be cut off.",
            "Look at the network between them, and at the primary.",
            code="AP705",
        )
    return Finding(Level.OK, f"log: comes from its primary{behind}")


def _settings(facts: Facts) -> Iterator[Finding]:
    if facts.pooler:
        bad = facts.pooler != "session"
        yield Finding(
            Level.UNPROVEN if bad else Level.OK,
            f"a pooler in {facts.pooler} mode is before it",
            "A statement and the question for its position may go to different servers." if bad else "",
            "pool_mode = session for this database, or connect to the server." if bad else "",
            code="AP208",
        )
    if facts.relaxed:
        yield Finding(
            Level.UNPROVEN,
            f"{facts.relaxed}: off",
            "After a crash it may say that it has what it lost: it is refused, but with relaxed_durability=True.",
            f"{facts.relaxed} = on.",
            code="AP208",
        )
    if facts.unsure:
        names = ", ".join(sorted({name for _, name in facts.unsure})[:5])
        yield Finding(
            Level.OK,
            f"texts that look like reads and may write: what names {names}{' …' if len(facts.unsure) > 5 else ''}",
            "Known when a client is wrapped: the server is asked at the commit whether they wrote.",
        )
    if facts.wal_level == "minimal":
        yield Finding(
            Level.UNPROVEN,
            "wal_level: minimal",
            "No standby can follow it.",
            "wal_level = replica, restart.",
            code="AP208",
        )
    else:
        yield Finding(Level.OK, f"wal_level: {facts.wal_level}")
    if facts.synchronous == "off":
        yield Finding(
            Level.WARNING,
            "synchronous_commit: off",
            "A crash may lose what was committed: each recorded write is flushed by a small commit behind it.",
            f"ALTER ROLE {facts.user} SET synchronous_commit = on, or wrap(async_commits='incomplete').",
            code="AP509",
        )
    else:
        yield Finding(Level.OK, f"synchronous_commit: {facts.synchronous}")


def _history(place: Target, facts: Facts) -> Iterator[Finding]:
    init = _INIT.format(user=facts.user)
    with closing(Look(place, "STORE", _TIMEOUT_S, unique_timelines=False)) as look:
        yield from _ownership(look.session, init)
        try:
            seen = look.look()
        except RefusedError as error:
            words = f"timeline: {error}"
            yield Finding(Level.UNPROVEN, words, "Nothing can be proved here.", f"Run: {init}", code="AP203")
            return
        if not seen.histories:
            yield Finding(
                Level.UNPROVEN,
                "timeline: hidden from this user",
                "Nothing can be proved here.",
                f"Run: {init}",
                code="AP203",
            )
        elif len(seen.histories) > 1:
            yield Finding(
                Level.WARNING,
                "timeline: not certain, its receiver is down",
                "Only what holds on every timeline that it may follow is proved.",
                "Look at primary_conninfo and at the primary.",
                code="AP705",
            )
        else:
            timelines = ", ".join(str(history.timeline) for history in seen.histories)
            yield Finding(Level.OK, f"timeline: {timelines}, at {lsn_of(seen.reached)}")
        if facts.marks:
            yield Finding(Level.OK, "epochs: the table is there, and its user may use it")
        else:
            yield Finding(
                Level.UNPROVEN,
                "epochs: no table, or no right to it",
                "After a failover positions of its user are unproven.",
                f"Run: {init}",
                code="AP508",
            )
        yield _branches(branch_rows.usable(look.session), facts)


def _ownership(session: Session, init: str) -> list[Finding]:
    """Return what an earlier release, or somebody else, left unsafe in the schema (SHIM-46)."""
    found = [
        Finding(
            Level.UNPROVEN,
            f"schema antipode: {line}",
            "An earlier release made it: whoever can run SQL here may take the rights of its owner, and forge epochs.",
            f"Run: {init}",
            code="AP703",
        )
        for [line] in session.run(ownership.EARLIER)[0]
    ]
    strange = session.run(ownership.strange(superusers=False))[0]
    if not found and strange:
        why = "It would meet the rights of the functions in the schema, or can forge epochs."
        cure = f"Look at it, drop it (DROP SCHEMA antipode CASCADE). Then run: {init}"
        found = [Finding(Level.UNPROVEN, f"schema antipode: {line}", why, cure, code="AP702") for [line] in strange]
    return found


def _branches(usable: bool | None, facts: Facts) -> Finding:
    """Whether branches can be kept here. Most stores keep none: that there is no table risks nothing else."""
    init = _INIT_BRANCHES.format(user=facts.user)
    if usable:
        return Finding(Level.OK, "branches: the table is there, and its user may use it")
    if usable is None:
        refused = "configure(branches=…) refuses this store, and branches are unproven."
        return Finding(Level.OK, f"branches: no table {branch_rows.TABLE}", refused, f"Run: {init}")
    return Finding(
        Level.WARNING,
        "branches: no right to the table",
        "This user can neither close nor look up branches.",
        f"Run: {init}",
        code="AP511",
    )
