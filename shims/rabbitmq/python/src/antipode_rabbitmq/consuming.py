"""Consuming: one scope a message, filled from the message's own header (spec SCOPE-6, PROP-17, BAR-45)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from antipode import ConfigurationError, Mode, Redeliver, Scope, message_scope
from antipode.shim.queue_messages import MessageDelivery, delivered, note_unstamped, say_redelivery

from antipode_rabbitmq.answers import came, consuming
from antipode_rabbitmq.marks import mark_of
from antipode_rabbitmq.options import ChannelOptions, headers_of

if TYPE_CHECKING:
    from antipode_rabbitmq.channel import ChannelState

STREAM_OFFSET: Final = "x-stream-offset"
"""The header that a stream queue adds to each delivery. A stream takes no message back: it closes the connection."""


def scope_of(
    method: Any, properties: Any = None, *, channel: Any = None, auto_ack: bool = False
) -> AbstractContextManager[Scope]:
    """Opens the scope of one message for a block: for `basic_get`, `consume()` and work handed to other threads.

    method and properties: as pika gives them; of aio-pika the message alone, in a task of its loop. channel: the
    wrapped channel that the message came by; its options hold, and `barrier(on_timeout="redeliver")` inside ends the
    block, gives the message back after the delay, and goes on behind the block. auto_ack: the message was taken with
    automatic acknowledgement, so it cannot go back.

    Raises ConfigurationError for a channel that was not wrapped.
    """
    if channel is None:
        return _foreign(method, method if properties is None else properties)
    wrapping: ChannelState | None = getattr(channel, "_antipode", None)
    if wrapping is None:
        raise ConfigurationError(
            "scope_of(channel=…) takes a channel that antipode_rabbitmq.wrap() has returned", code="AP501"
        )
    if properties is None and hasattr(method, "processed"):
        from antipode_rabbitmq.aio_consuming import scope_of_message  # the application has aio-pika

        return scope_of_message(cast("Any", wrapping), method, no_ack=auto_ack)
    return message(wrapping, method, properties, auto_ack=auto_ack, own_thread=False)


@contextmanager
def _foreign(method: Any, properties: Any) -> Iterator[Scope]:
    headers = headers_of(properties)
    detail = "scope_of() was not given the channel: scope_of(method, properties, channel=…)"
    with message_scope(headers, delivery=MessageDelivery(False, detail, headers)) as scope:
        yield scope


def callback_of(
    wrapping: ChannelState, channel: Any, callback: Callable[..., Any], queue: Any, *, auto_ack: bool
) -> Callable[..., Any]:
    """A consumer's callback that runs in its message's scope, and gets the wrapped channel."""
    consuming(wrapping.plain, queue)

    @functools.wraps(callback)
    def on_message(_plain: Any, method: Any, properties: Any, body: Any) -> Any:
        if not auto_ack:
            wrapping.returns.handed_out(method.delivery_tag)
        came(wrapping.options, wrapping.plain, queue, properties)
        with message(wrapping, method, properties, auto_ack=auto_ack, own_thread=True):
            return callback(channel, method, properties, body)

    return on_message


@contextmanager
def message(
    wrapping: ChannelState, method: Any, properties: Any, *, auto_ack: bool, own_thread: bool
) -> Iterator[Scope]:
    """The scope of one message of a wrapped channel. Redeliver out of the block gives the message back."""
    options, returns, tag = wrapping.options, wrapping.returns, method.delivery_tag
    headers = headers_of(properties)
    delivery = delivery_of(headers, auto_ack=auto_ack)
    if delivery.can_redeliver:
        returns.opened(tag, delivery)

    def give_back(error: Redeliver) -> None:
        say_redelivery(options, error, options.redeliver_delay)
        returns.give_back(tag, options.redeliver_delay, own_thread=own_thread)

    with delivered(options, delivery, ended=lambda: returns.closed(delivery), give_back=give_back) as scope:
        note(options, wrapping.arrived, scope, headers, properties)
        yield scope


def delivery_of(headers: dict[Any, Any], *, auto_ack: bool) -> MessageDelivery:
    """What is known of a message that has just come."""
    if auto_ack:
        return MessageDelivery(False, "it is consumed with auto_ack, so the broker has forgotten it", headers)
    if STREAM_OFFSET in headers:
        return MessageDelivery(False, "a stream queue takes no message back", headers)
    return MessageDelivery(True, "", headers)


def note(
    options: ChannelOptions, arrived: Callable[[str], None], scope: Scope, headers: dict[Any, Any], properties: Any
) -> None:
    """What the message's coming itself proves, and what its lack of a header says."""
    store = options.store
    if store.mode is Mode.OFF:
        return
    note_unstamped(options, scope, headers)
    if scope.recorded_lineage.section_text(store.name) is not None:
        mark = mark_of(properties)
        if mark is not None:
            arrived(mark)
