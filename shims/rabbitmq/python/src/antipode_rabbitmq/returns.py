"""Messages that go back to their queue after a delay, and what the application has settled meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from antipode.shim import BoundedMap
from antipode.shim.queue_messages import MessageDelivery, refuse_acknowledgement
from pika.exceptions import AMQPError

_MOST_RETURNING: Final = 1000
_log: Final = logging.getLogger("antipode")


class Returns:
    """The open deliveries of one channel, with their delivery tags.

    A message goes back by `basic_nack(requeue=True)`, which a broker counts as a failed delivery. Until then it stays
    unacknowledged: should the channel or the process end first, the broker gives it back by itself.
    """

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self._due: dict[int, float] = {}
        self._returning: BoundedMap[int, None] = BoundedMap(_MOST_RETURNING)
        """The tags of the last messages that go back, or have: no tag comes twice on a channel."""
        self._open: dict[int, tuple[int, MessageDelivery]] = {}
        self._handed: dict[int, None] = {}
        """The tags of what the application has and has not settled."""

    def handed_out(self, tag: int) -> None:
        """The application has a message that it is to settle."""
        self._handed[tag] = None

    def opened(self, tag: int, delivery: MessageDelivery) -> None:
        """A message's scope has been opened."""
        self._open[id(delivery)] = (tag, delivery)

    def closed(self, delivery: MessageDelivery) -> None:
        """A message's scope has ended."""
        self._open.pop(id(delivery), None)

    def give_back(self, tag: int, delay: float, *, own_thread: bool) -> None:
        """Gives a message back after so many seconds; the connection does its work meanwhile.

        `own_thread`: the caller is the connection's own thread, as in a consumer's callback.
        """
        self._due[tag] = time.monotonic() + delay
        self._returning.put(tag, None)
        connection = self._plain.connection
        try:
            if own_thread:
                _later(connection, delay, lambda: self._return(tag))
            else:
                _soon(connection, lambda: _later(connection, delay, lambda: self._return(tag)))
        except AMQPError as error:
            self._ended(tag, error)

    def flush(self) -> None:
        """Gives back what is due: a pull loop may never let the connection's timers run (connection's thread)."""
        if self._due:
            now = time.monotonic()
            for tag, due in list(self._due.items()):
                if due <= now:
                    self._return(tag)

    def check_acknowledgement(self, tag: int) -> None:
        """Raise ConfigurationError for a message that goes back, or has: it would be lost (PROP-36)."""
        if tag in self._due or tag in self._returning:
            raise refuse_acknowledgement("RabbitMQ")

    def settling(self, tag: int, *, multiple: bool) -> int | None:
        """The application is about to settle messages itself: none of them may be given back any more.

        Those that still wait and would be acknowledged along with a later one go back first, at once. Returns the tag
        to settle by, None for nothing: all (tag 0) would be also the copies that have come again meanwhile.
        """
        for other, delivery in list(self._open.values()):
            if other == tag or (multiple and (other < tag or tag == 0)):
                delivery.settle("it has been acknowledged or rejected already")
        if not multiple:
            self._due.pop(tag, None)
            self._handed.pop(tag, None)
            return tag
        for other in list(self._due):
            if other < tag or tag == 0:
                self._return(other)
            elif other == tag:
                del self._due[other]
        up_to = max(self._handed, default=None) if tag == 0 and self._returning else tag
        self._handed = {other: None for other in self._handed if up_to and other > up_to}
        return up_to

    def forget(self) -> None:
        """The broker takes all unacknowledged messages back itself (`basic_recover`)."""
        self._due.clear()
        self._handed.clear()
        for _, delivery in list(self._open.values()):
            delivery.settle("the channel was recovered")

    def _return(self, tag: int) -> None:
        if self._due.pop(tag, None) is None:
            return
        self._handed.pop(tag, None)
        try:
            self._plain.basic_nack(tag, requeue=True)
        except AMQPError as error:
            self._ended(tag, error)

    def _ended(self, tag: int, error: Exception) -> None:
        self._due.pop(tag, None)
        _log.debug("the channel ended before a message went back by itself; the broker gives it back: %s", error)


def _later(connection: Any, delay: float, call: Callable[[], None]) -> None:
    """Calls in the connection's thread after a delay; BlockingConnection's own timer, or the I/O loop's."""
    timer = getattr(connection, "call_later", None) or connection.ioloop.call_later
    timer(max(delay, 0.0), call)


def _soon(connection: Any, call: Callable[[], None]) -> None:
    """Calls in the connection's thread, from any thread. pika's loops, asyncio's and Tornado's name it differently."""
    add = getattr(connection, "add_callback_threadsafe", None)
    if add is None:
        loop = connection.ioloop
        for name in ("add_callback_threadsafe", "call_soon_threadsafe", "add_callback"):
            add = getattr(loop, name, None)
            if add is not None:
                break
    assert add is not None, f"an I/O loop without a thread-safe callback: {connection!r}"
    add(call)
