"""Messages of aio-pika: each is handled in a scope of its own, and may go back to its queue after a delay."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import aio_pika.abc
from aio_pika.message import IncomingMessage, ProcessContext
from antipode import Redeliver, Scope
from antipode.shim.queue_messages import (
    MessageDelivery,
    delivered,
    redeliver_of,
    refuse_acknowledgement,
    say_redelivery,
)

from antipode_rabbitmq.answers import came
from antipode_rabbitmq.consuming import delivery_of, note
from antipode_rabbitmq.options import headers_of

if TYPE_CHECKING:
    from antipode_rabbitmq.aio import AioWrapping

_log: Final = logging.getLogger("antipode")
_SETTLED: Final = "it has been acknowledged or rejected already"
_open: Final[dict[int, tuple[Any, MessageDelivery]]] = {}
"""By the message's identity: messages whose scopes are open, and their deliveries."""


class CarryingMessage(IncomingMessage):
    """A message whose settling by the application its scope learns of."""

    __slots__ = ()

    async def ack(self, multiple: bool = False) -> None:
        await self._settling(multiple=multiple)
        await super().ack(multiple)

    async def reject(self, requeue: bool = False) -> None:
        await self._settling(multiple=False)
        await super().reject(requeue)

    async def nack(self, multiple: bool = False, requeue: bool = True) -> None:
        await self._settling(multiple=multiple)
        await super().nack(multiple, requeue)

    def process(
        self, requeue: bool = False, reject_on_redelivered: bool = False, ignore_processed: bool = False
    ) -> Any:
        return _Process(
            self,
            requeue=requeue,
            reject_on_redelivered=reject_on_redelivered,
            ignore_processed=ignore_processed,
        )

    async def _settling(self, *, multiple: bool) -> None:
        if self.processed:
            return  # nothing is sent: the client raises
        _, own = _open.get(id(self), (None, None))
        if own is not None:
            own.settle(_SETTLED)
        if not multiple:
            return
        channel, up_to = _channel_of(self), self.delivery_tag or 0
        for message, delivery in list(_open.values()):
            if _is_along(message, channel, up_to):
                delivery.settle(_SETTLED)
        for waiting in list(_waitings):  # those that wait to go back would be acknowledged along: they go first
            await waiting.flush(channel, up_to)


class ReturningMessage(CarryingMessage):
    """A message that goes back to its queue, or has: settled for good, it would be lost (PROP-36)."""

    __slots__ = ()

    async def ack(self, multiple: bool = False) -> None:
        raise refuse_acknowledgement("RabbitMQ")

    async def reject(self, requeue: bool = False) -> None:
        if not requeue:
            raise refuse_acknowledgement("RabbitMQ")
        await super().reject(requeue)

    async def nack(self, multiple: bool = False, requeue: bool = True) -> None:
        if not requeue:
            raise refuse_acknowledgement("RabbitMQ")
        await super().nack(multiple, requeue)


def _channel_of(message: Any) -> Any:
    """The channel that a message came by, also when it has ended."""
    return message._IncomingMessage__channel


def _is_along(message: Any, channel: Any, up_to: int) -> bool:
    """Whether a message is settled along with those of a channel before a delivery tag (0: all of them)."""
    return _channel_of(message) is channel and (not up_to or (message.delivery_tag or 0) < up_to)


class _Process(ProcessContext):
    """aio-pika's own, but that a message which is to go back is not rejected: it would be dropped."""

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(self.message, ReturningMessage):
            return  # its scope stands inside of this block, and has ended
        _, delivery = _open.get(id(self.message), (None, None))
        if redeliver_of(error) is not None and delivery is not None and delivery.can_redeliver:
            return
        await super().__aexit__(kind, error, trace)


class ReturnQueue:
    """A channel's messages that wait to go back; should it end meanwhile, the broker gives them back itself."""

    def __init__(self) -> None:
        self._timers: dict[int, tuple[Any, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, message: Any, delay: float) -> None:
        """Gives a message back after so many seconds, in the running loop."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(delay, 0.0), lambda: self._start(loop, message))
        self._timers[id(message)] = (message, timer)
        _waitings.add(self)

    def _start(self, loop: asyncio.AbstractEventLoop, message: Any) -> None:
        task = loop.create_task(self._return(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _return(self, message: Any) -> None:
        if self._timers.pop(id(message), None) is None:
            return
        if not self._timers:
            _waitings.discard(self)
        try:
            await IncomingMessage.nack(message, requeue=True)
        except Exception as error:  # the channel has ended, or the application has settled it in the meantime
            _log.debug("a message did not go back by itself: %s", error)

    async def flush(self, channel: Any, up_to: int) -> None:
        """Gives back at once what waits of a channel, up to a delivery tag (0: all)."""
        for message, timer in list(self._timers.values()):
            if _is_along(message, channel, up_to):
                timer.cancel()
                await self._return(message)


_waitings: Final[set[ReturnQueue]] = set()
"""Those with messages that wait."""


def callback_of(wrapping: AioWrapping, callback: Any, queue: str, *, no_ack: bool) -> Any:
    """A consumer's callback that runs in its message's scope."""
    hands_on = isinstance(getattr(callback, "__self__", None), aio_pika.abc.AbstractQueueIterator)  # an iterator's own
    if not callable(callback) or getattr(callback, "_antipode", False):  # ours, at a reconnection
        return callback

    @functools.wraps(callback)
    async def on_message(message: Any) -> Any:
        came(wrapping.options, wrapping.plain, queue, message)
        with nullcontext() if hands_on else scope_of_message(wrapping, message, no_ack=no_ack):
            result = callback(message)
            return await result if inspect.isawaitable(result) else result

    made: Callable[[Any], Coroutine[Any, Any, Any]] = on_message
    made._antipode = True  # type: ignore[attr-defined]
    return made


@contextmanager
def scope_of_message(wrapping: AioWrapping, message: Any, *, no_ack: bool = False) -> Iterator[Scope]:
    """The scope of one message of a wrapped channel. Redeliver out of the block gives the message back."""
    options, headers = wrapping.options, headers_of(message)
    delivery = delivery_of(headers, auto_ack=no_ack)
    if message.processed:
        delivery.settle("it has been acknowledged or rejected already, or is consumed with no_ack")
    if type(message) is IncomingMessage:
        message.__class__ = CarryingMessage
    _open[id(message)] = message, delivery

    def ended() -> None:
        if _open.get(id(message), (None, None))[1] is delivery:
            del _open[id(message)]

    def give_back(error: Redeliver) -> None:
        say_redelivery(options, error, options.redeliver_delay)
        if type(message) is CarryingMessage:
            message.__class__ = ReturningMessage
        wrapping.waiting.add(message, options.redeliver_delay)

    with delivered(options, delivery, ended=ended, give_back=give_back) as scope:
        note(options, wrapping.arrived, scope, headers, message)
        yield scope
