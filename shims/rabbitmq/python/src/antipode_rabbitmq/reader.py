"""Reading a tap: one connection to a stream queue, by a thread of its own (pika's asynchronous connection).

Asynchronous because of how pika's blocking channel ends: it rejects what it has not dispatched yet, and a stream
answers a rejection by closing the connection.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pika
from antipode.shim.tap import TapRefusedError
from pika.exceptions import (
    AMQPError,
    AuthenticationError,
    ChannelClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from antipode_rabbitmq.consuming import STREAM_OFFSET
from antipode_rabbitmq.marks import mark_of
from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.tap import Tap

_log: Final = logging.getLogger("antipode")
_PREFETCH: Final = 400
_SILENT_S: Final = 0.5
"""After so long without a message the broker is asked for a sign of life."""
_FAREWELL_S: Final = 1.0


class TapReader:
    """A connection that reads a tap from where its memory ends, at first from the last messages that it remembers.

    It first asks for the stream's last chunk, because a start behind the stream's end would skip what comes until
    then: the stream may have been declared anew meanwhile. Then it reads from where the memory says. Messages that
    are read twice are the same as once.
    """

    def __init__(self, tap: Tap, memory: StreamMemory, on_arrival: Callable[[], None], timeout: float) -> None:
        self._tap = tap
        self._memory = memory
        self._on_arrival = on_arrival
        self._ready = threading.Event()
        self._answered = threading.Event()
        self._heard_at = time.monotonic()
        self._channel: Any = None
        self._closing = False
        self._unacknowledged = 0
        self._chunk = 0
        self._first = False
        self.error: Exception | None = None
        parameters = copy.copy(tap.parameters)
        parameters.connection_attempts = 1
        parameters.socket_timeout = parameters.stack_timeout = timeout
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=lambda _, error: self._fail(error),
            on_close_callback=lambda _, reason: self._fail(reason),
        )
        self._thread = threading.Thread(target=self._run, name=f"antipode-tap-{tap.queue}", daemon=True)

    # For the engine's thread

    def start(self, timeout: float) -> None:
        """Connects and begins to read. Raises TapRefusedError, or OSError where the broker is out of reach."""
        self._thread.start()
        if not self._ready.wait(timeout):
            self.close()
            raise TimeoutError(f"{self._tap.broker} did not answer within {timeout:g} s")
        if self.error is not None:
            raise self.error

    def check(self, timeout: float) -> None:
        """Returns if the broker is there; raises what `start` raises."""
        if self.error is None and time.monotonic() - self._heard_at > _SILENT_S:
            self._answered.clear()
            self._call(self._ask)
            if not self._answered.wait(timeout) and self.error is None:
                raise TimeoutError(f"{self._tap.broker} did not answer within {timeout:g} s")
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Ends it, without waiting for the broker's answer; never raises."""
        self._closing = True
        self._call(self._end)

    def join(self, timeout: float) -> bool:
        """Waits for the thread's end; whether it came."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._connection.ioloop.add_callback_threadsafe(function)
        except Exception as error:  # the loop has ended
            _log.debug("the loop of %r has ended: %s", self._tap, error)

    # In the reader's own thread

    def _run(self) -> None:
        loop = self._connection.ioloop
        try:
            loop.start()
        except Exception as error:
            self._fail(error)
        finally:
            self._fail(ConnectionError("the tap's connection has ended"))
            loop.close()

    def _fail(self, error: Any) -> None:
        if self.error is None:
            self.error = _as_error(error)
            self._ready.set()
            self._answered.set()
            if not self._closing:
                self._on_arrival()  # whoever waits asks again, and so learns of it
        self._end()

    def _end(self) -> None:
        """Closes the connection, whose end stops the loop; a broker that does not answer is not waited for long."""
        connection = self._connection
        if connection.is_open:
            connection.ioloop.call_later(_FAREWELL_S, connection.ioloop.stop)
            connection.close()
        elif not connection.is_closing:
            connection.ioloop.stop()

    def _ask(self) -> None:
        if self._channel is not None and self._channel.is_open:
            self._channel.queue_declare(self._tap.queue, passive=True, callback=self._on_answer)

    def _on_answer(self, _: Any) -> None:
        self._heard_at = time.monotonic()
        self._answered.set()

    def _on_open(self, connection: Any) -> None:
        if self._closing:
            connection.close()
        else:
            connection.channel(on_open_callback=self._on_probe_channel)

    def _on_probe_channel(self, channel: Any) -> None:
        self._use(channel)
        channel.basic_qos(prefetch_count=1)
        self._consume(channel, "last", self._on_probe)

    def _on_probe(self, channel: Any, method: Any, properties: Any, body: Any) -> None:
        """The stream's last chunk begins here; an empty stream has none, and its first message comes here, too."""
        if channel is not self._channel:
            return
        chunk = _offset(properties)
        if chunk is None:
            self._fail(TapRefusedError(f"{self._tap.queue} gives messages without {STREAM_OFFSET}: it is no stream"))
            return
        self._chunk = chunk
        self._read_from(self._memory.resume(chunk, _looks(method, properties, body)))

    def _read_from(self, offset: int) -> None:
        """Reads by a new channel; the one before is given up."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._first = True

        def read(opened: Any) -> None:
            self._use(opened)
            opened.basic_qos(prefetch_count=_PREFETCH)
            self._consume(opened, offset, self._on_message)

        self._connection.channel(on_open_callback=read)

    def _use(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_cancel_callback(lambda _: self._fail(ConnectionError(f"{self._tap.queue} went away")))

    def _consume(self, channel: Any, offset: int | str, callback: Callable[..., None]) -> None:
        channel.basic_consume(
            self._tap.queue, callback, arguments={STREAM_OFFSET: offset}, callback=lambda _: self._on_consuming()
        )

    def _on_consuming(self) -> None:
        self._heard_at = time.monotonic()
        self._ready.set()

    def _on_channel_closed(self, channel: Any, reason: Exception) -> None:
        if channel is self._channel:
            self._fail(reason)

    def _on_message(self, channel: Any, method: Any, properties: Any, body: Any) -> None:
        if channel is not self._channel:
            return
        self._heard_at = time.monotonic()
        offset, looks = _offset(properties), _looks(method, properties, body)
        if offset is not None:
            first, self._first = self._first, False
            if first and self._memory.is_elsewhere(offset, looks):
                self._read_from(self._memory.begin_anew(self._chunk))
                return
            self._memory.read(offset, looks)
        mark = mark_of(properties)
        wanted = mark is not None and self._memory.note(mark)
        self._unacknowledged += 1
        if self._unacknowledged >= _PREFETCH // 4:
            self._unacknowledged = 0
            channel.basic_ack(method.delivery_tag, multiple=True)
        if wanted:
            self._on_arrival()


def _offset(properties: Any) -> int | None:
    found = (properties.headers or {}).get(STREAM_OFFSET)
    return found if isinstance(found, int) else None


def _looks(method: Any, properties: Any, body: Any) -> int:
    """What tells a message from another one at the same offset of another stream."""
    return hash((mark_of(properties), method.routing_key, properties.timestamp, bytes(body)))


def _as_error(error: Any) -> Exception:
    """What the engine understands: an OSError is out of reach, anything else is the broker's own answer."""
    if isinstance(error, OSError | TapRefusedError):
        return error
    if isinstance(error, ChannelClosedByBroker):
        return TapRefusedError(f"{error.reply_code} {error.reply_text}")
    if isinstance(error, ProbableAuthenticationError | ProbableAccessDeniedError | AuthenticationError):
        return TapRefusedError(" ".join(str(part) for part in error.args))
    if isinstance(error, AMQPError):
        return ConnectionError(_words(error))
    return ConnectionError(f"{type(error).__name__}: {error}")


def _words(error: Any) -> str:
    """What happened: pika wraps a refused connection three times, and the outermost says nothing."""
    while True:
        inner = getattr(error, "exception", None) or (getattr(error, "exceptions", None) or [None])[-1]
        if inner is None and not str(error):
            inner = next((each for each in getattr(error, "args", ()) if isinstance(each, Exception)), None)
        if inner is None:
            return str(error) or type(error).__name__
        error = inner
