"""Reads that wait, or that say what they depend on."""

from __future__ import annotations

import time
from typing import Any, Final

from antipode.at_rest import lineage_at_rest
from antipode.followed_reads import FollowedRead, followed_read, quietly
from antipode.lineage import Lineage
from antipode.otel_context import current_context
from antipode.reading import Reading, reading_in
from antipode.scope import Scope, current_scope
from antipode.server import Server
from antipode.verdict import Verdict
from antipode.wait_on_read import waited_in_vain
from antipode.waiting import wait_for_server, wait_for_server_async
from antipode.writeid import WriteId
from psycopg import OperationalError, pq

from antipode_postgresql.column import COLUMN
from antipode_postgresql.flow import INTRANS, Flow
from antipode_postgresql.looking import STARTED, Look
from antipode_postgresql.packets import Results, asked, record_end, simple
from antipode_postgresql.positions import Epoch, number_of, position_in
from antipode_postgresql.repeating import own_reads
from antipode_postgresql.riding import Heard
from antipode_postgresql.statements import Kind, classify, may_read
from antipode_postgresql.targets import Target, target_of

UNKNOWN: Final = b"CALL"
"""Stands for a text that nobody knows: it may do anything."""
_LIFE: Final = f"SELECT {STARTED}; SHOW transaction_isolation".encode()
_LIFE_IN_ONE: Final = f"SELECT {STARTED}, current_setting('transaction_isolation')".encode()
# Beside the position that judges, what covers all that can be seen (EPOCH-31). On a primary the insert position: what
# was read may have been committed asynchronously. On a standby what it has received: a commit can be seen there a
# moment before it counts as replayed.
_COVER: Final = b"""SELECT p.recovering, p.reached, p.timeline, p.system,
 CASE WHEN p.recovering THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_insert_lsn() END::text,
 (SELECT word FROM antipode.epochs AS e
  WHERE e.system = p.system AND e.timeline = p.timeline AND e.counter = 0 LIMIT 1),
 (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size')
FROM antipode.place() AS p"""


class ReadCall:
    """One read: what it has to wait for, and who wants to know what it depends on."""

    def __init__(
        self, flow: Flow, reading: Reading | None, ids: list[WriteId], scope: Scope | None, merges: bool
    ) -> None:
        self.flow = flow
        self.binding = flow.binding
        self.reading = reading
        self.ids = ids
        self.timeout = self.binding.timeout
        self.trouble = ""
        self.unproven = False
        self._life = ""
        self._isolation = ""
        self._scope = scope
        self._merged: Reading | None = Reading() if merges else None
        self.covers: WriteId | None = None
        """The position that goes into lineages with what was read."""
        self._began = time.monotonic()
        if scope is not None and scope.deadline is not None:
            self.timeout = max(0.0, min(self.timeout, scope.deadline - self._began))

    @property
    def collects(self) -> bool:
        """Whether somebody wants to know what the value depends on."""
        return self.reading is not None or self._merged is not None

    # Waiting

    def learn_gen(self, pipeline: Any) -> Any:
        """Return which life of which server this connection reaches, and whether its transaction keeps a snapshot.

        In a pipeline it is asked in its place among the commands, and what was sent before is heard first.
        """
        pgconn = self.flow.pgconn
        if pgconn.transaction_status == pq.TransactionStatus.INERROR:
            return
        if pipeline is None:
            self._hear((yield from simple(pgconn, _LIFE)))
            return
        pipeline.command_queue.append(asked(pgconn, _LIFE_IN_ONE))
        pipeline.result_queue.append((Heard(self._hear), None))
        yield from pipeline._fetch_gen(flush=True)

    def _hear(self, results: Results) -> None:
        rows = [result for result in results if result.status == pq.ExecStatus.TUPLES_OK]
        values = [result.get_value(0, column).decode() for result in rows for column in range(result.nfields)]
        if len(values) == 2:
            self._life, self._isolation = values

    def _kept_snapshot(self) -> bool:
        pgconn = self.flow.pgconn
        held = (pgconn.transaction_status == INTRANS or pgconn.pipeline_status) and self.flow.has_snapshot
        return bool(held) and self._isolation not in ("", "read committed", "read uncommitted")

    def wait(self) -> None:
        """Waits until the connection's own server has the writes."""
        server = _server(self.flow)
        if self._waits_in_vain():
            return
        verdict = wait_for_server(server, Lineage(self.ids), self.timeout)
        self._judge(verdict, server)

    async def wait_async(self) -> None:
        """`wait`, for asyncio."""
        server = _server(self.flow)
        if self._waits_in_vain():
            return
        verdict = await wait_for_server_async(server, Lineage(self.ids), self.timeout)
        self._judge(verdict, server)

    def _waits_in_vain(self) -> bool:
        if self._kept_snapshot():
            self.trouble = f"its {self._isolation} transaction reads from a snapshot taken before: begin another one"
            return True
        return False

    def _judge(self, verdict: Verdict, server: Any) -> None:
        if verdict is Verdict.VISIBLE:
            look = server.session
            life = look.instance.rpartition("/")[0] if isinstance(look, Look) else ""
            if life and self._life and life != self._life:
                self.trouble = f"{server.address} leads to several servers: name them one by one"
                self.unproven = True
            return
        self.unproven = verdict is Verdict.UNPROVEN
        self.trouble = f"it is at {server.position}, and has not got {', '.join(map(str, self.ids[:3]))}"

    # Covering

    def cover_gen(self, cursor: Any) -> Any:
        """Where the server that answered is, after the value; and what rests beside the rows."""
        self._saw_beside(cursor)
        status = self.flow.pgconn.transaction_status
        if status not in (INTRANS, pq.TransactionStatus.IDLE) or self.flow.pgconn.pipeline_status:
            self.missed()
            return
        in_block = status == INTRANS
        try:
            guard = b"SAVEPOINT antipode;" if in_block else b""
            results = yield from simple(self.flow.pgconn, guard + _COVER)
            if in_block:
                good = results[-1].status == pq.ExecStatus.TUPLES_OK
                ended = b"RELEASE antipode" if good else b"ROLLBACK TO antipode"
                yield from simple(self.flow.pgconn, ended)
        except OperationalError:
            self.missed()
            return
        answer = results[-1]
        if answer.status != pq.ExecStatus.TUPLES_OK:
            self.binding.say(
                "cover", f"what is read from {self.binding.store.name} cannot be covered: run antipode init"
            )
            self.missed()
            return
        fields = [None if (v := answer.get_value(0, n)) is None else v.decode() for n in range(answer.nfields)]
        recovering, reached, timeline, system, seen, word, segment = fields
        if timeline is None or system is None or reached is None or seen is None:
            self.missed()
            return
        counter = number_of(seen)
        if recovering != "t":
            counter = max(number_of(reached), record_end(counter, int(segment or 0)))
        elif counter < number_of(reached):  # it replays what it has not received since it began to: from an archive
            self.missed()
            return
        epoch = str(Epoch(int(system), int(timeline), word or ""))
        position = self.covers = WriteId(self.binding.store.name, b"", position_in(epoch, counter))
        for reading in (self.reading, self._merged):
            if reading is not None:
                reading.saw(position)

    def _saw_beside(self, cursor: Any) -> None:
        if not self.binding.rests or cursor.pgresult is None or not cursor.pgresult.nfields:
            return
        result = cursor.pgresult
        columns = [number for number in range(result.nfields) if result.fname(number) == COLUMN.encode()]
        if not columns:
            self.missed()
            return
        options = self.binding.options
        for row in range(result.ntuples):
            for column in columns:
                beside = lineage_at_rest(result.get_value(row, column), self.binding.store.name, options.lineage_in)
                for reading in (self.reading, self._merged):
                    if reading is not None and beside:
                        reading.saw(lineage=beside)

    def begin_uncovered(self) -> None:
        """It is about to read what nobody can cover, bit by bit: marked, and refused where it waited in vain."""
        self.missed()
        self.finish()

    def missed(self) -> None:
        """A value was read of which it cannot be said what it depends on."""
        for reading in (self.reading, self._merged):
            if reading is not None:
                reading.marked(self.binding.store.name)

    # The end

    def finish(self) -> None:
        """The read is over: automatic merging, then what the policies say of a wait in vain."""
        if self._merged is not None and self._scope is not None:
            self._scope.transfer_read(self._merged.lineage)
        if not self.trouble:
            return
        binding = self.binding
        name = binding.store.name
        words = f"{name}: {self.trouble}. The read waited for it {self.timeout * 1000:.0f} ms at most"
        waited_in_vain(name, words, time.monotonic() - self._began, self._scope, unproven=self.unproven)


def read_call(flow: Flow, query: Any) -> ReadCall | None:
    """What a read has to do besides reading; None where it is a plain one, or no read."""
    binding = flow.binding
    binding.refresh()
    reading = reading_in(current_context())
    if reading is None and not binding.waits and not binding.merges:
        return None
    if not may_read(text_of(query)):
        return None
    scope = current_scope()
    after: Lineage | None = None
    if reading is not None and reading.after is not None:
        after = reading.after
    elif binding.waits and scope is not None:
        after = scope.lineage
    ids = [] if after is None or not binding.records or binding.follows else after.of_store(binding.store.name)
    merges = binding.merges and scope is not None
    if reading is None and not ids and not merges:
        return None
    return ReadCall(flow, reading, list(ids), scope, merges)


def follow(flow: Flow, query: Any) -> FollowedRead | None:
    """In dry-run: what follows a statement that reads; None where nothing does."""
    flow.binding.refresh()
    if not flow.binding.follows or classify(text_of(query)) is not Kind.READ:
        return None
    text = query.encode("utf-8", "replace") if isinstance(query, str) else query
    if isinstance(text, bytes) and b"FROM" not in text.upper():
        return None  # it reads no data: a setting, an expression
    return followed_read(flow.binding.store, reading_in(current_context()))


@quietly
def came(followed: FollowedRead, flow: Flow, cursor: Any) -> None:
    """What it read has come, unless it is on its way in a pipeline."""
    if flow.pgconn.pipeline_status:
        return
    target = target_of(flow.connection)
    server = _server_at(flow, target)
    followed.over(server, again=None if flow.known.changed else own_reads(target, cursor, server.ask_timeout))


def _server(flow: Flow) -> Server:
    """The server that a connection reaches."""
    return _server_at(flow, target_of(flow.connection))


def _server_at(flow: Flow, target: Target) -> Server:
    store = flow.binding.store
    return store.server_at(target.address) or store.use_server(target, target.address)


def text_of(query: Any) -> bytes:
    """A statement's text; a template's, which is known when it is sent, is one that may do anything."""
    if isinstance(query, str):
        return query.encode("utf-8", "replace")
    if isinstance(query, bytes):
        return query
    try:
        return bytes(query.as_bytes(None))
    except Exception:
        return UNKNOWN
