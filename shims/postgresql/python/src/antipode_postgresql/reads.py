"""Reads that wait, or that say what they depend on."""

from __future__ import annotations

import time
from typing import Any, Final

from antipode.at_rest import lineage_at_rest
from antipode.followed_reads import FollowedRead, followed_read, quietly
from antipode.lineage import EMPTY, Lineage
from antipode.otel_context import current_context
from antipode.reading import Reading, reading_in
from antipode.scope import Scope, current_scope
from antipode.shim import Server
from antipode.verdict import UnprovenKind, Verdict, Visibility, not_yet, unproven
from antipode.wait_on_read import lineage_before, required_ids, waited_in_vain
from antipode.waiting import LOOK_S
from antipode.writeid import WriteId
from psycopg import OperationalError, pq

from antipode_postgresql.binding import Binding
from antipode_postgresql.column import COLUMN
from antipode_postgresql.flow import INTRANS, Flow
from antipode_postgresql.looking import STARTED, Look
from antipode_postgresql.packets import Late, Results, asked, bounded, record_end, simple
from antipode_postgresql.positions import Epoch, number_of, position_in
from antipode_postgresql.riding import Heard
from antipode_postgresql.statements import Kind, classify, may_read
from antipode_postgresql.targets import leads_on, target_of

TICK_S: Final = 0.02
"""How often a question before a read is looked after while its answer is on its way."""
_UNPROVED: Final = "the server was not proved to have what the read depends on"
_PAST: Final = (
    f"what it fetches is of a moment that is past, when {_UNPROVED}: send the query again, or open the cursor again, "
    "by connection.cursor(name) or a DECLARE of its own"
)
_SNAPSHOT: Final = (
    f"its {{}} transaction reads from a snapshot of a moment that is past, when {_UNPROVED}: begin another one"
)
_ROWS: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_CHUNK)
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
        self.trouble: Visibility | None = None
        """Why what it waits for is not visible, once it has given up."""
        self.is_past = False
        """Whether that is because what it reads is of a moment that is past (SHIM-48)."""
        self.past: Lineage | None = None
        """What was proved when the data to be fetched was taken (SHIM-48); None where it is read now."""
        self._life = ""
        self._proved_life = ""
        self._isolation = ""
        self._is_late = False
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

    def is_settled(self) -> bool:
        """Return whether waiting is of no use: its moment is past, and what it wants was proved then, or was not."""
        if self.past is None and not self.in_snapshot:
            return False
        proved = self.flow.known.moments.proved if self.past is None else self.past
        if Lineage(self.ids) <= proved:
            return True
        if self.past is not None:
            self.gave_up_past(_PAST)
        return self.past is not None

    def gave_up_past(self, words: str) -> None:
        """Waiting is in vain: what is to be read was taken before it was proved."""
        self.trouble, self.is_past = unproven(words), True

    @property
    def in_snapshot(self) -> bool:
        """Return whether the transaction may show a moment that is past; its isolation, which decides, is asked for."""
        pgconn = self.flow.pgconn
        return self.flow.has_snapshot and bool(pgconn.transaction_status == INTRANS or pgconn.pipeline_status)

    def learn_gen(self, pipeline: Any) -> Any:
        """Return which life of which server this connection reaches, and whether its transaction keeps a snapshot.

        In a pipeline it is asked in its place among the commands, and what was sent before is heard first. What has
        not come by the deadline is waited for no more: `drop` closes the connection then (SHIM-47).
        """
        pgconn = self.flow.pgconn
        if pgconn.transaction_status == pq.TransactionStatus.INERROR:
            return
        is_held = self.in_snapshot
        until = max(self._began + self.timeout, time.monotonic() + LOOK_S)
        try:
            if pipeline is None:
                self._hear((yield from bounded(simple(pgconn, _LIFE), until)))
            else:
                pipeline.command_queue.append(asked(pgconn, _LIFE_IN_ONE))
                pipeline.result_queue.append((Heard(self._hear), None))
                yield from bounded(pipeline._communicate_gen(), until)  # sends what is queued
                yield from bounded(pipeline._fetch_gen(flush=True), until)
        except Late:
            self._is_late = True
            self.trouble = not_yet("the server did not answer on this connection, which is closed")
        if is_held and self._isolation not in ("", "read committed", "read uncommitted"):
            self.gave_up_past(_SNAPSHOT.format(self._isolation))

    def drop(self) -> None:
        """Close the connection where the question is open on it still: the next query would take its answer."""
        if self._is_late:
            self.flow.pgconn.finish()

    def _hear(self, results: Results) -> None:
        rows = [result for result in results if result.status in _ROWS and result.ntuples]
        cells = [result.get_value(0, column) for result in rows for column in range(result.nfields)]
        values = [cell.decode() for cell in cells if cell is not None]
        if len(values) == 2:
            self._life, self._isolation = values
        elif any(result.status in _ROWS for result in results):
            self.trouble = unproven("the server did not say on this connection which one it is")

    def wait(self) -> None:
        """Waits until the connection's own server has the writes."""
        server = _server(self.flow)
        self._judge(server.wait_for(Lineage(self.ids), self._left), server)

    async def wait_async(self) -> None:
        """`wait`, for asyncio."""
        server = _server(self.flow)
        self._judge(await server.wait_for_async(Lineage(self.ids), self._left), server)

    @property
    def _left(self) -> float:
        return max(self._began + self.timeout - time.monotonic(), 0.0)

    def _judge(self, answer: Visibility, server: Any) -> None:
        if answer.verdict is Verdict.VISIBLE:
            look = server.session
            self._proved_life = look.instance.rpartition("/")[0] if isinstance(look, Look) else ""
        else:
            self.trouble = answer

    def waited(self) -> None:
        """The wait is over: what it proved counts from now on, if it was this connection's server that was asked."""
        if self.trouble is not None:
            return
        if self._proved_life and self._life and self._proved_life != self._life:
            words = f"{_server(self.flow).address} leads to several servers: name them one by one"
            self.trouble = unproven(words, UnprovenKind.UNFIT)
            return
        moments = self.flow.known.moments
        moments.proved |= Lineage(self.ids)

    def refuse(self) -> None:
        """Raise what the policies say of a wait in vain, before the read is sent."""
        if self.trouble is None:
            return
        name = self.binding.store.name
        words = f"{name}: {self.trouble.reason}. The read waited for it {self.timeout * 1000:.0f} ms at most"
        waited = time.monotonic() - self._began
        waited_in_vain(name, words, waited, self.trouble, is_past=self.is_past)

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
                "cover",
                f"what is read from {self.binding.store.name} cannot be covered: run antipode init",
                code="AP203",
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
        """It is about to read what nobody can cover, bit by bit: marked."""
        self.missed()
        self.finish()

    def missed(self) -> None:
        """A value was read of which it cannot be said what it depends on."""
        for reading in (self.reading, self._merged):
            if reading is not None:
                reading.marked(self.binding.store.name)

    # The end

    def finish(self) -> None:
        """The read is over: automatic merging."""
        if self._merged is not None and self._scope is not None:
            self._scope.transfer_read(self._merged.lineage)


def made(flow: Flow, query: Any) -> Lineage:
    """Return what a read that is made now and begun later has to see because of where it was made (SHIM-44).

    A `reading()` may be over when it is begun, so it is told now that it cannot cover it.
    """
    binding = flow.binding
    if binding.reads_plainly() or not may_read(text_of(query)):
        return EMPTY
    reading = reading_in(current_context())
    if reading is not None:
        reading.marked(binding.store.name)
    return Lineage(required_ids(binding.store, wanted(binding)))


def read_call(flow: Flow, query: Any, before: Lineage = EMPTY) -> ReadCall | None:
    """Return what a read has to do besides reading; None where it is a plain one, or no read.

    before: what it has to see because of where it was made.
    """
    binding = flow.binding
    binding.refresh()
    reading = reading_in(current_context())
    if reading is None and not (binding.waits or binding.merges or before):
        return None
    text = text_of(query)
    if not may_read(text):
        return None
    scope = current_scope()
    ids = required_ids(binding.store, wanted(binding) | before)
    merges = binding.merges and scope is not None
    if reading is None and not ids and not merges:
        return None
    call = ReadCall(flow, reading, list(ids), scope, merges)
    if ids:
        call.past = flow.known.moments.of_text(text)
    return call


def waits_gen(call: ReadCall, pipeline: Any) -> Any:
    """Wait within a generator of psycopg's, blocking; raise what the policies say of a wait in vain."""
    if not call.is_settled():
        asks_first = call.in_snapshot
        if asks_first:
            yield from call.learn_gen(pipeline)
        if call.trouble is None:
            call.wait()
        if call.trouble is None and not asks_first:
            yield from call.learn_gen(pipeline)
        call.drop()
        call.waited()
    call.refuse()


def wanted(binding: Binding) -> Lineage:
    """Return what a read of this client has to see here, as the scope and `reading()` are now."""
    return lineage_before(reading_in(current_context()), current_scope(), waits=binding.waits)


class Fetching:
    """Data that was taken at one moment, and is fetched by and by."""

    def __init__(self, flow: Flow, proved: Lineage) -> None:
        self._flow = flow
        self._proved = proved
        self._checked = EMPTY

    def goes_on(self) -> None:
        """Raise what the policies say where something is to be seen by now that was not proved then (SHIM-48)."""
        self._flow.hears()
        binding = self._flow.binding
        if binding.reads_plainly():
            return
        lineage = wanted(binding)
        if lineage is self._checked:
            return
        ids = required_ids(binding.store, lineage)
        if ids and not Lineage(ids) <= self._proved:
            call = ReadCall(self._flow, None, ids, current_scope(), False)
            call.gave_up_past(_PAST)
            call.refuse()
        self._checked = lineage


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
def came(followed: FollowedRead, flow: Flow) -> None:
    """What it read has come, unless it is on its way in a pipeline."""
    if not flow.pgconn.pipeline_status:
        followed.over(_server(flow))


def _server(flow: Flow) -> Server:
    """The server that a connection reaches."""
    target, store = target_of(flow.connection), flow.binding.store
    connection, listed = flow.connection, flow.binding.options.replicas is not None
    return store.server_at(target.address) or store.reach(connection, target, leads_on(connection), listed=listed)


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
