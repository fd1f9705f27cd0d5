"""Recording connections and cursors, sync and async: one text, but for what is a block or an iterator of psycopg's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from typing import Any, Final

import psycopg
from antipode import EMPTY, Lineage
from antipode.shim import PLAIN
from antipode.shim.both_ways import Steps, run, run_async
from psycopg._server_cursor_base import ServerCursorMixin

from antipode_postgresql.binding import Binding
from antipode_postgresql.flow import Flow
from antipode_postgresql.known import KnownServer
from antipode_postgresql.reads import TICK_S, StatementRead, made, read_of
from antipode_postgresql.recording import (
    RecordingBaseConnection,
    RecordingBaseCursor,
    RecordingPipeline,
    recorded,
    recording_class,
)
from antipode_postgresql.statements import Kind

_SLOTS: Final = ("_antipode_flow", "_antipode_plain")
_KNOWN: Final = "_antipode_known"


def record(plain: Any, binding: Binding) -> Any:
    """A connection that shares everything with a plain one, and records."""
    plain = getattr(plain, "_antipode_plain", plain)
    is_async = isinstance(plain, psycopg.AsyncConnection)
    mixin = AsyncRecordingConnection if is_async else RecordingConnection
    made = recorded.get(type(plain))
    if made is None:
        made = recording_class(type(plain), mixin, _SLOTS)
        made._antipode_own_cursors = type(plain).cursor in (psycopg.Connection.cursor, psycopg.AsyncConnection.cursor)
    wrapped = object.__new__(made)
    wrapped.__dict__ = plain.__dict__
    known = plain.__dict__.setdefault(_KNOWN, KnownServer())
    wrapped._antipode_plain = plain
    wrapped._antipode_flow = Flow(binding, plain, known)
    known.flows.add(wrapped._antipode_flow)
    return wrapped


class RecordingSharedCursor(RecordingBaseCursor):
    """The common part of blocking and asyncio cursors."""

    __slots__ = ()

    _antipode_wait_for: Any = staticmethod(StatementRead.wait)
    _antipode_copy: Any
    _antipode_stream: Any

    def _antipode_do(self, steps: Any, **options: Any) -> Any:
        """Do what psycopg waits for, alone on the connection; a step."""
        conn: Any = self._conn  # type: ignore[attr-defined]
        with conn.lock:
            return conn.wait(steps, **options)

    def _antipode_execute(self, plain: Callable[[], Any], query: Any) -> Steps[Any]:
        flow = self._antipode_flow
        read = None if flow.binding.reads_plainly() else read_of(flow, query)
        if read is None:
            return (yield plain())
        with read:
            yield from self._antipode_wait(read)
            result = yield plain()
            if read.collects and not isinstance(self, ServerCursorMixin):
                yield self._antipode_do(read.cover_gen(self))
            else:
                read.mark()
            read.came()
        return result

    def _antipode_wait(self, read: StatementRead) -> Steps[None]:
        for asks in read.steps():
            if asks:
                pipeline = self._conn._pipeline  # type: ignore[attr-defined]
                yield self._antipode_do(read.learn_gen(pipeline), interval=TICK_S)
            else:
                yield self._antipode_wait_for(read)

    def _antipode_uncovered(self, query: Any, before: Lineage = EMPTY) -> Steps[StatementRead | None]:
        """Return what is about to be read bit by bit, and has waited as a read does; None where nothing of it is."""
        read = read_of(self._antipode_flow, query, before)
        if read is not None:
            try:
                yield from self._antipode_wait(read)
            except BaseException:
                read.end()
                raise
        return read

    def _antipode_execute_many(self, plain: Callable[[], Any], query: Any) -> Steps[None]:
        yield from self._antipode_waits(query)
        try:
            yield plain()
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            raise
        yield from self._antipode_settle()

    def copy(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        plain, statement = super().copy, args[0] if args else options.get("statement")  # type: ignore[misc]
        before = made(self._antipode_flow, statement)
        return self._antipode_copy(lambda: plain(*args, **options), self._antipode_waits(statement, before))

    def _antipode_waits(self, query: Any, before: Lineage = EMPTY) -> Steps[None]:
        """Wait as a read does whose data come bit by bit, whenever they come: nobody can cover them."""
        read = yield from self._antipode_uncovered(query, before)
        if read is not None:
            read.at_once()

    def stream(self, query: Any, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        plain = super().stream  # type: ignore[misc]
        waits = self._antipode_uncovered(query, made(self._antipode_flow, query))
        return self._antipode_stream(lambda: plain(query, *args, **options), waits)

    def _antipode_settle(self) -> Steps[None]:
        if self._antipode_flow.write is not None or self._antipode_flow.in_session:
            yield self._antipode_do(self._antipode_settled())


class RecordingCursor(RecordingSharedCursor):
    """Beside `psycopg.Cursor` and its kin."""

    __slots__ = ()

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """As psycopg's; inside `reading()`, and with `wait_on_read`, a read waits and says what it depends on."""
        plain = super().execute  # type: ignore[misc]
        return run(self._antipode_execute(lambda: plain(query, params, **options), query))

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        """As psycopg's."""
        plain = super().executemany  # type: ignore[misc]
        run(self._antipode_execute_many(lambda: plain(query, params_seq, **options), query))

    @contextmanager
    def _antipode_copy(self, plain: Callable[[], Any], waits: Steps[None]) -> Iterator[Any]:
        run(waits)
        try:
            with plain() as copy:
                yield self._antipode_copied(copy)
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            run(self._antipode_settle())
            raise
        run(self._antipode_settle())

    def _antipode_stream(self, plain: Callable[[], Any], waits: Steps[StatementRead | None]) -> Iterator[Any]:
        read = run(waits)
        try:
            self._antipode_flow.known.row_by_row = True
            fetching = self._antipode_fetching()
            with read or PLAIN, closing(plain()) as rows:
                for row in rows:
                    if read is not None:
                        read.comes()
                    fetching.goes_on()
                    yield row
                if read is not None:
                    read.comes()
        except BaseException as error:
            self._antipode_flow.failed(Kind.MAYBE, error)
            raise
        run(self._antipode_settle())


class AsyncRecordingCursor(RecordingSharedCursor):
    """Beside `psycopg.AsyncCursor` and its kin."""

    __slots__ = ()
    _antipode_wait_for = staticmethod(StatementRead.wait_async)

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """As psycopg's; inside `reading()`, and with `wait_on_read`, a read waits and says what it depends on."""
        plain = super().execute  # type: ignore[misc]
        return await run_async(self._antipode_execute(lambda: plain(query, params, **options), query))

    async def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        """As psycopg's."""
        plain = super().executemany  # type: ignore[misc]
        await run_async(self._antipode_execute_many(lambda: plain(query, params_seq, **options), query))

    async def _antipode_do(self, steps: Any, **options: Any) -> Any:
        conn: Any = self._conn  # type: ignore[attr-defined]
        async with conn.lock:
            return await conn.wait(steps, **options)

    @asynccontextmanager
    async def _antipode_copy(self, plain: Callable[[], Any], waits: Steps[None]) -> AsyncIterator[Any]:
        await run_async(waits)
        try:
            async with plain() as copy:
                yield self._antipode_copied(copy)
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            await run_async(self._antipode_settle())
            raise
        await run_async(self._antipode_settle())

    async def _antipode_stream(
        self, plain: Callable[[], Any], waits: Steps[StatementRead | None]
    ) -> AsyncIterator[Any]:
        read = await run_async(waits)
        try:
            self._antipode_flow.known.row_by_row = True
            fetching = self._antipode_fetching()
            with read or PLAIN:
                async with aclosing(plain()) as rows:
                    async for row in rows:
                        if read is not None:
                            read.comes()
                        fetching.goes_on()
                        yield row
                if read is not None:
                    read.comes()
        except BaseException as error:
            self._antipode_flow.failed(Kind.MAYBE, error)
            raise
        await run_async(self._antipode_settle())


class RecordingConnection(RecordingBaseConnection):
    """Beside `psycopg.Connection`."""

    __slots__ = ()
    _antipode_cursors = RecordingCursor

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        """As psycopg's; what the commits of the block could not learn is asked for at its end."""
        try:
            with super().pipeline() as pipeline:  # type: ignore[misc]
                pipeline.__class__ = recording_class(psycopg.Pipeline, RecordingPipeline)
                yield pipeline
        finally:
            if self._pipeline is None and not self.closed:  # type: ignore[attr-defined]
                with self.lock:  # type: ignore[attr-defined]
                    self.wait(self._antipode_flow.settle_apart_gen())  # type: ignore[attr-defined]

    def close(self) -> None:
        """As psycopg's."""
        self._antipode_flow.closed()
        super().close()  # type: ignore[misc]


class AsyncRecordingConnection(RecordingBaseConnection):
    """Beside `psycopg.AsyncConnection`."""

    __slots__ = ()
    _antipode_cursors = AsyncRecordingCursor

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Any]:
        """As psycopg's; what the commits of the block could not learn is asked for at its end."""
        try:
            async with super().pipeline() as pipeline:  # type: ignore[misc]
                pipeline.__class__ = recording_class(psycopg.AsyncPipeline, RecordingPipeline)
                yield pipeline
        finally:
            if self._pipeline is None and not self.closed:  # type: ignore[attr-defined]
                async with self.lock:  # type: ignore[attr-defined]
                    await self.wait(self._antipode_flow.settle_apart_gen())  # type: ignore[attr-defined]

    async def close(self) -> None:
        """As psycopg's."""
        self._antipode_flow.closed()
        await super().close()  # type: ignore[misc]
