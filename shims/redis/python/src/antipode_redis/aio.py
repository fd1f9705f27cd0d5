"""The wrapped asyncio client: as `client`, with `await`. A cancelled write has an unknown outcome."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from antipode.lineage import EMPTY, Lineage
from redis._parsers import _AsyncRESP2Parser, _AsyncRESP3Parser
from redis.asyncio.client import Redis
from redis.client import NEVER_DECODE
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import KINDS, Kind, classify, command_name
from antipode_redis.info import QUESTION
from antipode_redis.noting import answered, sent
from antipode_redis.pools import POOL, came_round, check_making, make
from antipode_redis.reads import (
    Late,
    Pause,
    ReadCall,
    Receive,
    Send,
    Steps,
    WaitFor,
    read_call,
    read_steps,
    wait_of,
    wait_steps,
)
from antipode_redis.repeating import notice
from antipode_redis.serving import (
    CALL,
    PASSED,
    ByHand,
    GivenAsync,
    Hidden,
    hidden,
    packed_write,
    server_of,
    shown,
    wire_read,
    without_lineage,
)

_BROKEN = (RedisError, OSError)
_PARSERS: Final = frozenset({_AsyncRESP2Parser, _AsyncRESP3Parser})
"""Those that are written in Python, and read from the stream only what they need."""


async def hear(call: Any, connection: Any) -> None:
    """Reads the answer to the question behind a write. Its failure never reaches the application."""
    try:
        call.reply = await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        call.reply = error
    except (RedisConnectionError, RedisTimeoutError, OSError):
        await connection.disconnect()
    except BaseException:
        await connection.disconnect()
        raise


async def at_hand(connection: Any) -> bytes | None:
    """The answer, where it came with the write's own reply and lies whole in the stream's buffer.

    That is the common case, and spares the way through the parser and its timer. None, and nothing taken, in any other.
    """
    try:
        parser = connection._parser
        if connection.health_check_interval or type(parser) not in _PARSERS or parser._buffer or parser._chunks:
            return None
        reader: asyncio.StreamReader = connection._reader
        buffer: bytearray = reader._buffer  # type: ignore[attr-defined]  # redis-py's parser looks there, too
        head = buffer.find(b"\r\n", 0, 16) + 2
        if head < 3 or buffer[0] not in b"$=" or len(buffer) != head + int(buffer[1 : head - 2]) + 2:
            return None
    except (AttributeError, ValueError):
        return None
    text = await reader.read(len(buffer))  # never waits: it is there
    return text[head + 4 : -2] if text[:1] == b"=" else text[head:-2]  # RESP3 says `txt:` first


async def receive(connection: Any, step: Receive) -> Any:
    """Reads one reply. Raises Late where it is not there in time, and what redis-py raises."""
    if step.until is None:
        return await connection.read_response(disable_decoding=step.raw)
    try:
        async with asyncio.timeout(max(step.until - time.monotonic(), 0.001)) as limit:
            return await connection.read_response(disable_decoding=step.raw)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Late from error


async def drive(steps: Steps, connection: Any, binding: Binding) -> Any:
    """Does the steps of a read on one connection; returns its reply, an error reply as a value."""
    result: Any = None
    try:
        while True:
            step = steps.send(result)
            result = None
            if isinstance(step, Send):
                await connection.send_packed_command(connection.pack_commands(step.commands))
            elif isinstance(step, Receive):
                try:
                    result = await receive(connection, step)
                except ResponseError as error:
                    result = error
                except Late as late:
                    await connection.disconnect(nowait=True)
                    steps.throw(late)
            elif isinstance(step, WaitFor):
                server = server_of(binding, connection)
                if server is not None:
                    result = (await server.wait_for_async(step.lineage, step.timeout)).verdict
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
    except StopIteration as end:
        return end.value
    except BaseException:
        await connection.disconnect(nowait=True)  # replies may be on their way
        raise


class AsyncRecording:
    """What the wrapped client and its pipelines share: the place where a call meets its connection."""

    _antipode: Binding | None = None
    _antipode_multi = True
    """Whether a read may stand in a MULTI of ours."""

    def __init__(self, *args: Any, **options: Any) -> None:
        check_making(self)
        super().__init__(*args, **options)

    async def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        call = options.pop(CALL, None) or came_round(self._antipode, args)
        if self._antipode is not None and self._antipode.by_hand:
            self._antipode.note_queued(conn, args)
        if call is PASSED:
            return await super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
        if type(call) is not ByHand:
            call.binding.check_by_hand(args, conn)
        if type(call) is WriteCall:
            if conn is None or (call.binding.open and call.binding.queues(conn)):
                return await self._antipode_queued(call, conn, command_name, args, options)
            if call.wait is not None:
                await drive(wait_steps(call.wait, multi=self._antipode_multi), conn, call.binding)
                if call.wait.refuses():
                    return None
            if command_name.__class__ is str and command_name.startswith("HIMPORT"):
                return await self._antipode_apart(call, conn, command_name, args, options)
            return await self._antipode_write(call, conn, command_name, args, options)
        if type(call) is ReadCall:
            if call.binding.queues(conn):  # its value comes with EXEC, and MULTI has waited
                response = await super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
                call.mark()
                if conn not in call.binding.open:
                    call.alone()
                return response
            steps = read_steps(
                call,
                args,
                raw=NEVER_DECODE in options or call.binding.opens(args),
                multi=self._antipode_multi,
            )
            value = await drive(steps, conn, call.binding)
            if call.is_late:
                if call.refuses():
                    return None
                await conn.send_packed_command(conn.pack_command(*wire_read(call.binding, args)))
                return await self._antipode_opened(call, conn, args, command_name, options)
            return await self._antipode_parse(call, args, value, command_name, options)
        if isinstance(call, Hidden):
            notice(call, conn)
            await conn.send_packed_command(conn.pack_command(*wire_read(call.binding, args)))
            return await self._antipode_opened(call, conn, args, command_name, options)
        return await self._antipode_by_hand(call, conn, command_name, args, options)

    async def _antipode_parse(self, call: Any, args: Any, value: Any, command_name: Any, options: Any) -> Any:
        value = shown(call.binding, args, value, options, call)
        return await self.parse_response(GivenAsync(value), command_name, **options)  # type: ignore[attr-defined]

    async def _antipode_opened(self, call: Any, conn: Any, args: Any, command_name: Any, options: Any) -> Any:
        """Reads a reply that is not what the application is to get."""
        raw = NEVER_DECODE in options or call.binding.opens(args)
        try:
            value = await conn.read_response(disable_decoding=raw)
        except ResponseError as error:
            value = error
        return await self._antipode_parse(call, args, value, command_name, options)

    async def _antipode_write(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """A write with the question behind it: one packet, two replies."""
        call.reply = None
        asks = call.binding.may_ask
        packed = packed_write(call, conn, args, asks)
        call.reached = True
        try:
            await conn.send_packed_command(packed)
            if call.binding.opens(args):
                response = await self._antipode_opened(call, conn, args, command_name, options)
            else:
                response = await self.parse_response(conn, command_name, **options)  # type: ignore[attr-defined]
        except ResponseError:
            if asks and conn.is_connected:
                await hear(call, conn)
            raise
        except _BROKEN as error:
            call.broke(error)
            if asks:
                await conn.disconnect()
            raise
        except Exception:  # a response callback of the application failed: the reply itself has been read
            if asks and conn.is_connected:
                await hear(call, conn)
            raise
        except BaseException as error:
            call.broke(error)
            await conn.disconnect()
            raise
        if asks:
            call.reply = await at_hand(conn)
            if call.reply is None:
                await hear(call, conn)
        return response

    async def _antipode_apart(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """Where redis-py sends more than the command: the question comes in a packet of its own."""
        call.reached = True
        try:
            response = await super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
        except BaseException as error:
            call.broke(error)
            raise
        await ask_apart(call, conn)
        return response

    # MULTI, EXEC and DISCARD sent by hand

    async def _antipode_queued(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """A write inside such a MULTI: it is queued, and pending until EXEC, which gives its position."""
        call.deferred = True
        try:
            response = await super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
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
            await ask_apart(call, conn)
        elif call.binding.open[conn] is None:
            call.binding.open[conn] = call
        else:
            call.binding.open[conn].stand_for(call)
        return response

    async def _antipode_by_hand(self, by_hand: ByHand, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        binding = by_hand.binding
        begins, queued = by_hand.name == "MULTI", binding.queues(conn)
        answers = by_hand.name == "EXEC" and (not queued or binding.answering[conn])
        wait = read_call(binding) if (begins and not queued) or answers else None
        if wait is not None and answers:
            if by_hand.is_past(wait, conn if queued else None):
                return None
        elif wait is not None:
            await drive(wait_steps(wait, multi=self._antipode_multi), conn, binding)
            if wait.refuses():
                by_hand.wait = wait
                return None
        if begins and not queued:
            binding.waited[conn] = EMPTY if wait is None else Lineage(wait.ids)
            binding.answering[conn] = False
        held = by_hand.take(conn, queued=queued)
        if by_hand.name != "EXEC" or held is None:
            try:
                response = await super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
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
            response = await self._antipode_write(held, conn, command_name, args, options)
        except BaseException as error:
            held.failed(error)
            raise
        if response is None:
            held.abandon()
        else:
            held.done(response)
        return response


async def ask_apart(call: WriteCall, connection: Any) -> None:
    """Asks for the position in a packet of its own."""
    if not call.binding.may_ask or not connection.is_connected:
        return
    try:
        await connection.send_packed_command([QUESTION])
    except _BROKEN:
        await connection.disconnect()
        return
    await hear(call, connection)


class AsyncRecordingRedis(AsyncRecording, Redis):  # type: ignore[misc]
    """A `redis.asyncio.Redis` whose writes are recorded. Made by `wrap`, never by itself."""

    connection_pool: Any = POOL
    _antipode_plain: Any = None
    """The client that was wrapped: it closes the pool when both are gone."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        binding = self._antipode
        kind = KINDS.get(args[0])
        if kind is None:
            kind = classify(args)
        if kind is Kind.OTHER or binding is None:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        binding.refresh()
        if binding.envelopes is not None:
            binding.check(args)
        if not binding.records:
            args = tuple(without_lineage(binding, args, options))
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        if kind is Kind.READ:
            return await self._antipode_read(binding, args, options)
        if kind is Kind.TRANSACTION:
            options[CALL] = by_hand = ByHand(binding, command_name(args))
            response = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            by_hand.check()
            return response
        call = WriteCall(binding, kind is Kind.WRITE)
        options[CALL] = call
        if binding.waits or call.read:
            call.wait = wait_of(call, args)
        if call.noted is not None:
            sent(self, call, [args])
        try:
            response = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            if call.wait is not None:
                call.wait.check()
        except BaseException as error:
            call.failed(error)
            raise
        if call.noted is not None:
            answered(self, call, [(args, response)])
        call.done(response)
        return response

    async def _antipode_read(self, binding: Binding, args: Any, options: Any) -> Any:
        call = read_call(binding, self, [(args, options)])
        if call is None:
            options[CALL] = hidden(binding, args) or PASSED
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        with call:
            options[CALL] = call if not call.is_plain else call.noticed or hidden(binding, args) or PASSED
            response = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            call.check()
            call.came([response])
        return response

    # Whatever else makes clients and pipelines

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        """As redis-py's; what is queued is pending from the first command that may write."""
        from antipode_redis.aio_pipeline import recording_pipeline

        return recording_pipeline(super().pipeline(transaction, shard_hint), self._antipode)

    def client(self) -> Any:
        """As redis-py's."""
        other: Any = make(super().client)
        other._antipode = self._antipode
        return other

    def json(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().json(*args, **options))

    def ft(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().ft(*args, **options))

    def ts(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        return self._antipode_module(super().ts(*args, **options))

    def _antipode_module(self, module: Any) -> Any:
        """A module's commands make pipelines of their own."""
        from antipode_redis.aio_pipeline import recording_pipeline

        plain, binding = module.pipeline, self._antipode
        module.pipeline = lambda *args, **options: recording_pipeline(plain(*args, **options), binding)
        return module

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """As redis-py's; a connection shared with the plain client is let go by both."""
        plain = self._antipode_plain
        if plain is not None and self.connection is not None and plain.connection is self.connection:
            plain.connection = None
        await super().aclose(close_connection_pool)

    def __del__(self, *args: Any, **options: Any) -> None:
        # A connection shared with the plain client is that one's to warn about.
        plain = self._antipode_plain
        if plain is None or getattr(self, "connection", None) is not plain.connection:
            super().__del__(*args, **options)
