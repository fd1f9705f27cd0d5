"""Channels of aio-pika: of the same class as the plain one, with its state, and with messages that carry the lineage.

A wrapped channel shares the plain one's `__dict__`; exchanges and queues that are declared or asked for through it
publish and consume with lineages, and are restored with the connection as aio-pika's own. Nothing here is imported
where the application has no aio-pika.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import aio_pika.abc
import aio_pika.exceptions
import aiormq.abc
import pika
from aio_pika.channel import Channel
from aio_pika.transaction import Transaction as PlainTransaction
from antipode.shim import refuse_making

from antipode_rabbitmq import aio_consuming
from antipode_rabbitmq.answers import came, consuming
from antipode_rabbitmq.options import ChannelOptions
from antipode_rabbitmq.publishing import Outgoing
from antipode_rabbitmq.transaction import Transaction


class AioWrapping:
    """What is ours in a wrapped channel."""

    __slots__ = ("arrived", "default_exchange", "options", "plain", "transaction", "waiting")

    def __init__(self, plain: Any, options: ChannelOptions, arrived: Callable[[str], None]) -> None:
        self.plain = plain
        """Kept: aio-pika ends what belongs to a channel when nobody holds it any more."""
        self.options = options
        self.arrived = arrived
        """Takes the mark of a tracked message of this store that came by this channel."""
        self.transaction: Transaction | None = None
        self.waiting = aio_consuming.ReturnQueue()
        self.default_exchange: Any = None

    @property
    def frame_max(self) -> int:
        """The longest frame that was agreed with the broker, in bytes; 0 for no limit."""
        underlay = getattr(self.plain, "_channel", None)
        connection = getattr(getattr(underlay, "channel", None), "connection", None)
        return int(getattr(getattr(connection, "connection_tune", None), "frame_max", 0) or 0)


def is_aio(channel: object) -> bool:
    """Whether this is a channel of aio-pika."""
    return isinstance(channel, aio_pika.abc.AbstractChannel)


def plain_of(channel: Any) -> Any:
    """The plain channel behind a wrapped one; a plain one itself. Raises TypeError for what cannot be wrapped."""
    wrapping = getattr(channel, "_antipode", None)
    if isinstance(wrapping, AioWrapping):
        return wrapping.plain
    if not isinstance(channel, Channel):
        raise TypeError(f"wrap() takes a channel of aio-pika's own: await connection.channel(), not {type(channel)}")
    return channel


def parameters_of(plain: Any) -> Any:
    """pika's connection parameters of the broker that a channel is connected to."""
    return pika.URLParameters(str(plain._connection.url.with_query(None)))


def wrapped(plain: Any, options: ChannelOptions, arrived: Callable[[str], None]) -> Any:
    """A channel of the same class that shares the plain one's state."""
    channel: Any = object.__new__(_channel_class(cast("Any", type(plain))))
    channel.__dict__ = plain.__dict__
    channel._antipode = AioWrapping(plain, options, arrived)
    return channel


class _CarryingChannel:
    __slots__ = ()
    _antipode: AioWrapping

    def __del__(self) -> None:
        """Nothing: the plain channel ends what both of them share."""

    @property
    def default_exchange(self) -> Any:
        """The broker's default exchange; its messages carry the lineage, too."""
        wrapping = self._antipode
        if wrapping.default_exchange is None:
            plain = self.__dict__["default_exchange"]
            wrapping.default_exchange = _like(plain, _exchange_class(cast("Any", type(plain))), self)
        return wrapping.default_exchange

    @default_exchange.setter
    def default_exchange(self, exchange: Any) -> None:
        self.__dict__["default_exchange"] = exchange

    async def declare_exchange(self, *args: Any, **kw: Any) -> Any:
        found = await super().declare_exchange(*args, **kw)  # type: ignore[misc]
        return (
            found
            if isinstance(found, _CarryingExchange)
            else _like(found, _exchange_class(cast("Any", type(found))), self)
        )

    async def declare_queue(self, *args: Any, **kw: Any) -> Any:
        found = await super().declare_queue(*args, **kw)  # type: ignore[misc]
        return (
            found if isinstance(found, _CarryingQueue) else _like(found, _queue_class(cast("Any", type(found))), self)
        )

    def transaction(self) -> Any:
        super().transaction()  # type: ignore[misc]  # refuses a channel with confirmations
        return _CarryingTransaction(self)


def _like(found: Any, cls: type[Any], channel: Any) -> Any:
    """An exchange or queue like one that the plain channel has declared, for the wrapped channel."""
    wanted = inspect.signature(cls.__init__).parameters
    given = {name: getattr(found, name) for name in wanted if name not in ("self", "channel") and hasattr(found, name)}
    if "type" in wanted:
        given["type"] = getattr(found, "_type", None) or found.type
    return cls(channel=channel, **given)


class _CarryingExchange:
    """Put before an exchange's own class."""

    channel: Any
    name: str

    async def publish(self, message: Any, routing_key: str, *, mandatory: bool = True, **kw: Any) -> Any:
        wrapping: AioWrapping = self.channel._antipode
        outgoing = Outgoing(wrapping.options, message, self.name, routing_key, wrapping.frame_max, wrapping.plain)
        closed = self.channel.is_closed
        outgoing.begin()
        try:
            result = await super().publish(  # type: ignore[misc]
                outgoing.properties, routing_key, mandatory=mandatory, **kw
            )
        except BaseException as error:
            not_sent = closed or isinstance(error, aio_pika.exceptions.PublishError | ValueError)
            outgoing.failed(not_sent=not_sent)
            raise
        if isinstance(result, aiormq.abc.DeliveredMessage):  # it came back: no queue has it
            outgoing.failed(not_sent=True)
        else:
            outgoing.done(wrapping.transaction)
        return result


class _CarryingQueue:
    """Put before a queue's own class."""

    __slots__ = ()
    channel: Any
    name: str

    async def consume(self, callback: Any, no_ack: bool = False, *args: Any, **kw: Any) -> Any:
        consuming(self.channel._antipode.plain, self.name)
        return await super().consume(  # type: ignore[misc]
            aio_consuming.callback_of(self.channel._antipode, callback, self.name, no_ack=no_ack), no_ack, *args, **kw
        )

    async def get(self, *args: Any, **kw: Any) -> Any:
        wrapping: AioWrapping = self.channel._antipode
        consuming(wrapping.plain, self.name)
        message = await super().get(*args, **kw)  # type: ignore[misc]
        if message is not None:
            came(wrapping.options, wrapping.plain, self.name, message)
        return message


class _CarryingTransaction(PlainTransaction):
    """What was published in it counts when it is committed, or never (SHIM-11)."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel)
        self._wrapping: AioWrapping = channel._antipode

    async def select(self, timeout: Any = None) -> Any:
        result = await super().select(timeout)
        self._wrapping.transaction = self._wrapping.transaction or Transaction()
        return result

    async def commit(self, timeout: Any = None) -> Any:
        transaction = self._wrapping.transaction or Transaction()
        transaction.committing()
        try:
            result = await super().commit(timeout)
        except BaseException:
            transaction.in_doubt()
            raise
        transaction.committed()
        return result

    async def rollback(self, timeout: Any = None) -> Any:
        result = await super().rollback(timeout)
        if self._wrapping.transaction is not None:
            self._wrapping.transaction.rolled_back()
        return result


@cache
def _exchange_class(cls: Any) -> Any:
    return type(f"Antipode{cls.__name__}", (_CarryingExchange, cls), {"__module__": __name__, "__doc__": cls.__doc__})


@cache
def _queue_class(cls: Any) -> Any:
    body = {"__module__": __name__, "__doc__": cls.__doc__, "__slots__": ()}
    return type(f"Antipode{cls.__name__}", (_CarryingQueue, cls), body)


@cache
def _channel_class(cls: Any) -> Any:
    body: Final[dict[str, Any]] = {
        "__module__": __name__,
        "__doc__": cls.__doc__,
        "__slots__": ("_antipode",),
        "__init__": refuse_making,
        "EXCHANGE_CLASS": _exchange_class(cls.EXCHANGE_CLASS),
        "QUEUE_CLASS": _queue_class(cls.QUEUE_CLASS),
    }
    return type(f"Antipode{cls.__name__}", (_CarryingChannel, cls), body)
