"""Reads that wait, or that say what they depend on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from antipode import EMPTY, Lineage, UnprovenKind, Verdict, WriteId
from antipode.shim import LOOK_S, Keys, Read, ReadValue, Server, Visibility, lineage_at_rest, not_yet, unproven
from psycopg import OperationalError, pq

from antipode_postgresql.column import COLUMN
from antipode_postgresql.flow import INTRANS, Flow
from antipode_postgresql.looking import STARTED, Look
from antipode_postgresql.packets import LateAnswer, Results, asked, bounded, record_end, simple
from antipode_postgresql.positions import Epoch, number_of, position_in
from antipode_postgresql.riding import ResultListener
from antipode_postgresql.statements import Kind, classify, is_noted, may_read
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
_ANY: Final = (ReadValue(b""),)
"""What is told of a statement: that it reads, and no more (HIST-36)."""
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


class StatementRead(Read):
    """One statement that may read: what it waits for on its own connection, and who wants to know what it returns."""

    __slots__ = (
        "_before",
        "_is_over",
        "_isolation",
        "_life",
        "_proved_life",
        "_text",
        "binding",
        "covers",
        "flow",
        "ids",
        "is_past",
        "past",
        "trouble",
    )

    def __init__(self, flow: Flow, text: bytes, before: Lineage = EMPTY) -> None:
        self.flow = flow
        self.binding = binding = flow.binding
        is_told = (binding.notes or binding.follows) and is_noted(text)
        keys: Keys = None if is_told and classify(text) is Kind.READ else ()  # what may write is not followed
        super().__init__(binding, None, keys, is_told=is_told)
        self._before = before
        self._text = text
        self.ids: list[WriteId] = []
        self.trouble: Visibility | None = None
        """Why what it waits for is not visible, once it has given up."""
        self.is_past = False
        """Whether that is because what it reads is of a moment that is past (SHIM-48)."""
        self.past: Lineage | None = None
        """What was proved when the data to be fetched was taken (SHIM-48); None where it is read now."""
        self._life = ""
        self._proved_life = ""
        self._isolation = ""
        self._is_over = False
        self.covers: tuple[WriteId, ...] = ()
        """The position that goes into lineages with what was read."""

    @property
    def after(self) -> Lineage:
        """What it has to come after: where it was made, too (SHIM-44)."""
        return super().after | self._before if self._before else super().after

    # Waiting

    def steps(self) -> Iterator[bool]:
        """Give what is to be done before it, step by step: to ask on its connection (`learn_gen`), or else to `wait`.

        Raises BarrierTimeout or BarrierUnproven, by the policies, where that was in vain.
        """
        self.ids = self.required()
        if not self.ids:
            return
        if not self._is_settled():
            asks_first = self.in_snapshot  # otherwise behind the wait: the question itself may take the snapshot
            if asks_first:
                yield True
            if self.trouble is None:
                yield False
            if self.trouble is None and not asks_first:
                yield True
            self._waited()
        if self.trouble is not None:
            self.refuse(self.trouble, is_past=self.is_past)

    def _is_settled(self) -> bool:
        """Return whether waiting is of no use: its moment is past, and what it wants was proved then, or was not."""
        self.past = self.flow.known.moments.of_text(self._text)
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
        not come by the deadline is waited for no more: the connection is closed then, as the question is open on it
        still, and the next query would take its answer (SHIM-47).
        """
        pgconn = self.flow.pgconn
        if pgconn.transaction_status == pq.TransactionStatus.INERROR:
            return
        is_held = self.in_snapshot
        until = max(self.deadline, time.monotonic() + LOOK_S)
        try:
            if pipeline is None:
                self._hear((yield from bounded(simple(pgconn, _LIFE), until)))
            else:
                pipeline.command_queue.append(asked(pgconn, _LIFE_IN_ONE))
                pipeline.result_queue.append((ResultListener(self._hear), None))
                yield from bounded(pipeline._communicate_gen(), until)  # sends what is queued
                yield from bounded(pipeline._fetch_gen(flush=True), until)
        except LateAnswer:
            pgconn.finish()
            self.trouble = not_yet("the server did not answer on this connection, which is closed")
        if is_held and self._isolation not in ("", "read committed", "read uncommitted"):
            self.gave_up_past(_SNAPSHOT.format(self._isolation))

    def _hear(self, results: Results) -> None:
        rows = [result for result in results if result.status in _ROWS and result.ntuples]
        cells = [result.get_value(0, column) for result in rows for column in range(result.nfields)]
        values = [cell.decode() for cell in cells if cell is not None]
        if len(values) == 2:
            self._life, self._isolation = values
        elif any(result.status in _ROWS for result in results):
            self.trouble = unproven("the server did not say on this connection which one it is")

    def wait(self) -> None:
        """Wait until the connection's own server has the writes."""
        server = _server(self.flow)
        self._judge(server.wait_for(Lineage(self.ids), self._left), server)

    async def wait_async(self) -> None:
        """`wait`, for asyncio."""
        server = _server(self.flow)
        self._judge(await server.wait_for_async(Lineage(self.ids), self._left), server)

    @property
    def _left(self) -> float:
        return max(self.deadline - time.monotonic(), 0.0)

    def _judge(self, answer: Visibility, server: Any) -> None:
        if answer.verdict is Verdict.VISIBLE:
            look = server.session
            self._proved_life = look.instance.rpartition("/")[0] if isinstance(look, Look) else ""
        else:
            self.trouble = answer

    def _waited(self) -> None:
        """The wait is over: what it proved counts from now on, if it was this connection's server that was asked."""
        if self.trouble is not None:
            return
        if self._proved_life and self._life and self._proved_life != self._life:
            words = f"{_server(self.flow).address} leads to several servers: name them one by one"
            self.trouble = unproven(words, UnprovenKind.UNFIT)
            return
        moments = self.flow.known.moments
        moments.proved |= Lineage(self.ids)

    # Covering

    def cover_gen(self, cursor: Any) -> Any:
        """Where the server that answered is, after the value; and what rests beside the rows."""
        self._saw_beside(cursor)
        status = self.flow.pgconn.transaction_status
        if status not in (INTRANS, pq.TransactionStatus.IDLE) or self.flow.pgconn.pipeline_status:
            self.mark()
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
            self.mark()
            return
        answer = results[-1]
        if answer.status != pq.ExecStatus.TUPLES_OK:
            self.binding.say(
                "cover",
                f"what is read from {self.binding.store.name} cannot be covered: run antipode init",
                code="AP203",
            )
            self.mark()
            return
        fields = [None if (v := answer.get_value(0, n)) is None else v.decode() for n in range(answer.nfields)]
        recovering, reached, timeline, system, seen, word, segment = fields
        if timeline is None or system is None or reached is None or seen is None:
            self.mark()
            return
        counter = number_of(seen)
        if recovering != "t":
            counter = max(number_of(reached), record_end(counter, int(segment or 0)))
        elif counter < number_of(reached):  # it replays what it has not received since it began to: from an archive
            self.mark()
            return
        epoch = str(Epoch(int(system), int(timeline), word or ""))
        self.covers = (WriteId(self.binding.store.name, b"", position_in(epoch, counter)),)

    def _saw_beside(self, cursor: Any) -> None:
        if not self.binding.rests or cursor.pgresult is None or not cursor.pgresult.nfields:
            return
        result = cursor.pgresult
        columns = [number for number in range(result.nfields) if result.fname(number) == COLUMN.encode()]
        if not columns:
            self.mark()
            return
        options = self.binding.options
        for row in range(result.ntuples):
            for column in columns:
                beside = lineage_at_rest(result.get_value(row, column), self.binding.store.name, options.lineage_in)
                if beside:
                    self.saw(lineage=beside)

    # The end

    def came(self) -> None:
        """Tell that its result is there."""
        self.returned(self._found, covers=self.covers)

    def _found(self) -> tuple[ReadValue, ...]:
        if self.binding.follows and not self.flow.pgconn.pipeline_status:  # there it is still on its way
            self.server = _server(self.flow)
        return _ANY

    def comes(self) -> None:
        """Tell that its first data come, bit by bit, or that there are none: nobody can cover them."""
        if not self._is_over:
            self._is_over = True
            self.mark()
            self.came()
            self.end()

    def at_once(self) -> None:
        """Tell before it is sent that it gives its data bit by bit, whenever they come: nobody can cover them."""
        self.mark()
        self.returned(lambda: _ANY)
        self.end()


def made(flow: Flow, query: Any) -> Lineage:
    """Return what a read that is made now and begun later has to see because of where it was made (SHIM-44).

    A `reading()` may be over when it is begun, so it is told now that it cannot cover it.
    """
    if flow.binding.reads_plainly() or not may_read(text_of(query)):
        return EMPTY
    read = Read(flow.binding, None, is_told=False)
    read.mark()
    return Lineage(read.required())


def read_of(flow: Flow, query: Any, before: Lineage = EMPTY) -> StatementRead | None:
    """Return a read that is about to be sent; None where it is a plain one, or no read.

    before: what it has to see because of where it was made.
    """
    if flow.binding.reads_plainly() and not before:
        return None
    text = text_of(query)
    return StatementRead(flow, text, before) if may_read(text) else None


def waits_gen(read: StatementRead, pipeline: Any) -> Any:
    """Wait within a generator of psycopg's, blocking; raise what the policies say of a wait in vain."""
    for asks in read.steps():
        if asks:
            yield from read.learn_gen(pipeline)
        else:
            read.wait()


class FetchedResult:
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
        read = Read(binding, None, is_told=False)
        lineage = read.after
        if lineage is self._checked:
            return
        ids = read.required()
        if ids and not Lineage(ids) <= self._proved:
            read.refuse(unproven(_PAST), is_past=True)
        self._checked = lineage


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
