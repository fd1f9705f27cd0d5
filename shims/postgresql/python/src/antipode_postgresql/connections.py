"""Recording connections and cursors, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from typing import Any, Final

import psycopg
from antipode.lineage import EMPTY, Lineage
from antipode.read import PLAIN
from psycopg._server_cursor_base import ServerCursorMixin

from antipode_postgresql.binding import Binding
from antipode_postgresql.flow import Flow
from antipode_postgresql.known import Known
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
    known = plain.__dict__.setdefault(_KNOWN, Known())
    wrapped._antipode_plain = plain
    wrapped._antipode_flow = Flow(binding, plain, known)
    known.flows.add(wrapped._antipode_flow)
    return wrapped


class RecordingConnection(RecordingBaseConnection):
    """Beside `psycopg.Connection`."""

    __slots__ = ()

    def cursor(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        cursor = None if args or options else self._antipode_cursor()
        if cursor is None:
            cursor = super().cursor(*args, **options)  # type: ignore[misc]
            plain = type(cursor)
            cursor.__class__ = recorded.get(plain) or recording_class(plain, RecordingCursor)
        return cursor

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


class RecordingCursor(RecordingBaseCursor):
    """Beside `psycopg.Cursor` and its kin."""

    __slots__ = ()

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """As psycopg's; inside `reading()`, and with `wait_on_read`, a read waits and says what it depends on."""
        conn: Any = self._conn  # type: ignore[attr-defined]
        flow = conn._antipode_flow
        read = None if flow.binding.reads_plainly() else read_of(flow, query)
        if read is None:
            return super().execute(query, params, **options)  # type: ignore[misc]
        with read:
            self._antipode_wait(read, conn)
            result = super().execute(query, params, **options)  # type: ignore[misc]
            self._antipode_cover(read, conn)
        return result

    def _antipode_wait(self, read: StatementRead, conn: Any) -> None:
        for asks in read.steps():
            if not asks:
                read.wait()
                continue
            with conn.lock:
                conn.wait(read.learn_gen(conn._pipeline), interval=TICK_S)
                read.drop()

    def _antipode_cover(self, read: StatementRead, conn: Any) -> None:
        if read.collects and not isinstance(self, ServerCursorMixin):
            with conn.lock:
                conn.wait(read.cover_gen(self))
        else:
            read.mark()
        read.came()

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        """As psycopg's."""
        read = self._antipode_uncovered(query)
        if read is not None:
            read.at_once()
        try:
            super().executemany(query, params_seq, **options)  # type: ignore[misc]
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            raise
        self._antipode_settle()

    def copy(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        statement = args[0] if args else options.get("statement")
        return self._antipode_copy(statement, made(self._antipode_flow, statement), *args, **options)

    @contextmanager
    def _antipode_copy(self, statement: Any, before: Lineage, *args: Any, **options: Any) -> Iterator[Any]:
        read = self._antipode_uncovered(statement, before)
        if read is not None:
            read.at_once()
        try:
            with super().copy(*args, **options) as copy:  # type: ignore[misc]
                yield self._antipode_copied(copy)
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            self._antipode_settle()
            raise
        self._antipode_settle()

    def stream(self, query: Any, *args: Any, **options: Any) -> Iterator[Any]:
        """As psycopg's."""
        return self._antipode_stream(made(self._antipode_flow, query), query, *args, **options)

    def _antipode_stream(self, before: Lineage, query: Any, *args: Any, **options: Any) -> Iterator[Any]:
        read = self._antipode_uncovered(query, before)
        try:
            self._antipode_flow.known.row_by_row = True
            fetching = self._antipode_fetching()
            with read or PLAIN, closing(super().stream(query, *args, **options)) as rows:  # type: ignore[misc]
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
        self._antipode_settle()

    def _antipode_uncovered(self, query: Any, before: Lineage = EMPTY) -> StatementRead | None:
        """Return what is about to be read bit by bit, and has waited as a read does; None where nothing of it is."""
        read = read_of(self._antipode_flow, query, before)
        if read is not None:
            try:
                self._antipode_wait(read, self._conn)  # type: ignore[attr-defined]
            except BaseException:
                read.end()
                raise
        return read

    def _antipode_settle(self) -> None:
        conn: Any = self._conn  # type: ignore[attr-defined]
        if self._antipode_flow.write is not None or self._antipode_flow.in_session:
            with conn.lock:
                conn.wait(self._antipode_settled())


class AsyncRecordingConnection(RecordingBaseConnection):
    """Beside `psycopg.AsyncConnection`."""

    __slots__ = ()

    def cursor(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        cursor = None if args or options else self._antipode_cursor()
        if cursor is None:
            cursor = super().cursor(*args, **options)  # type: ignore[misc]
            plain = type(cursor)
            cursor.__class__ = recorded.get(plain) or recording_class(plain, AsyncRecordingCursor)
        return cursor

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


class AsyncRecordingCursor(RecordingBaseCursor):
    """Beside `psycopg.AsyncCursor` and its kin."""

    __slots__ = ()

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """As psycopg's; inside `reading()`, and with `wait_on_read`, a read waits and says what it depends on."""
        conn: Any = self._conn  # type: ignore[attr-defined]
        flow = conn._antipode_flow
        read = None if flow.binding.reads_plainly() else read_of(flow, query)
        if read is None:
            return await super().execute(query, params, **options)  # type: ignore[misc]
        with read:
            await self._antipode_wait(read, conn)
            result = await super().execute(query, params, **options)  # type: ignore[misc]
            await self._antipode_cover(read, conn)
        return result

    async def _antipode_wait(self, read: StatementRead, conn: Any) -> None:
        for asks in read.steps():
            if not asks:
                await read.wait_async()
                continue
            async with conn.lock:
                await conn.wait(read.learn_gen(conn._pipeline), interval=TICK_S)
                read.drop()

    async def _antipode_uncovered(self, query: Any, before: Lineage = EMPTY) -> StatementRead | None:
        """Return what is about to be read bit by bit, and has waited as a read does; None where nothing of it is."""
        read = read_of(self._antipode_flow, query, before)
        if read is not None:
            try:
                await self._antipode_wait(read, self._conn)  # type: ignore[attr-defined]
            except BaseException:
                read.end()
                raise
        return read

    async def _antipode_cover(self, read: StatementRead, conn: Any) -> None:
        if read.collects and not isinstance(self, ServerCursorMixin):
            async with conn.lock:
                await conn.wait(read.cover_gen(self))
        else:
            read.mark()
        read.came()

    async def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        """As psycopg's."""
        read = await self._antipode_uncovered(query)
        if read is not None:
            read.at_once()
        try:
            await super().executemany(query, params_seq, **options)  # type: ignore[misc]
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            raise
        await self._antipode_settle()

    def copy(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        statement = args[0] if args else options.get("statement")
        return self._antipode_copy(statement, made(self._antipode_flow, statement), *args, **options)

    @asynccontextmanager
    async def _antipode_copy(self, statement: Any, before: Lineage, *args: Any, **options: Any) -> AsyncIterator[Any]:
        read = await self._antipode_uncovered(statement, before)
        if read is not None:
            read.at_once()
        try:
            async with super().copy(*args, **options) as copy:  # type: ignore[misc]
                yield self._antipode_copied(copy)
        except BaseException as error:
            self._antipode_flow.failed(Kind.WRITE, error)
            await self._antipode_settle()
            raise
        await self._antipode_settle()

    def stream(self, query: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """As psycopg's."""
        return self._antipode_stream(made(self._antipode_flow, query), query, *args, **options)

    async def _antipode_stream(self, before: Lineage, query: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        read = await self._antipode_uncovered(query, before)
        try:
            self._antipode_flow.known.row_by_row = True
            fetching = self._antipode_fetching()
            with read or PLAIN:
                async with aclosing(super().stream(query, *args, **options)) as rows:  # type: ignore[misc]
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
        await self._antipode_settle()

    async def _antipode_settle(self) -> None:
        conn: Any = self._conn  # type: ignore[attr-defined]
        if self._antipode_flow.write is not None or self._antipode_flow.in_session:
            async with conn.lock:
                await conn.wait(self._antipode_settled())
