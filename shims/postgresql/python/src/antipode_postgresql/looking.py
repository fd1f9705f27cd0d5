"""Looking at one server: how far it is, which timelines it came from, which rows of epochs it shows.

The position is asked for often and cheaply; the histories and the rows only where they may have changed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from psycopg import OperationalError

from antipode_postgresql.judging import FOR_EVER, History, ServerState, parse_history
from antipode_postgresql.positions import Epoch, number_of
from antipode_postgresql.probe import relaxed_setting
from antipode_postgresql.schema import MAY_READ_EPOCHS, may_call
from antipode_postgresql.session import RefusedError, Session
from antipode_postgresql.targets import Target

STARTED: Final = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text"
"""When the server was started: a number, for the text of a time depends on the session's zone."""
_PLACE: Final = f"SELECT recovering, reached, timeline, system, {STARTED} FROM antipode.place()"
# The same without the function: for roles that may see the receiver. Columns are computed from left to right. The name
# of a constant position would be computed beforehand, which a standby refuses.
_PLACE_BY_RIGHT: Final = f"""SELECT pg_is_in_recovery(),
 CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text,
 CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_get_wal_receiver())
      ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer END,
 (SELECT system_identifier::text FROM pg_control_system()), {STARTED}"""
_GLANCE: Final = "SELECT pg_last_wal_replay_lsn()"
_HISTORIES: Final = "SELECT timeline, history FROM antipode.histories()"
_HISTORIES_BY_RIGHT: Final = """SELECT ('x' || left(name, 8))::bit(32)::integer, pg_read_file('pg_wal/' || name)
 FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}\\.history$'
 UNION ALL SELECT (SELECT timeline_id FROM pg_control_checkpoint()), NULL"""
_ROWS: Final = "SELECT system, timeline, word, counter FROM antipode.epochs"
_RIGHTS: Final = f"""SELECT {may_call("place")} AND {may_call("histories")}, {MAY_READ_EPOCHS},
 pg_has_role('pg_read_all_stats', 'USAGE') AND has_function_privilege('pg_read_file(text)', 'EXECUTE')
   AND has_function_privilege('pg_ls_waldir()', 'EXECUTE'),
 (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
 current_user::text, current_setting('fsync'), current_setting('full_page_writes')"""
_ROWS_S: Final = 0.1
_NO_RIGHT: Final = "42501"
NO_RIGHT: Final = (
    "{user} may not see which timeline the server follows. Run as an administrator: antipode init {store} --at "
    "URL-OF-THE-PRIMARY --user {user} --run (or give it the attribute REPLICATION, and a line `host replication` in "
    "pg_hba.conf)"
)


class Look:
    """What is known of one server, over one connection of ours."""

    def __init__(self, target: Target, store: str, timeout: float, *, unique_timelines: bool) -> None:
        """Connects and asks for its rights. Raises OperationalError, or Refused."""
        self._target = target
        self._store = store
        self._timeout = timeout
        self._unique = unique_timelines
        self._replication: Session | None = None
        self.session = Session(target, timeout)
        functions, table, by_right, replicates, user, *durable = self.session.row(_RIGHTS)
        self.relaxed = relaxed_setting(*durable)
        """The setting by which the server may lose what it has replayed (SHIM-45); empty where there is none."""
        self._by_function = functions == "t"
        self._by_right = by_right == "t"
        self._table = table == "t"
        self._by_replication = not self._by_function and not self._by_right and replicates == "t"
        self._user = user or ""
        self.hidden = ""
        """Why the server's timeline cannot be known here; empty where it can."""
        if not (self._by_function or self._by_right or self._by_replication):
            self.hidden = NO_RIGHT.format(user=self._user, store=store)
        self.session.prepare("place", _PLACE if self._by_function else _PLACE_BY_RIGHT)
        self._known: dict[int, History] = {1: History(1)}
        self._words: dict[tuple[int, int], str] = {}
        self._settled: dict[str, int] = {}
        self._rows_read_at = -1e9
        self.session.prepare("glance", _GLANCE)
        self.instance = ""
        """The server's life, as far as this connection sees it."""
        self.recovering = False
        """Whether it was a standby at the last look."""
        self.reached = 0
        """How far it was then."""

    def set_timeout(self, timeout: float) -> None:
        """How long one question may take."""
        self.session.timeout = timeout
        if self._replication is not None:
            self._replication.timeout = timeout

    def look(self, wanted: Sequence[tuple[int, int, str]] = ()) -> ServerState:
        """Where the server is. `wanted`: timelines, positions and words of its own system that will be judged."""
        try:
            return self._look(wanted)
        except RefusedError as error:
            if error.code != _NO_RIGHT:
                raise
            cure = NO_RIGHT.format(user=self._user, store=self._store)
            raise RefusedError(
                f"{error}: the functions of its schema antipode lack a right. {cure}", error.code
            ) from error

    def _look(self, wanted: Sequence[tuple[int, int, str]]) -> ServerState:
        recovering, reached, timeline, system, started = self.session.prepared("place")
        own = int(system or 0)
        at = number_of(reached) if reached else 0
        self.recovering, self.reached = recovering == "t", at
        self.instance = f"{started}/{self.session.backend}"
        fresh = False
        unknown = [position for tli, position, word in wanted if word and (own, tli) not in self._words]
        if unknown and (at >= min(unknown) or self._rows_read_at < 0):  # the first ones name its epoch early (BAR-66)
            self._read_rows()
            fresh = True
        return ServerState(
            own,
            recovering == "t",
            at,
            self._histories(own, None if timeline is None else int(timeline), recovering == "t"),
            self._words,
            self._settled,
            fresh,
            self.hidden,
            self._unique,
        )

    def glance(self) -> int:
        """How far a standby has replayed, on whichever timeline: when to look, not what to say."""
        [reached] = self.session.prepared("glance")
        return number_of(reached) if reached else FOR_EVER

    def read_marks(self) -> bool:
        """Reads the rows of epochs anew, at most so often; whether it did."""
        if time.monotonic() - self._rows_read_at < _ROWS_S:
            return False
        self._read_rows()
        return True

    def _read_rows(self) -> None:
        self._rows_read_at = time.monotonic()
        if not self._table:
            self._table = self.session.row(_RIGHTS)[1] == "t"
        if not self._table:
            return
        words: dict[tuple[int, int], str] = {}
        settled: dict[str, int] = {}
        for system, timeline, word, counter in self.session.run(_ROWS)[0]:
            epoch = Epoch(int(system or 0), int(timeline or 0), word or "")
            if int(counter or 0):
                settled[str(epoch)] = int(counter or 0)
            else:
                words[epoch.system, epoch.timeline] = epoch.word
        self._words, self._settled = words, settled

    # Which timelines

    def _histories(self, system: int, timeline: int | None, recovering: bool) -> Sequence[History]:
        if not recovering:
            assert timeline is not None
            return self._one(timeline)
        if self.hidden:
            return ()
        if self._by_replication:
            return self._one(self._replaying())
        if timeline is not None:
            # The receiver streams this timeline, so what is replayed lies on it, or on one that it came from.
            return self._one(timeline)
        return self._possible(system)

    def _one(self, timeline: int) -> Sequence[History]:
        known = self._known.get(timeline)
        if known is None:
            self._read_histories()
            known = self._known.get(timeline)
        return () if known is None else (known,)

    def _read_histories(self) -> int:
        """Reads the files that the server has; returns the timeline of its last checkpoint."""
        if self._by_replication:
            session = self._replicating()
            timeline = int(session.row("IDENTIFY_SYSTEM")[1] or 0)
            if timeline > 1:
                text = session.row(f"TIMELINE_HISTORY {timeline}")[1]
                self._known[timeline] = parse_history(timeline, text or "")
            return timeline
        if not (self._by_function or self._by_right):
            return 0
        checkpoint = 0
        for timeline_text, text in self.session.run(_HISTORIES if self._by_function else _HISTORIES_BY_RIGHT)[0]:
            timeline = int(timeline_text or 0)
            if text is None:
                checkpoint = timeline
            elif timeline not in self._known:
                self._known[timeline] = parse_history(timeline, text)
        return checkpoint

    def _possible(self, system: int) -> Sequence[History]:
        """The receiver is down: what the server may be following, for it may replay from an archive.

        It is past its last checkpoint and past every row that it shows, and knows the history of what it follows.
        """
        checkpoint = self._read_histories()
        self._read_rows()
        least = max([checkpoint, 1, *(timeline for own, timeline in self._words if own == system)])
        return [
            history
            for timeline, history in sorted(self._known.items())
            if timeline == least or (timeline > least and least in history.ends)
        ]

    def _replaying(self) -> int:
        return int(self._replicating().row("IDENTIFY_SYSTEM")[1] or 0)

    def _replicating(self) -> Session:
        if self._replication is None:
            try:
                self._replication = Session(self._target, self._timeout, replication="database")
            except OperationalError as error:
                raise RefusedError(f"{NO_RIGHT.format(user=self._user, store=self._store)} ({error})", "") from error
        return self._replication

    def close(self) -> None:
        """Ends its connections; never raises."""
        self.session.close()
        if self._replication is not None:
            self._replication.close()
