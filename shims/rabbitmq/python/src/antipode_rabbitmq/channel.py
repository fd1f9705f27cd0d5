"""The wrapped channel: of the same class as the plain one, with its state, and with messages that carry the lineage.

Both share one `__dict__`, so whatever pika notes on one is so on the other. Every public method of the wrapped channel
runs on the plain one, which is the object that pika's connection knows (some of pika's callbacks compare it); those
that concern messages pass through here first. The plain channel stays plain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import MethodType
from typing import Any, Final, cast

import pika.adapters.blocking_connection
import pika.channel
from antipode.shim import refuse_making

from antipode_rabbitmq.answers import came, consuming
from antipode_rabbitmq.consuming import callback_of
from antipode_rabbitmq.options import ChannelOptions
from antipode_rabbitmq.publishing import publish
from antipode_rabbitmq.returns import Returns
from antipode_rabbitmq.transaction import Transaction

BlockingChannel: Final = pika.adapters.blocking_connection.BlockingChannel
PlainChannel: Final = pika.channel.Channel


class ChannelState:
    """What is ours in a wrapped channel."""

    __slots__ = ("arrived", "options", "overridden", "plain", "returns", "transaction")

    def __init__(self, plain: Any, options: ChannelOptions, arrived: Callable[[str], None]) -> None:
        self.plain = plain
        self.options = options
        self.arrived = arrived
        """Takes the mark of a tracked message of this store that came by this channel."""
        self.returns = Returns(plain)
        self.transaction: Transaction | None = None
        """Since `tx_select`."""
        self.overridden: dict[str, Any] = {}
        """What others have set on the wrapped channel since, such as an instrumentation."""

    @property
    def frame_max(self) -> int:
        """The longest frame that was agreed with the broker, in bytes; 0 for no limit."""
        implementation = getattr(self.plain, "_impl", self.plain)
        return int(getattr(implementation.connection.params, "frame_max", 0) or 0)


class _Method:
    """A method of the wrapped channel. A data descriptor: what instrumentations have put on the plain channel, and so
    into the shared `__dict__`, must not hide it; it is called behind it."""

    def __init__(self, name: str, theirs: Any, ours: Callable[..., Any] | None) -> None:
        self._name = name
        self._theirs = theirs
        self._ours = ours
        self.__doc__ = getattr(theirs, "__doc__", None)

    def __get__(self, channel: Any, owner: type | None = None) -> Any:
        if channel is None:
            return self._theirs
        wrapping: ChannelState = channel._antipode
        override = wrapping.overridden.get(self._name)
        if override is not None:
            return override
        if self._ours is None:
            return getattr(wrapping.plain, self._name)
        return MethodType(self._ours, channel)

    def __set__(self, channel: Any, value: Any) -> None:
        channel._antipode.overridden[self._name] = value

    def __delete__(self, channel: Any) -> None:
        try:
            del channel._antipode.overridden[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


# What a wrapped channel does itself, by pika's names and signatures


def _basic_publish(
    self: Any, exchange: str, routing_key: str, body: Any, properties: Any = None, mandatory: bool = False
) -> Any:
    wrapping: ChannelState = self._antipode
    return publish(
        wrapping.options,
        wrapping.plain.basic_publish,
        wrapping.frame_max,
        exchange=exchange,
        routing_key=routing_key,
        body=body,
        properties=properties,
        mandatory=mandatory,
        transaction=wrapping.transaction,
        channel=wrapping.plain,
    )


def _basic_consume(
    self: Any, queue: Any, on_message_callback: Any, auto_ack: bool = False, *args: Any, **kw: Any
) -> Any:
    wrapping: ChannelState = self._antipode
    callback = on_message_callback
    if callable(callback):  # else pika says what is wrong
        callback = callback_of(wrapping, self, callback, queue, auto_ack=bool(auto_ack))
    return wrapping.plain.basic_consume(queue, callback, auto_ack, *args, **kw)


def _blocking_basic_get(self: Any, queue: Any, auto_ack: bool = False) -> Any:
    wrapping: ChannelState = self._antipode
    wrapping.returns.flush()
    consuming(wrapping.plain, queue)
    got = wrapping.plain.basic_get(queue, auto_ack)
    _handed_out(wrapping, queue, got, auto_ack=auto_ack)
    return got


def _basic_get(self: Any, queue: Any, callback: Any, auto_ack: bool = False) -> Any:
    wrapping: ChannelState = self._antipode
    if callable(callback):
        callback = callback_of(wrapping, self, callback, queue, auto_ack=bool(auto_ack))
    return wrapping.plain.basic_get(queue, callback, auto_ack)


def _consume(self: Any, queue: Any, auto_ack: bool = False, *args: Any, **kw: Any) -> Iterator[Any]:
    wrapping: ChannelState = self._antipode
    consuming(wrapping.plain, queue)
    for item in wrapping.plain.consume(queue, auto_ack, *args, **kw):
        _handed_out(wrapping, queue, item, auto_ack=auto_ack)
        yield item
        wrapping.returns.flush()


def _handed_out(wrapping: ChannelState, queue: Any, item: Any, *, auto_ack: bool) -> None:
    """The application is about to have what it pulled, if there was something."""
    method, properties, _ = item
    if method is None:
        return
    if not auto_ack:
        wrapping.returns.handed_out(method.delivery_tag)
    came(wrapping.options, wrapping.plain, queue, properties)


def _basic_ack(self: Any, delivery_tag: int = 0, multiple: bool = False) -> Any:
    wrapping: ChannelState = self._antipode
    wrapping.returns.check_acknowledgement(delivery_tag)
    tag = wrapping.returns.settling(delivery_tag, multiple=multiple)
    return None if tag is None else wrapping.plain.basic_ack(tag, multiple)


def _basic_nack(self: Any, delivery_tag: int = 0, multiple: bool = False, requeue: bool = True) -> Any:
    wrapping: ChannelState = self._antipode
    if not requeue:
        wrapping.returns.check_acknowledgement(delivery_tag)
    tag = wrapping.returns.settling(delivery_tag, multiple=multiple)
    return None if tag is None else wrapping.plain.basic_nack(tag, multiple, requeue)


def _basic_reject(self: Any, delivery_tag: int = 0, requeue: bool = True) -> Any:
    wrapping: ChannelState = self._antipode
    if not requeue:
        wrapping.returns.check_acknowledgement(delivery_tag)
    wrapping.returns.settling(delivery_tag, multiple=False)
    return wrapping.plain.basic_reject(delivery_tag, requeue)


def _basic_recover(self: Any, *args: Any, **kw: Any) -> Any:
    wrapping: ChannelState = self._antipode
    wrapping.returns.forget()
    return wrapping.plain.basic_recover(*args, **kw)


def _tx_select(self: Any, *args: Any, **kw: Any) -> Any:
    wrapping: ChannelState = self._antipode
    result = wrapping.plain.tx_select(*args, **kw)
    wrapping.transaction = wrapping.transaction or Transaction()
    return result


def _blocking_tx_commit(self: Any) -> Any:
    wrapping: ChannelState = self._antipode
    transaction = wrapping.transaction or Transaction()
    transaction.committing()
    try:
        result = wrapping.plain.tx_commit()
    except BaseException:
        transaction.in_doubt()
        raise
    transaction.committed()
    return result


def _tx_commit(self: Any, callback: Any = None) -> Any:
    wrapping: ChannelState = self._antipode
    transaction = wrapping.transaction or Transaction()
    transaction.committing()

    def committed(*args: Any) -> Any:
        transaction.committed()
        return None if callback is None else callback(*args)

    wanted = callback if callback is not None and not callable(callback) else committed  # pika says what is wrong
    return wrapping.plain.tx_commit(wanted)


def _tx_rollback(self: Any, *args: Any, **kw: Any) -> Any:
    wrapping: ChannelState = self._antipode
    result = wrapping.plain.tx_rollback(*args, **kw)
    if wrapping.transaction is not None:
        wrapping.transaction.rolled_back()
    return result


def _add_on_close_callback(self: Any, callback: Any) -> Any:
    wrapping: ChannelState = self._antipode
    if callable(callback):
        return wrapping.plain.add_on_close_callback(lambda _plain, reason: callback(self, reason))
    return wrapping.plain.add_on_close_callback(callback)


def _add_on_return_callback(self: Any, callback: Any) -> Any:
    wrapping: ChannelState = self._antipode
    if callable(callback):
        return wrapping.plain.add_on_return_callback(lambda _plain, *message: callback(self, *message))
    return wrapping.plain.add_on_return_callback(callback)


_OURS: Final[dict[str, Callable[..., Any]]] = {
    "add_on_return_callback": _add_on_return_callback,
    "basic_ack": _basic_ack,
    "basic_consume": _basic_consume,
    "basic_nack": _basic_nack,
    "basic_publish": _basic_publish,
    "basic_recover": _basic_recover,
    "basic_reject": _basic_reject,
    "tx_rollback": _tx_rollback,
    "tx_select": _tx_select,
}
_OURS_BLOCKING: Final = {
    **_OURS,
    "basic_get": _blocking_basic_get,
    "consume": _consume,
    "tx_commit": _blocking_tx_commit,
}
_OURS_ASYNC: Final = {
    **_OURS,
    "basic_get": _basic_get,
    "add_on_close_callback": _add_on_close_callback,
    "tx_commit": _tx_commit,
}


@cache
def _wrapped_class(cls: Any) -> Any:
    """The class of wrapped channels of this class: a subclass whose public methods run on the plain channel."""
    base, ours = (BlockingChannel, _OURS_BLOCKING) if issubclass(cls, BlockingChannel) else (PlainChannel, _OURS_ASYNC)
    body: dict[str, Any] = {"__slots__": ("_antipode",), "__module__": __name__, "__doc__": cls.__doc__}
    for name in dir(base):  # what a subclass of the application's adds runs on the wrapped channel itself
        attribute = inspect.getattr_static(base, name)
        if not name.startswith("_") and callable(attribute) and not isinstance(attribute, type | staticmethod):
            function: Any = ours.get(name)
            body[name] = _Method(name, getattr(cls, name), function)
    body["__init__"] = refuse_making
    return type(f"Antipode{cls.__name__}", (cls,), body)


def plain_of(channel: Any) -> Any:
    """The plain channel behind a wrapped one; a plain one itself. Raises TypeError for anything else."""
    wrapping = getattr(channel, "_antipode", None)
    if isinstance(wrapping, ChannelState):
        return wrapping.plain
    if not isinstance(channel, BlockingChannel | PlainChannel):
        raise TypeError(
            "wrap() takes a pika channel, of a BlockingConnection or an asynchronous one: "
            f"wrap(connection.channel(), store=…), not {type(channel).__name__}"
        )
    return channel


def wrapped(plain: Any, options: ChannelOptions, arrived: Callable[[str], None]) -> Any:
    """A channel of the same class that shares the plain one's state."""
    channel: Any = object.__new__(_wrapped_class(cast("Any", type(plain))))
    channel.__dict__ = plain.__dict__
    channel._antipode = ChannelState(plain, options, arrived)
    return channel
