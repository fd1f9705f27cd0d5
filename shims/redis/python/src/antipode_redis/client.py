"""The wrapped sync and asyncio clients: redis-py's own, whose writes join the scope and whose reads can wait.

The two are one text (`antipode.shim.both_ways`). A cancelled write has an unknown outcome.
"""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio
from antipode import EMPTY, Lineage
from antipode.shim.both_ways import Steps, run, run_async
from redis.client import NEVER_DECODE
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import KINDS, Kind, classify, command_name
from antipode_redis.info import QUESTION
from antipode_redis.lines import AsyncLine, Line
from antipode_redis.noting import answered, sent
from antipode_redis.pools import POOL, came_round, check_making, make
from antipode_redis.reads import ReadCall, read_call, read_steps, wait_of, wait_steps
from antipode_redis.repeating import notice
from antipode_redis.serving import (
    CALL,
    PASSED,
    HandTransaction,
    hidden,
    packed_write,
    shown,
    wire_read,
    without_lineage,
)
from antipode_redis.short import BLOCKING, MISSING, exchange, is_common, pack

_BROKEN = (RedisError, OSError)


def hear(call: Any, connection: Any) -> Steps[None]:
    """Read the answer to the question behind a write. Its failure never reaches the application."""
    try:
        call.reply = yield connection.read_response(disable_decoding=True)
    except ResponseError as error:
        call.reply = error
    except (RedisConnectionError, RedisTimeoutError, OSError):
        yield connection.disconnect()
    except BaseException:
        yield connection.disconnect()
        raise


class Recording:
    """The common part of wrapped clients and pipelines: the place where a call meets its connection."""

    _antipode: Binding | None = None
    _antipode_multi = True
    """Whether a read may stand in a MULTI of ours."""
    _antipode_run: Any = staticmethod(run)
    _antipode_line: type[Line] = Line

    def __init__(self, *args: Any, **options: Any) -> None:
        check_making(self)
        super().__init__(*args, **options)

    def _antipode_command(self, plain: Any, args: Any, options: Any) -> Steps[Any]:
        """One command, from before its connection is known; `plain` is redis-py's own way."""
        binding = self._antipode
        kind = KINDS.get(args[0]) or classify(args)
        if kind is Kind.OTHER or binding is None:
            return (yield plain(*args, **options))
        binding.refresh()
        binding.check(args)
        if not binding.records:
            args = tuple(without_lineage(binding, args, options))
            return (yield plain(*args, **options))
        if kind is Kind.READ:
            read = read_call(binding, self, [(args, options)])
            if read is None:
                options[CALL] = hidden(binding, args) or PASSED
                return (yield plain(*args, **options))
            with read:
                options[CALL] = read if not read.is_plain else read.noticed or hidden(binding, args) or PASSED
                response = yield plain(*args, **options)
                read.check()
                read.came([response])
            return response
        if kind is Kind.TRANSACTION:
            options[CALL] = by_hand = HandTransaction(binding, command_name(args))
            response = yield plain(*args, **options)
            by_hand.check()
            return response
        options[CALL] = call = WriteCall(binding, kind is Kind.WRITE)
        call.wait = wait_of(call, args)
        if call.noted is not None:
            sent(self, call, [args])
        try:
            response = yield plain(*args, **options)
            if call.wait is not None:
                call.wait.check()
        except BaseException as error:
            call.failed(error)
            raise
        if call._open:
            if call.noted is not None:
                answered(self, call, [(args, response)])
            call.done(response)
        return response

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        return self._antipode_run(self._antipode_send(conn, command_name, args, options))

    def _antipode_plainly(self, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        return super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]

    def _antipode_send(self, conn: Any, name: Any, args: Any, options: Any) -> Steps[Any]:
        call = options.pop(CALL, None) or came_round(self._antipode, args)
        if self._antipode is not None and self._antipode.by_hand:
            self._antipode.note_queued(conn, args)
        if call is PASSED:
            return (yield self._antipode_plainly(conn, name, args, options))
        if type(call) is HandTransaction:
            return (yield from self._antipode_by_hand(call, conn, name, args, options))
        binding = call.binding
        binding.check_by_hand(args, conn)
        if type(call) is WriteCall:
            if binding.by_hand and binding.queues(conn):
                return (yield from self._antipode_queued(call, conn, name, args, options))
            if call.wait is not None:
                line = self._antipode_line(conn, binding)
                yield from wait_steps(line, call.wait, multi=self._antipode_multi)
                if call.wait.refuses():
                    return None
            if command_name(args) == "HIMPORT":
                return (yield from self._antipode_apart(call, conn, name, args, options))
            return (yield from self._antipode_write(call, conn, name, args, options))
        if type(call) is ReadCall:
            if binding.queues(conn):  # its value comes with EXEC, and MULTI has waited
                response = yield self._antipode_plainly(conn, name, args, options)
                call.mark()
                if conn not in binding.open:
                    call.alone()
                return response
            line = self._antipode_line(conn, binding)
            raw = NEVER_DECODE in options or binding.opens(args)
            value = yield from read_steps(line, call, args, raw=raw, multi=self._antipode_multi)
            if not call.is_late:
                return (yield self._antipode_parse(call, args, value, name, options))
            if call.refuses():
                return None
        else:
            notice(call, conn)
        yield conn.send_packed_command(conn.pack_command(*wire_read(binding, args)))
        return (yield from self._antipode_opened(call, conn, args, name, options))

    def _antipode_parse(self, call: Any, args: Any, value: Any, name: Any, options: Any) -> Any:
        value = shown(call.binding, args, value, options, call)
        return self.parse_response(self._antipode_line.given(value), name, **options)  # type: ignore[attr-defined]

    def _antipode_opened(self, call: Any, conn: Any, args: Any, name: Any, options: Any) -> Steps[Any]:
        """Read a reply that is not what the application is to get."""
        raw = NEVER_DECODE in options or call.binding.opens(args)
        value = yield self._antipode_line(conn, call.binding).receive(raw=raw)
        return (yield self._antipode_parse(call, args, value, name, options))

    def _antipode_write(self, call: WriteCall, conn: Any, name: Any, args: Any, options: Any) -> Steps[Any]:
        """Send a write with the question behind it: one packet, two replies."""
        call.reply = None
        asks = call.binding.may_ask
        packed = packed_write(call, conn, args, asks)
        call.reached = True
        return (yield from self._antipode_exchange(call, conn, name, args, packed, options, asks))

    def _antipode_exchange(
        self, call: WriteCall, conn: Any, name: Any, args: Any, packed: Any, options: Any, asks: bool
    ) -> Steps[Any]:
        try:
            if packed:
                yield conn.send_packed_command(packed)
            if call.binding.opens(args):
                response = yield from self._antipode_opened(call, conn, args, name, options)
            else:
                response = yield self.parse_response(conn, name, **options)  # type: ignore[attr-defined]
        except ResponseError:
            if asks and conn.is_connected:
                yield from hear(call, conn)
            raise
        except _BROKEN as error:
            call.broke(error)
            if asks:
                yield conn.disconnect()
            raise
        except Exception:  # a response callback of the application failed: the reply itself has been read
            if asks and conn.is_connected:
                yield from hear(call, conn)
            raise
        except BaseException as error:
            call.broke(error)
            yield conn.disconnect()
            raise
        if asks:
            yield from hear(call, conn)
        return response

    def _antipode_apart(self, call: WriteCall, conn: Any, name: Any, args: Any, options: Any) -> Steps[Any]:
        """Where redis-py sends more than the command: the question comes in a packet of its own."""
        call.reached = True
        try:
            response = yield self._antipode_plainly(conn, name, args, options)
        except BaseException as error:
            call.broke(error)
            raise
        yield from ask_apart(call, conn)
        return response

    # MULTI, EXEC and DISCARD sent by hand

    def _antipode_queued(self, call: WriteCall, conn: Any, name: Any, args: Any, options: Any) -> Steps[Any]:
        """A write inside such a MULTI: it is queued, and pending until EXEC, which gives its position."""
        call.deferred = True
        try:
            response = yield self._antipode_plainly(conn, name, args, options)
        except BaseException as error:
            call.deferred = False
            alone = conn not in call.binding.open
            if alone or conn.is_connected:  # else it ends with its connection
                call.broke(error)
            if alone:  # on the next one, where a script that failed may have written
                call.reached = True
            raise
        if conn not in call.binding.open:  # it was made anew within, and this was executed by itself
            call.deferred = False
            yield from ask_apart(call, conn)
        elif call.binding.open[conn] is None:
            call.binding.open[conn] = call
        else:
            call.binding.open[conn].stand_for(call)
        return response

    def _antipode_by_hand(self, by_hand: HandTransaction, conn: Any, name: Any, args: Any, options: Any) -> Steps[Any]:
        binding = by_hand.binding
        begins, queued = by_hand.name == "MULTI", binding.queues(conn)
        answers = by_hand.name == "EXEC" and (not queued or binding.answering[conn])
        wait = read_call(binding) if (begins and not queued) or answers else None
        if wait is not None and answers:
            if by_hand.is_past(wait, conn if queued else None):
                return None
        elif wait is not None:
            yield from wait_steps(self._antipode_line(conn, binding), wait, multi=self._antipode_multi)
            if wait.refuses():
                by_hand.wait = wait
                return None
        if begins and not queued:
            binding.waited[conn] = EMPTY if wait is None else Lineage(wait.ids)
            binding.answering[conn] = False
        held = by_hand.take(conn, queued=queued)
        if by_hand.name != "EXEC" or held is None:
            try:
                response = yield self._antipode_plainly(conn, name, args, options)
            finally:
                if held is not None:
                    held.abandon()
            if answers and wait is not None:  # values of reads that may have been queued elsewhere, and nothing else
                wait.mark()
                wait.end()
            if begins:
                binding.began(conn)
            wait = read_call(binding) if begins and queued else None
            if wait is not None:  # accepted: the connection was made anew within, and nothing waited on it
                wait.alone()
                by_hand.wait = wait if wait.refuses() else None
            return response
        held.deferred, held.certain = False, True
        try:
            response = yield from self._antipode_write(held, conn, name, args, options)
        except BaseException as error:
            held.failed(error)
            raise
        if response is None:
            held.abandon()
        else:
            held.done(response)
        return response


def ask_apart(call: WriteCall, connection: Any) -> Steps[None]:
    """Ask for the position in a packet of its own."""
    if not call.binding.may_ask or not connection.is_connected:
        return
    try:
        yield connection.send_packed_command([QUESTION])
    except _BROKEN:
        yield connection.disconnect()
        return
    yield from hear(call, connection)


class RecordingClient(Recording):
    """The common part of the two clients."""

    connection_pool: Any = POOL
    _antipode_plain: Any = None
    """The client that was wrapped: it closes the pool when both are gone."""

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        """As redis-py's; what is queued is pending from the first command that may write."""
        from antipode_redis.pipeline import recording_pipeline

        return recording_pipeline(super().pipeline(transaction, shard_hint), self._antipode)  # type: ignore[misc]

    def client(self) -> Any:
        """As redis-py's."""
        other: Any = make(super().client)  # type: ignore[misc]
        other._antipode = self._antipode
        return other

    def json(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().json(*args, **options))  # type: ignore[misc]

    def ft(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().ft(*args, **options))  # type: ignore[misc]

    def ts(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().ts(*args, **options))  # type: ignore[misc]

    def _antipode_module(self, module: Any) -> Any:
        """A module's commands make pipelines of their own."""
        from antipode_redis.pipeline import recording_pipeline

        plain, binding = module.pipeline, self._antipode
        module.pipeline = lambda *args, **options: recording_pipeline(plain(*args, **options), binding)
        return module

    def _antipode_let_go(self) -> None:
        """A connection shared with the plain client is let go by both."""
        plain, own = self._antipode_plain, getattr(self, "connection", None)
        if plain is not None and own is not None and plain.connection is own:
            plain.connection = None


class RecordingRedis(RecordingClient, redis.Redis):
    """A `redis.Redis` whose writes are recorded. Made by `wrap`, never by itself."""

    _antipode_short = True
    """Whether replies are parsed by redis-py's own client, so that the short way does the same."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return run(self._antipode_command(super().execute_command, args, options))

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        call, binding = options.get(CALL), self._antipode
        if (
            type(call) is WriteCall
            and binding is not None
            and binding.short
            and self._antipode_short
            and call.certain
            and call.wait is None
            and len(options) == 1
            and args[0] not in BLOCKING
            and is_common(conn)
        ):
            return self._antipode_short_write(call, conn, args)
        return run(self._antipode_send(conn, command_name, args, options))

    def _antipode_short_write(self, call: WriteCall, conn: Any, args: Any) -> Any:
        """Send a common write: fewer steps, as long as its replies are the common ones."""
        call.reply = None
        packed = pack(conn, args)
        call.reached = True
        try:
            value = exchange(call, conn, args[0], packed)
        except BaseException as error:
            call.broke(error)
            conn.disconnect()
            raise
        if value is MISSING:
            return run(self._antipode_exchange(call, conn, args[0], args, (), {}, True))
        callback = self.response_callbacks.get(args[0])  # type: ignore[no-untyped-call]
        return value if callback is None else callback(value)

    def close(self) -> None:
        """As redis-py's; a connection shared with the plain client is let go by both."""
        self._antipode_let_go()
        super().close()

    def __del__(self) -> None:
        # The pool is the plain client's, too: that one closes it, when nobody holds it any more.
        if self._antipode_plain is None:
            super().__del__()  # type: ignore[no-untyped-call]


class AsyncRecordingRedis(RecordingClient, redis.asyncio.Redis):  # type: ignore[misc]
    """A `redis.asyncio.Redis` whose writes are recorded. Made by `wrap`, never by itself."""

    _antipode_run = staticmethod(run_async)
    _antipode_line = AsyncLine

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return await run_async(self._antipode_command(super().execute_command, args, options))

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """As redis-py's; a connection shared with the plain client is let go by both."""
        self._antipode_let_go()
        await super().aclose(close_connection_pool)

    def __del__(self, *args: Any, **options: Any) -> None:
        # A connection shared with the plain client is that one's to warn about.
        plain = self._antipode_plain
        if plain is None or getattr(self, "connection", None) is not plain.connection:
            super().__del__(*args, **options)


_classes: dict[type[Any], type[Any]] = {}


def recording_class(plain: type[Any], recording: type[Any]) -> type[Any]:
    """The recording class for a client's or pipeline's own class, which it stays an instance of."""
    found = _classes.get(plain)
    if found is None:
        if plain is recording.__bases__[1]:
            found = recording
        else:
            found = type(plain.__name__, (recording, plain), {"__module__": plain.__module__})
            if recording is RecordingRedis:
                found._antipode_short = plain.parse_response is redis.Redis.parse_response
        _classes[plain] = found
    return found
