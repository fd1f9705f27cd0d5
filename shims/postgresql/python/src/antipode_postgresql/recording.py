"""What sync and async connections and cursors share: psycopg's own generators, with our questions in their packets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

from antipode import EMPTY, ConfigurationError
from antipode.shim import refuse_making
from psycopg import AsyncConnection, pq
from psycopg._preparing import Prepare
from psycopg.client_cursor import ClientCursorMixin

from antipode_postgresql.flow import IDLE, INTRANS, Flow
from antipode_postgresql.moments import takes_no_snapshot
from antipode_postgresql.packets import asked
from antipode_postgresql.reads import UNKNOWN, FetchedResult, read_of, waits_gen
from antipode_postgresql.statements import Kind

_BINARY: Final = pq.Format.BINARY
_TEXT: Final = pq.Format.TEXT
_TEXTS: Final = (bytes, str)
_ENDINGS: Final = frozenset({b"COMMIT", b"ROLLBACK", b"DEALLOCATE ALL"})
"""Commands of psycopg's own after which something of ours is over."""
_WRITE: Final = Kind.WRITE
_NO_QUERY: Final = (Kind.READ, Kind.SESSION)
"""Of these are what begins a transaction, and what sets something in it."""
_NO: Final = Prepare.NO
_SHOULD: Final = Prepare.SHOULD


class RecordingBaseConnection:
    """Beside a connection of psycopg: commits carry the question for their position."""

    __slots__ = ()
    _antipode_flow: Flow
    _antipode_plain: Any
    _antipode_cursors: type[Any]
    _antipode_own_cursors = False
    """Whether its class makes cursors as psycopg does."""
    __init__ = refuse_making

    @classmethod
    def connect(cls, *_: Any, **__: Any) -> Any:
        """Refuse it, before anything is opened: one more connection is to be wrapped itself (SHIM-50)."""
        refuse_making(cls)

    def __del__(self, *_: Any, **__: Any) -> None:
        # The connection is the plain one's, too: that one says so if it is left open.
        return

    def cursor(self, *args: Any, **options: Any) -> Any:
        """As psycopg's."""
        cursor = None if args or options else self._antipode_cursor()
        if cursor is None:
            cursor = super().cursor(*args, **options)  # type: ignore[misc]
            plain = type(cursor)
            cursor.__class__ = recorded.get(plain) or recording_class(plain, self._antipode_cursors)
        return cursor

    def _antipode_cursor(self) -> Any:
        """What psycopg's `cursor()` makes, of the recording class at once; None where that one is not made yet.

        A cursor that changes its class costs more, and spoils what the interpreter has learnt of cursors' attributes.
        """
        made = recorded.get(self.cursor_factory) if self._antipode_own_cursors else None  # type: ignore[attr-defined]
        if made is None:
            return None
        self._check_connection_ok()  # type: ignore[attr-defined]
        return made(self, row_factory=self.row_factory)  # type: ignore[attr-defined]

    def _start_query(self) -> Any:
        flow = self._antipode_flow
        flow.binding.refresh()
        if flow.write is not None and self._antipode_is_idle(flow):
            return self._antipode_ended_unseen(flow, self._start_query)
        if not flow.announced:
            return self._antipode_unannounced(flow)
        flow.announced = False
        return super()._start_query()  # type: ignore[misc]

    def _antipode_unannounced(self, flow: Flow) -> Any:
        """A statement of a cursor that was not made by this connection: nobody knows what it is."""
        read = read_of(flow, UNKNOWN)
        if read is not None:
            with read:
                if isinstance(self, AsyncConnection) and read.required():
                    raise ConfigurationError(
                        "a cursor that was made by hand on an asyncio connection cannot wait for what it is to read: "
                        "make it by connection.cursor(), or call antipode.barrier_async() before",
                        code="AP504",
                    )
                yield from waits_gen(read, self._pipeline)  # type: ignore[attr-defined]
                read.at_once()
        yield from super()._start_query()  # type: ignore[misc]
        if flow.binding.records:
            flow.begins(Kind.MAYBE, None)
        flow.has_snapshot = True

    def _exec_command(self, command: Any, result_format: Any = _TEXT) -> Any:
        flow = self._antipode_flow
        if flow.pgconn.transaction_status == IDLE:
            flow.has_snapshot = False
            if flow.write is not None and self._antipode_is_idle(flow):
                return self._antipode_ended_unseen(flow, partial(self._exec_command, command, result_format))
        if type(command) is bytes and command not in _ENDINGS:
            self._antipode_flow.may_set(Kind.SESSION)  # psycopg's nested transactions are savepoints
            return super()._exec_command(command, result_format)  # type: ignore[misc]
        if type(command) is bytes and command == b"COMMIT":
            return self._antipode_commit(self._antipode_flow, command, result_format)
        return self._antipode_other_command(self._antipode_flow, command, result_format)

    def _antipode_is_idle(self, flow: Flow) -> bool:
        return flow.pgconn.transaction_status == IDLE and self._pipeline is None  # type: ignore[attr-defined]

    def _antipode_ended_unseen(self, flow: Flow, goes_on: Callable[[], Any]) -> Any:
        """The open transaction was ended by the plain connection."""
        yield from flow.ended_unseen_gen()
        return (yield from goes_on())

    def _antipode_other_command(self, flow: Flow, command: Any, result_format: Any) -> Any:
        plain = super()._exec_command  # type: ignore[misc]
        text = command if isinstance(command, bytes) else b""
        if text == b"ROLLBACK":
            flow = flow.known.holder(flow)
            try:
                result = yield from plain(command, result_format)
            except BaseException as error:
                flow.failed(Kind.WRITE, error)
                raise
            yield from self._antipode_rolled_back(flow)
            return result
        flow.may_set(Kind.SESSION)
        if text == b"DEALLOCATE ALL":  # psycopg forgets what it has prepared (at a rollback, say), and ours with it
            flow.known.forget_prepared()
        elif not isinstance(command, _TEXTS):  # two-phase commit
            words = command.as_string(self) if hasattr(command, "as_string") else ""
            if words.startswith("FETCH"):  # of a cursor at the server
                FetchedResult(flow, flow.known.moments.of_text(words.encode()) or EMPTY).goes_on()
            elif words.startswith("CLOSE"):
                flow.known.moments.closed(words.encode())
            return (yield from self._antipode_two_phase(flow, words, partial(plain, command, result_format)))
        return (yield from plain(command, result_format))

    def _antipode_commit(self, flow: Flow, command: bytes, result_format: Any) -> Any:
        flow = flow.known.holder(flow)
        flow.executes()
        plain = super()._exec_command  # type: ignore[misc]
        if self._pipeline is not None:  # type: ignore[attr-defined]
            return (yield from flow.rides(self._pipeline, partial(plain, command, result_format)))  # type: ignore[attr-defined]
        if flow.write is None or flow.pgconn.transaction_status != INTRANS:
            result = yield from plain(command, result_format)
            yield from flow.rolled_back_gen()
            return result
        self._check_connection_ok()  # type: ignore[attr-defined]
        result = yield from flow.commit_gen()
        if result.status == pq.ExecStatus.FATAL_ERROR:
            from psycopg.errors import error_from_result

            raise error_from_result(result, encoding=flow.pgconn._encoding)
        return result

    def _antipode_rolled_back(self, flow: Flow) -> Any:
        if self._pipeline is not None:  # type: ignore[attr-defined]
            flow.rolled_back_later()
        else:
            yield from flow.rolled_back_gen()

    def _antipode_two_phase(self, flow: Flow, words: str, plain: Any) -> Any:
        if words.startswith("PREPARE TRANSACTION"):
            flow.executes()
            flow.committing = True
            try:
                result = yield from plain()
            except BaseException as error:
                flow.failed(Kind.WRITE, error)
                raise
            flow.committing = False
            flow.keep_prepared(words.encode())
            return result
        if not words.startswith(("COMMIT PREPARED", "ROLLBACK PREPARED")):
            return (yield from plain())
        if words.startswith("ROLLBACK"):
            result = yield from plain()
            flow.take_prepared(words.encode())
            yield from flow.rolled_back_gen()
            return result
        flow.take_prepared(words.encode())
        flow.begins(Kind.WRITE)
        flow.alone = flow.certain = True
        try:
            result = yield from plain()
        except BaseException as error:
            flow.failed(Kind.END_PREPARED, error)  # it may be prepared still, and be committed later
            raise
        yield from flow.settle_apart_gen()
        return result


class RecordingPipeline:
    """Beside a pipeline of psycopg: its end, and each Sync, has what is queued done, and may commit it (SCOPE-24).

    Whoever fetches may hear that of a commit which another scope has queued.
    """

    def _communicate_gen(self) -> Any:
        self._conn._antipode_flow.hears()  # type: ignore[attr-defined]
        return super()._communicate_gen()  # type: ignore[misc]

    def _fetch_gen(self, **options: Any) -> Any:
        self._conn._antipode_flow.hears()  # type: ignore[attr-defined]
        return super()._fetch_gen(**options)  # type: ignore[misc]

    def _sync_gen(self) -> Any:
        self._conn._antipode_flow.executes()  # type: ignore[attr-defined]
        return super()._sync_gen()  # type: ignore[misc]

    def _exit_gen(self) -> Any:
        self._conn._antipode_flow.executes()  # type: ignore[attr-defined]
        return super()._exit_gen()  # type: ignore[misc]


class RecordingBaseCursor:
    """Beside a cursor of psycopg: statements that may write are pending, and settled where their transaction ends."""

    __slots__ = ()
    if TYPE_CHECKING:
        _query: Any

    @property
    def _antipode_flow(self) -> Flow:
        flow: Flow = self._conn._antipode_flow  # type: ignore[attr-defined]
        return flow

    def _start_query(self, query: Any = None) -> Any:
        self._conn._antipode_flow.announced = True  # type: ignore[attr-defined]
        return super()._start_query(query)  # type: ignore[misc]

    def _execute_send(self, query: Any, **options: Any) -> None:
        flow = self._antipode_flow
        if flow.binding.records:
            flow.begins(flow.binding.kind_of(query.query), query.query)
        super()._execute_send(query, **options)  # type: ignore[misc]
        flow.has_snapshot = True

    def _declare_gen(self, *args: Any, **options: Any) -> Any:
        yield from super()._declare_gen(*args, **options)  # type: ignore[misc]
        self._antipode_flow.known.moments.opened(self.name)  # type: ignore[attr-defined]

    def _start_copy_gen(self, statement: Any, params: Any = None) -> Any:
        flow = self._antipode_flow
        if flow.binding.rests and flow.binding.records:
            flow.announced = True  # `copy` has waited for what it reads
            yield from self._conn._start_query()  # type: ignore[attr-defined]
            yield from flow.beside_gen(None)
        yield from super()._start_copy_gen(statement, params)  # type: ignore[misc]

    def _maybe_prepare_gen(self, pgq: Any, *, prepare: bool | None = None, binary: bool | None = None) -> Any:
        flow: Flow = self._conn._antipode_flow  # type: ignore[attr-defined]
        if not flow.binding.records:
            yield from super()._maybe_prepare_gen(pgq, prepare=prepare, binary=binary)  # type: ignore[misc]
            return
        kind = flow.binding.kind_of(pgq.query)
        piped = self._conn._pipeline is not None  # type: ignore[attr-defined]
        status = flow.pgconn.transaction_status
        if status == IDLE:
            if kind is _WRITE and not piped:
                is_client = isinstance(self, ClientCursorMixin)  # its parameters are in its text already
                if not is_client or self._antipode_format(binary) != _BINARY:  # which it refuses
                    flow.begins_alone()
                    yield from self._antipode_alone(flow, pgq, prepare, binary, is_client)
                    return
            flow.has_snapshot = False
        if kind is Kind.COMMIT and not piped and status == INTRANS and flow.known.holder(flow).write is not None:
            self._query = pgq
            yield from self._antipode_commit_text(flow.known.holder(flow))
            return
        if kind is Kind.END_PREPARED:
            flow.take_prepared(pgq.query)
        flow.begins(kind, pgq.query)
        had_snapshot = flow.has_snapshot
        if flow.binding.rests and kind in (Kind.WRITE, Kind.MAYBE):
            yield from self._antipode_beside(flow)
        try:
            yield from super()._maybe_prepare_gen(pgq, prepare=prepare, binary=binary)  # type: ignore[misc]
        except BaseException as error:
            flow.failed(kind, error)
            yield from flow.reset_gen()
            raise
        if flow.in_session:
            yield from flow.reset_gen()
        if kind is not _WRITE:
            flow.may_set(kind)
            flow.known.moments.executed(pgq.query)
        flow.has_snapshot = had_snapshot or kind not in _NO_QUERY or not takes_no_snapshot(pgq.query)
        if piped or flow.write is None or flow.pgconn.transaction_status != IDLE:
            return
        if kind is Kind.PREPARE:
            flow.keep_prepared(pgq.query)
        elif kind is Kind.ROLLBACK or kind is Kind.COMMIT:
            yield from flow.rolled_back_gen()  # a COMMIT of a transaction in error rolls it back
        else:
            yield from flow.settle_apart_gen()

    def _antipode_beside(self, flow: Flow) -> Any:
        try:
            yield from flow.beside_gen(self._conn._pipeline)  # type: ignore[attr-defined]
        except BaseException as error:
            flow.failed(Kind.WRITE, error)  # the statement itself was not sent
            yield from flow.reset_gen()
            raise

    def _antipode_commit_text(self, flow: Flow) -> Any:
        """A COMMIT that the application sends as a statement."""
        flow.executes()
        result = yield from flow.commit_gen()
        self._check_results([result])  # type: ignore[attr-defined]
        self._set_results([result])  # type: ignore[attr-defined]

    def _antipode_format(self, binary: bool | None) -> pq.Format:
        chosen: pq.Format = self.format if binary is None else _BINARY if binary else _TEXT  # type: ignore[attr-defined]
        return chosen

    def _antipode_alone(self, flow: Flow, pgq: Any, prepare: bool | None, binary: bool | None, is_client: bool) -> Any:
        """One write in autocommit mode."""
        prepared = self._conn._prepared  # type: ignore[attr-defined]
        prep, name = self._get_prepared(pgq, prepare)  # type: ignore[attr-defined]
        self._query = pgq
        if prep is _SHOULD:
            # psycopg itself sends this apart, once for a statement.
            self._send_prepare(name, pgq)  # type: ignore[attr-defined]
            yield from self._antipode_prepared(flow)
        chosen = self._antipode_format(binary)
        if is_client:
            send = partial(flow.pgconn.send_query_params, pgq.query, None)
        elif prep is _NO:
            send = partial(flow.pgconn.send_query_params, pgq.query, pgq.params, pgq.types, pgq.formats, chosen)
        else:
            send = partial(flow.pgconn.send_query_prepared, name, pgq.params, pgq.formats, chosen)
        key = prepared.maybe_add_to_cache(pgq, prep, name)
        results = yield from flow.alone_gen(send)
        if key is not None:
            prepared.validate(key, prep, name, results)
        self._check_results(results)  # type: ignore[attr-defined]
        self._set_results(results)  # type: ignore[attr-defined]

    def _antipode_prepared(self, flow: Flow) -> Any:
        from psycopg import generators
        from psycopg.errors import error_from_result

        try:
            results = yield from generators.execute(flow.pgconn)
        except BaseException as error:
            flow.failed(Kind.WRITE, error)
            raise
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                flow.rolled_back()
                raise error_from_result(result, encoding=flow.pgconn._encoding)

    def _antipode_fetching(self) -> FetchedResult:
        """What is about to be sent, and read in parts."""
        flow = self._antipode_flow
        return FetchedResult(flow, flow.known.moments.proved)

    def _antipode_copied(self, copy: Any) -> Any:
        """A COPY whose rows are of the moment at which it began."""
        fetching = self._antipode_fetching()
        read, end = copy._read_gen, copy._end_copy_out_gen

        def read_gen() -> Any:
            fetching.goes_on()
            return read()

        def end_gen() -> Any:
            copy._read_gen = read  # what is left is thrown away
            return end()

        def joined(plain: Any) -> Any:
            """Return a method that is also of whoever calls it: he writes, or commits it by its end (SCOPE-24)."""

            @wraps(plain)
            def call(*args: Any) -> Any:
                self._antipode_flow.hears()
                return plain(*args)

            return call

        copy._read_gen, copy._end_copy_out_gen = read_gen, end_gen
        copy._write, copy.finish = joined(copy._write), joined(copy.finish)
        return copy

    def _antipode_settled(self) -> Any:
        """After what takes several messages (COPY, executemany, a stream): the position, if it is over."""
        flow = self._antipode_flow
        if self._conn._pipeline is None:  # type: ignore[attr-defined]
            yield from flow.reset_gen()
            yield from flow.settle_apart_gen()


recorded: Final[dict[type[Any], type[Any]]] = {}
"""A client's own class -> the recording one that was made for it."""


def recording_class(plain: type[Any], mixin: type[Any], slots: tuple[str, ...] = ()) -> type[Any]:
    """The recording class for a connection's or cursor's own class, which it stays an instance of."""
    found = recorded.get(plain)
    if found is None:
        found = type(plain.__name__, (mixin, plain), {"__module__": plain.__module__, "__slots__": slots})
        recorded[plain] = found
    return found


__all__ = ["RecordingBaseConnection", "RecordingBaseCursor", "asked", "recorded", "recording_class"]
