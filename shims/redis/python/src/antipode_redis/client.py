"""The wrapped sync client: redis-py's own, whose writes join the scope and whose reads can wait."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import redis
from antipode.lineage import EMPTY, Lineage
from antipode.settings import settings_generation
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
    Given,
    hidden,
    packed_write,
    server_of,
    shown,
    wire_read,
    without_lineage,
)
from antipode_redis.short import BLOCKING, MISSING, exchange, is_common, pack

_BROKEN = (RedisError, OSError)
_EARLY_S = 0.01  # a socket's clock may be so much early
_OTHER, _READ, _WRITE, _TRANSACTION = Kind.OTHER, Kind.READ, Kind.WRITE, Kind.TRANSACTION


def hear(call: Any, connection: Any) -> Any:
    """Reads the answer to the question behind a write. Its failure never reaches the application."""
    try:
        call.reply = connection.read_response(disable_decoding=True)
    except ResponseError as error:
        call.reply = error
    except (RedisConnectionError, RedisTimeoutError, OSError):
        connection.disconnect()
    except BaseException:
        connection.disconnect()
        raise
    return call.reply


def at_hand(connection: Any) -> bytes | None:
    """The answer, where it came in one piece with the write's own reply and lies in the reader's buffer.

    That is the common case, and spares the way through the reader. None, and nothing taken, in any other.
    """
    if not is_common(connection):
        return None
    try:
        buffer: BytesIO = connection._parser._buffer._buffer
        start = buffer.tell()
        text = buffer.read()
        head = text.find(b"\r\n", 0, 16) + 2
        if head > 2 and text[:1] in b"$=" and len(text) == head + int(text[1 : head - 2]) + 2:
            buffer.seek(0)
            buffer.truncate()
            if connection.health_check_interval:
                connection.next_health_check = time.monotonic() + connection.health_check_interval
            return text[head + 4 : -2] if text[:1] == b"=" else text[head:-2]  # RESP3 says `txt:` first
        buffer.seek(start)
    except (AttributeError, ValueError):
        return None
    return None


def receive(connection: Any, step: Receive) -> Any:
    """Reads one reply. Raises Late where it is not there in time, and what redis-py raises."""
    if step.until is None:
        return connection.read_response(disable_decoding=step.raw)
    own = getattr(connection, "_conn", connection)  # with redis-py's client cache the client has a proxy
    sock = own._sock
    left = max(step.until - time.monotonic(), 0.001)
    sock.settimeout(min(own.socket_timeout or left, left))
    try:
        return connection.read_response(disable_decoding=step.raw)
    except (RedisTimeoutError, OSError) as error:
        if time.monotonic() < step.until - _EARLY_S:
            raise
        raise Late from error
    finally:
        if own._sock is sock:
            sock.settimeout(own.socket_timeout)


def drive(steps: Steps, connection: Any, binding: Binding) -> Any:
    """Does the steps of a read on one connection; returns its reply, an error reply as a value."""
    result: Any = None
    try:
        while True:
            step = steps.send(result)
            result = None
            if isinstance(step, Send):
                connection.send_packed_command(connection.pack_commands(step.commands))
            elif isinstance(step, Receive):
                try:
                    result = receive(connection, step)
                except ResponseError as error:
                    result = error
                except Late as late:
                    connection.disconnect()
                    steps.throw(late)
            elif isinstance(step, WaitFor):
                server = server_of(binding, connection)
                if server is not None:
                    result = server.wait_for(step.lineage, step.timeout).verdict
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
    except StopIteration as end:
        return end.value
    except BaseException:
        connection.disconnect()  # replies may be on their way
        raise


class Recording:
    """What the wrapped client and its pipelines share: the place where a call meets its connection."""

    _antipode: Binding | None = None
    _antipode_multi = True
    """Whether a read may stand in a MULTI of ours."""
    _antipode_short = False
    """Whether replies are parsed by redis-py's own client, so that the short way does the same."""

    def __init__(self, *args: Any, **options: Any) -> None:
        check_making(self)
        super().__init__(*args, **options)

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        call = options.pop(CALL, None) or came_round(self._antipode, args)
        if self._antipode is not None and self._antipode.by_hand:
            self._antipode.note_queued(conn, args)
        if call is PASSED:
            return super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
        if type(call) is WriteCall:
            binding = call.binding
            if call.wait is not None and not binding.queues(conn):
                drive(wait_steps(call.wait, multi=self._antipode_multi), conn, binding)
                if call.wait.refuses():
                    return None
            is_short = binding.short and self._antipode_short and call.certain and not options
            if is_short and args[0] not in BLOCKING and is_common(conn):
                return self._antipode_short_write(call, conn, args)
            binding.check_by_hand(args, conn)
            if binding.by_hand and binding.queues(conn):
                return self._antipode_queued(call, conn, command_name, args, options)
            if args[0] == "HIMPORT SET":
                return self._antipode_apart(call, conn, command_name, args, options)
            return self._antipode_write(call, conn, command_name, args, options)
        if type(call) is ByHand:
            return self._antipode_by_hand(call, conn, command_name, args, options)
        call.binding.check_by_hand(args, conn)
        if type(call) is ReadCall:
            if call.binding.queues(conn):  # its value comes with EXEC, and MULTI has waited
                response = super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
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
            value = drive(steps, conn, call.binding)
            if call.is_late:
                if call.refuses():
                    return None
                conn.send_packed_command(conn.pack_command(*wire_read(call.binding, args)))
                return self._antipode_opened(call, conn, args, command_name, options)
            return self._antipode_parse(call, args, value, command_name, options)
        notice(call, conn)
        conn.send_packed_command(conn.pack_command(*wire_read(call.binding, args)))
        return self._antipode_opened(call, conn, args, command_name, options)

    def _antipode_parse(self, call: Any, args: Any, value: Any, command_name: Any, options: Any) -> Any:
        value = shown(call.binding, args, value, options, call)
        return self.parse_response(Given(value), command_name, **options)  # type: ignore[attr-defined]

    def _antipode_opened(self, call: Any, conn: Any, args: Any, command_name: Any, options: Any) -> Any:
        """Reads a reply that is not what the application is to get."""
        raw = NEVER_DECODE in options or call.binding.opens(args)
        try:
            value = conn.read_response(disable_decoding=raw)
        except ResponseError as error:
            value = error
        return self._antipode_parse(call, args, value, command_name, options)

    def _antipode_write(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """A write with the question behind it: one packet, two replies."""
        call.reply = None
        asks = call.binding.may_ask
        packed = packed_write(call, conn, args, asks)
        call.reached = True
        return self._antipode_exchange(call, conn, command_name, args, packed, options, asks)

    def _antipode_short_write(self, call: WriteCall, conn: Any, args: Any) -> Any:
        """The same for a common write: fewer steps, as long as its replies are the common ones."""
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
            return self._antipode_exchange(call, conn, args[0], args, (), {}, True)
        callback = self.response_callbacks.get(args[0])  # type: ignore[attr-defined]
        return value if callback is None else callback(value)

    def _antipode_exchange(
        self, call: WriteCall, conn: Any, command_name: Any, args: Any, packed: Any, options: Any, asks: bool
    ) -> Any:
        try:
            if packed:
                conn.send_packed_command(packed)
            if call.binding.opens(args):
                response = self._antipode_opened(call, conn, args, command_name, options)
            else:
                response = self.parse_response(conn, command_name, **options)  # type: ignore[attr-defined]
        except ResponseError:
            if asks and conn.is_connected:
                hear(call, conn)
            raise
        except _BROKEN as error:
            call.broke(error)
            if asks:
                conn.disconnect()
            raise
        except Exception:  # a response callback of the application failed: the reply itself has been read
            if asks and conn.is_connected:
                hear(call, conn)
            raise
        except BaseException as error:
            call.broke(error)
            conn.disconnect()
            raise
        if asks:
            call.reply = at_hand(conn) or hear(call, conn)
        return response

    def _antipode_apart(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """Where redis-py sends more than the command: the question comes in a packet of its own."""
        call.reached = True
        try:
            response = super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
        except BaseException as error:
            call.broke(error)
            raise
        ask_apart(call, conn)
        return response

    # MULTI, EXEC and DISCARD sent by hand

    def _antipode_queued(self, call: WriteCall, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        """A write inside such a MULTI: it is queued, and pending until EXEC, which gives its position."""
        call.deferred = True
        try:
            response = super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
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
            ask_apart(call, conn)
        elif call.binding.open[conn] is None:
            call.binding.open[conn] = call
        else:
            call.binding.open[conn].stand_for(call)
        return response

    def _antipode_by_hand(self, by_hand: ByHand, conn: Any, command_name: Any, args: Any, options: Any) -> Any:
        binding = by_hand.binding
        begins, queued = by_hand.name == "MULTI", binding.queues(conn)
        answers = by_hand.name == "EXEC" and (not queued or binding.answering[conn])
        wait = read_call(binding) if (begins and not queued) or answers else None
        if wait is not None and answers:
            if by_hand.is_past(wait, conn if queued else None):
                return None
        elif wait is not None:
            drive(wait_steps(wait, multi=self._antipode_multi), conn, binding)
            if wait.refuses():
                by_hand.wait = wait
                return None
        if begins and not queued:
            binding.waited[conn] = EMPTY if wait is None else Lineage(wait.ids)
            binding.answering[conn] = False
        held = by_hand.take(conn, queued=queued)
        if by_hand.name != "EXEC" or held is None:
            try:
                response = super()._send_command_parse_response(conn, command_name, *args, **options)  # type: ignore[misc]
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
            response = self._antipode_write(held, conn, command_name, args, options)
        except BaseException as error:
            held.failed(error)
            raise
        if response is None:
            held.abandon()
        else:
            held.done(response)
        return response


def ask_apart(call: WriteCall, connection: Any) -> None:
    """Asks for the position in a packet of its own."""
    if not call.binding.may_ask or not connection.is_connected:
        return
    try:
        connection.send_packed_command([QUESTION])
    except _BROKEN:
        connection.disconnect()
        return
    hear(call, connection)


class RecordingRedis(Recording, redis.Redis):
    """A `redis.Redis` whose writes are recorded. Made by `wrap`, never by itself."""

    connection_pool: Any = POOL
    _antipode_short = True
    _antipode_plain: Any = None
    """The client that was wrapped: it closes the pool when both are gone."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's."""
        binding = self._antipode
        kind = KINDS.get(args[0])
        if kind is not _WRITE:
            if kind is None:
                kind = classify(args)
            if kind is _OTHER or binding is None:
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        elif binding is None:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        if settings_generation() != binding.generation:
            binding.refresh()
        if binding.envelopes is not None:
            binding.check(args)
        if not binding.records:
            args = tuple(without_lineage(binding, args, options))
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        if kind is _READ:
            return self._antipode_read(binding, args, options)
        if kind is _TRANSACTION:
            options[CALL] = by_hand = ByHand(binding, command_name(args))
            response = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            by_hand.check()
            return response
        options[CALL] = call = WriteCall(binding, kind is _WRITE)
        if binding.waits or call.read:
            call.wait = wait_of(call, args)
        if call.noted is not None:
            sent(self, call, [args])
        try:
            response = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
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

    def _antipode_read(self, binding: Binding, args: Any, options: Any) -> Any:
        call = read_call(binding, self, [(args, options)])
        if call is None:
            options[CALL] = hidden(binding, args) or PASSED
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        with call:
            options[CALL] = call if not call.is_plain else call.noticed or hidden(binding, args) or PASSED
            response = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            call.check()
            call.came([response])
        return response

    # Whatever else makes clients and pipelines

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        """As redis-py's; what is queued is pending from the first command that may write."""
        from antipode_redis.pipeline import recording_pipeline

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
        from antipode_redis.pipeline import recording_pipeline

        plain, binding = module.pipeline, self._antipode
        module.pipeline = lambda *args, **options: recording_pipeline(plain(*args, **options), binding)
        return module

    def close(self) -> None:
        """As redis-py's; a connection shared with the plain client is let go by both."""
        plain = self._antipode_plain
        if plain is not None and getattr(self, "connection", None) is not None and plain.connection is self.connection:
            plain.connection = None
        super().close()

    def __del__(self) -> None:
        # The pool is the plain client's, too: that one closes it, when nobody holds it any more.
        if self._antipode_plain is None:
            super().__del__()  # type: ignore[no-untyped-call]


_classes: dict[type[Any], type[Any]] = {}


def recording_class(plain: type[Any], recording: type[Any]) -> type[Any]:
    """The recording class for a client's or pipeline's own class, which it stays an instance of."""
    found = _classes.get(plain)
    if found is None:
        if plain is recording.__mro__[2]:
            found = recording
        else:
            found = type(plain.__name__, (recording, plain), {"__module__": plain.__module__})
            found._antipode_short = recording is RecordingRedis and plain.parse_response is redis.Redis.parse_response
        _classes[plain] = found
    return found
