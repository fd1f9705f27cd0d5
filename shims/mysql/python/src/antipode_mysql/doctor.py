"""What an operator asks: the epochs at a server, settling one, and what would be unproven there and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, Final

import pymysql
from antipode import ConfigurationError
from antipode.shim.administration import SETTLED, EpochRecord, Finding, Level, no_answer, not_at_primary, not_ended

from antipode_mysql import branch_rows, probe
from antipode_mysql.gtid_sets import GREATEST, server_of
from antipode_mysql.gtids import State, parse_epoch
from antipode_mysql.membership import Members
from antipode_mysql.mysql import MYSQL, sees_filters
from antipode_mysql.probe import Facts
from antipode_mysql.session import MARKS, LoginRefusedError, Session, connect, marks
from antipode_mysql.targets import Target, target_of

_TIMEOUT_S: Final = 5.0
_ENDLESS: Final = "settled without an end, which counts for nothing: settle it anew with --position N"


def _session(target: Target) -> closing[Session]:
    return closing(Session(target, _TIMEOUT_S))


def _state(session: Session) -> State:
    [(state,)] = session.rows("SELECT @@GLOBAL.gtid_binlog_state")
    return State(state or "")


def list_epochs(what: Any) -> list[EpochRecord]:
    """The epochs that a server has, and those that were settled by hand."""
    with _session(target_of(what)) as session:
        if session.flavour is MYSQL:
            return _of_sets(session)
        state, settled = _state(session), marks(session)
        found = []
        for (domain, server), sequence in sorted(state.items(), key=lambda item: item[1]):
            last = state.last(domain)
            epoch = f"{domain}-{server}"
            counter = max(sequence, settled.pop(epoch, -1))
            detail = "settled by hand" if counter > sequence else "in its binary log"
            found.append(EpochRecord(epoch, counter, last is not None and last.server == server, detail))
        return [EpochRecord(epoch, counter, detail="settled by hand") for epoch, counter in settled.items()] + found


def _of_sets(session: Session) -> list[EpochRecord]:
    seen, settled = _members(session), marks(session)
    found = []
    for epoch in seen.executed:
        mark = settled.pop(epoch, -1)
        counter = seen.executed.whole(epoch, max(mark, 0) if mark <= GREATEST else 0)
        by_hand = counter > seen.executed.whole(epoch)
        detail = "settled by hand" if by_hand else "in its set of executed transactions"
        if seen.executed.greatest(epoch) > counter:
            detail += f", with a hole before {seen.executed.greatest(epoch)}"
        if mark > GREATEST:
            detail += f", {_ENDLESS}"
        found.append(EpochRecord(epoch, counter, server_of(epoch) == seen.writer, detail))
    for epoch, mark in settled.items():
        counts = mark <= GREATEST
        found.insert(0, EpochRecord(epoch, mark * counts, detail="settled by hand" if counts else _ENDLESS))
    return found


def _members(session: Session) -> Members:
    seen = session.look(fresh_ids=True, relaxed_durability=True)
    assert isinstance(seen, Members)
    return seen


def settle(what: Any, epoch: str, position: int | None = None) -> None:
    """Write down, at the primary, that an ended epoch is there, whole or up to a position: an operator says so.

    Raises ConfigurationError for what is no epoch or has not ended, or at a server that is not the primary.
    """
    target = target_of(what)
    with _session(target) as session:
        if not session.flavour.is_epoch(epoch):
            words = session.flavour.epoch_words
            raise ConfigurationError(f"{epoch!r} is no {session.flavour.name} epoch: it is {words}", code="AP513")
        if session.flavour is MYSQL and (position is None or not 0 < position <= GREATEST):
            raise ConfigurationError(
                f"an epoch of MySQL may be written again, when its server comes back, so say up to where {epoch} is "
                "settled: --position N, the greatest number that barriers call lost",
                code="AP513",
            )
        wanted = SETTLED if position is None else position
        condition, word = (_settled_set if session.flavour is MYSQL else _settled_log)(session, target, epoch)
        counts = f"counter <= {GREATEST if session.flavour is MYSQL else SETTLED}"
        try:
            # One statement asks and writes: settled, the epoch that is written now would let later writes pass unseen.
            session.rows(
                f"INSERT INTO {MARKS} (epoch, counter) SELECT %s, %s FROM DUAL WHERE {condition} "
                f"ON DUPLICATE KEY UPDATE counter = IF({counts}, GREATEST(counter, VALUES(counter)), VALUES(counter))",
                epoch,
                wanted,
                word,
            )
        except pymysql.err.ProgrammingError as error:
            raise ConfigurationError(
                f"there is no table {MARKS} at {target}; run: antipode init STORE --at URL --run ({error.args[-1]})",
                code="AP508",
            ) from error


def _settled_set(session: Session, target: Target, epoch: str) -> tuple[str, str]:
    """Refuses what must not be settled at a MySQL server; a condition to write under, and its word."""
    [(read_only,)] = session.rows("SELECT @@GLOBAL.read_only")
    if int(read_only) or _follows(session, target):
        raise not_at_primary(target)
    if server_of(epoch) in (_members(session).server, _members(session).writer):
        raise not_ended(target)
    return "LEFT(REPLACE(@@GLOBAL.server_uuid, '-', ''), 16) <> %s", server_of(epoch)


def _follows(session: Session, target: Target) -> bool:
    """Whether it receives or applies what another server wrote: it may do so and be writable."""
    try:
        channels = session.mappings("SHOW REPLICA STATUS")
    except pymysql.err.OperationalError as error:
        raise ConfigurationError(
            f"this login may not see whether {target} is a replica. Settle as an operator, or GRANT REPLICATION CLIENT "
            f"ON *.* TO it ({error.args[-1]})",
            code="AP203",
        ) from error
    words = ("Replica_IO_Running", "Replica_SQL_Running")
    return any(channel[word] != "No" for channel in channels for word in words)


def _settled_log(session: Session, target: Target, epoch: str) -> tuple[str, int]:
    """The same at a MariaDB server."""
    named = parse_epoch(epoch)
    assert named is not None
    [(server_id, read_only, running)] = session.rows(
        "SELECT @@GLOBAL.server_id, @@GLOBAL.read_only, (SELECT VARIABLE_VALUE FROM "
        "information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'SLAVES_RUNNING')"
    )
    if int(read_only) or str(running) != "0":
        raise not_at_primary(target)
    last = _state(session).last(named[0])
    if named[1] == int(server_id) or (last is not None and last.server == named[1]):
        raise not_ended(target)
    return "@@GLOBAL.server_id <> %s", named[1]


def diagnose(what: Any) -> list[Finding]:
    """Asks a server; never raises for what is wrong with it."""
    target = target_of(what)
    try:
        with closing(connect(target, _TIMEOUT_S)) as connection:
            facts = probe.ask(connection)
            found = list(_of_facts(facts))
            if facts.is_on("log_bin"):
                with _session(target) as session:
                    found += (_of_mysql if facts.flavour is MYSQL else _of_replication)(session, facts)
                    found += [*_of_channels(session), *_of_views(session)]
                    found.append(_of_branches(session))
            return found
    except Exception as error:
        return [no_answer(error if isinstance(error, LoginRefusedError) else f"does not answer: {error}")]


def _of_facts(facts: Facts) -> Iterator[Finding]:
    version = facts.settings["version"]
    yield Finding(Level.OK, f"version {version}")
    for unfit in (facts.unfit(relaxed_durability=True), facts.flavour.relaxed(facts.settings)):
        what, _, cure = unfit.partition(". ")
        if what:
            yield Finding(
                Level.UNPROVEN,
                what,
                "writes are recorded as incomplete there, and waits are unproven",
                cure,
                code="AP208",
            )
    if facts.flavour is MYSQL:
        yield from _of_settings(facts)
    elif not facts.is_on("gtid_strict_mode"):
        yield Finding(
            Level.WARNING,
            "gtid_strict_mode=OFF",
            "a server with transactions of its own rejoins silently, and its numbers no longer only grow",
            "SET GLOBAL gtid_strict_mode=ON, and in its configuration, too",
            code="AP709",
        )


def _of_settings(facts: Facts) -> Iterator[Finding]:
    if not sees_filters(facts.settings):
        yield Finding(
            Level.WARNING,
            "this login may not see whether replication is filtered",
            "what a filter left out would pass without being there",
            "ask again as an operator, or GRANT REPLICATION CLIENT ON *.* TO it",
            code="AP203",
        )


def _of_mysql(session: Session, facts: Facts) -> Iterator[Finding]:
    seen = _members(session)
    role = "primary, or a replica whose applier has stopped"
    with suppress(pymysql.err.OperationalError):  # without the right to it
        for channel in session.mappings("SHOW REPLICA STATUS"):
            if channel["Replica_SQL_Running"] == "Yes":
                role = f"replica of {channel['Source_UUID']}"
    yield Finding(
        Level.OK, f"role: {role}, server uuid {facts.settings['server_uuid']}, at {seen.executed.text or 'nothing'}"
    )
    holes = [epoch for epoch in seen.executed if seen.executed.greatest(epoch) > seen.executed.whole(epoch)]
    if holes:
        yield Finding(
            Level.WARNING,
            f"it has numbers of {', '.join(sorted(holes))} behind holes",
            "positions behind a hole that stays are unproven there",
            "build it anew from a whole copy, or settle the epoch: antipode epoch settle … --position N",
            code="AP709",
        )
    if seen.executed.ambiguous:
        yield Finding(
            Level.UNPROVEN,
            f"uuids of two servers begin with {', '.join(sorted(seen.executed.ambiguous))}",
            "positions of both are unproven",
            "give the newer one another server_uuid (remove its auto.cnf while it is stopped)",
            code="AP208",
        )
    yield Finding(Level.OK, f"settled by hand: {len(marks(session))} epochs in {MARKS}")


def _of_replication(session: Session, facts: Facts) -> Iterator[Finding]:
    running = dict(
        session.rows(
            "SELECT UPPER(VARIABLE_NAME), VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
            "WHERE VARIABLE_NAME IN ('SLAVES_RUNNING', 'SLAVES_CONNECTED')"
        )
    )
    [(state, place)] = session.rows("SELECT @@GLOBAL.gtid_binlog_pos, @@GLOBAL.gtid_slave_pos")
    role = "replica" if str(running.get("SLAVES_RUNNING")) != "0" else "primary, or a replica whose applier has stopped"
    yield Finding(Level.OK, f"role: {role}, server id {facts.settings['server_id']}, at {state or place or 'nothing'}")
    if str(running.get("SLAVES_RUNNING")) == "0" and str(running.get("SLAVES_CONNECTED")) == "0":
        yield Finding(
            Level.WARNING,
            "no replica is connected to it",
            "there is nothing to wait for but the server itself, and a failover would lose what it has",
            "attach a replica with CHANGE MASTER TO … MASTER_USE_GTID=slave_pos",
            code="AP516",
        )
    writers = sorted({server for _, server in _state(session)})
    if len(writers) > 1:
        yield Finding(
            Level.WARNING,
            f"servers {', '.join(map(str, writers))} have written in its history",
            "what is proved holds only if no server id was used for two terms",
            "give every server that is rebuilt or rejoins a server_id that no server had, and say "
            "wrap(…, fresh_server_ids=True)",
            code="AP709",
        )
    yield Finding(Level.OK, f"settled by hand: {len(marks(session))} epochs in {MARKS}")


def _of_channels(session: Session) -> Iterator[Finding]:
    """Yield what a replica receives and applies, and its lag; nothing for a server that is none."""
    ours, theirs = ("Replica", "Source") if session.flavour is MYSQL else ("Slave", "Master")
    try:
        channels = session.mappings("SHOW REPLICA STATUS" if session.flavour is MYSQL else "SHOW ALL SLAVES STATUS")
    except pymysql.err.OperationalError:
        right = "REPLICATION CLIENT" if session.flavour is MYSQL else "SLAVE MONITOR"
        why = "one that is cut off from its primary gets older and older, and barriers time out there"
        cure = f"ask again as an operator, or GRANT {right} ON *.* TO it"
        yield Finding(
            Level.WARNING,
            "this login may not see whether the server is a replica, and its lag",
            why,
            cure,
            code="AP203",
        )
        return
    for channel in channels:
        receives, applies = channel[f"{ours}_IO_Running"], channel[f"{ours}_SQL_Running"]
        source = f"{channel[f'{theirs}_Host']}:{channel[f'{theirs}_Port']}"
        lag = channel[f"Seconds_Behind_{theirs}"]
        if receives == applies == "Yes":
            yield Finding(Level.OK, f"lag: {'not known' if lag is None else f'{lag} s'} behind its primary {source}")
            continue
        what = "is cut off from" if receives != "Yes" else "does not apply what it receives from"
        said = channel["Last_IO_Error"] or channel["Last_SQL_Error"]
        yield Finding(
            Level.WARNING,
            f"it {what} its primary {source} (receiver {receives}, applier {applies}{f': {said}' if said else ''})",
            "it gets older and older, and barriers time out there",
            f"see that it reaches its primary, and START {ours.upper()}; or take it away from the readers",
            code="AP705",
        )


def _of_views(session: Session) -> Iterator[Finding]:
    """Views that call functions which may write: a SELECT from one is no write to us (SHIM-43)."""
    rows = session.rows(
        "SELECT DISTINCT v.TABLE_SCHEMA, v.TABLE_NAME FROM information_schema.VIEWS v "
        "JOIN information_schema.ROUTINES r ON v.VIEW_DEFINITION LIKE CONCAT('%`', r.ROUTINE_NAME, '`(%') "
        "WHERE r.ROUTINE_TYPE = 'FUNCTION' "
        "AND r.SQL_DATA_ACCESS NOT IN ('NO SQL', 'READS SQL DATA') AND v.TABLE_SCHEMA <> 'sys'"
    )
    if rows:
        yield Finding(
            Level.WARNING,
            f"views call functions that may write: {', '.join(f'{schema}.{name}' for schema, name in rows[:5])}",
            "a SELECT from them counts as a read, and what it writes may go unrecorded",
            "declare the functions READS SQL DATA where they only read; else call them by name, not by a view",
            code="AP709",
        )


def _of_branches(session: Session) -> Finding:
    """Whether branches can be kept here. Most stores keep none: that there is no table risks nothing else."""
    there, refused = branch_rows.refusal(session.rows)
    cure = "antipode init STORE --at URL-OF-THE-PRIMARY --user USER --set branches=yes --run"
    if refused:
        why = "this login cannot close branches"
        return Finding(
            Level.WARNING, f"branches: {branch_rows.TABLE} may not be used ({refused})", why, cure, code="AP511"
        )
    if there:
        return Finding(Level.OK, f"branches: {branch_rows.TABLE} is there, and may be used")
    why = "configure(branches=…) refuses this store, and branches are unproven"
    return Finding(Level.OK, f"branches: no table {branch_rows.TABLE} that this login may read", why, cure)
