"""Publishing: the lineage goes into a copy of the message's headers; with `track` the message is a write of its own."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from antipode import EMPTY, ConfigurationError, Opaque, WriteId, current_scope
from antipode.messages import HEADER, JMS_HEADER
from antipode.shim import OpenQuestion, Purpose, Write, display, events, logs, outgoing_text, trust_settings
from antipode.shim.queue_messages import carried_lineages, text_to_send
from pika.exceptions import ChannelWrongStateError, ConnectionWrongStateError, UnroutableError
from pika.spec import BasicProperties

from antipode_rabbitmq.answers import place_of, questions, text_of
from antipode_rabbitmq.marks import MARK_HEADER
from antipode_rabbitmq.options import ChannelOptions, headers_of
from antipode_rabbitmq.transaction import Transaction

_NOT_SENT: Final = (UnroutableError, ChannelWrongStateError, ConnectionWrongStateError)
_FRAME_OVERHEAD: Final = 7 + 1 + 2 + 2 + 8
"""What a content header frame has around its properties: 7 bytes before its payload and 1 behind it, and in the payload
the class, the weight and the body's length. So what the application can send is never taken for too long without us."""


_MARK: Final = re.compile("[0-9a-f]{32}")
_MESSAGE_ID: Final = 33
"""aio-pika gives each message without a `message_id` one of its own as it is sent: a UUID and its length."""


def publish(
    options: ChannelOptions,
    send: Callable[..., Any],
    frame_max: int,
    *,
    exchange: str,
    routing_key: str,
    body: Any,
    properties: Any,
    mandatory: bool,
    transaction: Transaction | None = None,
    channel: Any = None,
) -> Any:
    """Publishes by `send`, pika's own method. The caller's properties stay as they are.

    In a transaction the message is pending until the commit (SHIM-11).
    """
    outgoing = Outgoing(options, properties, exchange, routing_key, frame_max, channel)
    outgoing.begin()
    try:
        result = send(exchange, routing_key, body, outgoing.properties, mandatory)
    except BaseException as error:
        outgoing.failed(not_sent=isinstance(error, _NOT_SENT))  # no queue has it, or it never left
        raise
    outgoing.done(transaction)
    return result


class Outgoing:
    """One message on its way; where it is tracked, a write.

    `properties` are those of the message as it leaves: pika's, or a message of aio-pika, which has the same names.
    """

    __slots__ = ("_asking", "_channel", "_key", "_store", "_version", "_write", "properties")

    def __init__(
        self,
        options: ChannelOptions,
        properties: Any,
        exchange: str,
        routing_key: str,
        frame_max: int,
        channel: Any = None,
    ) -> None:
        self._channel = channel
        self._asking: OpenQuestion | None = None
        self._store = options.store
        self._write: Write | None = None
        self._version: Opaque | None = None
        if (
            not options.track or not self._store.records
        ):  # with mode=off what came in is passed on, nothing added (PROP-26)
            self.properties = _stamped(options, _without_mark(properties), None, frame_max, exchange)
            return
        mark, properties = _with_mark(properties)
        self._key = str(exchange or routing_key or self._store.name)
        self._version = Opaque(mark)
        own = self._store.write_id(self._key, self._version)
        self.properties = _stamped(options, properties, own, frame_max, exchange)

    def begin(self) -> None:
        """It is sent now."""
        if getattr(self.properties, "reply_to", None) and self._store.records:
            place = place_of(self._channel, self.properties.reply_to)
            self._asking = questions.ask(place, text_of(self.properties.correlation_id))
        if self._version is not None:
            self._write = self._store.begin(self._key)

    def failed(self, *, not_sent: bool) -> None:
        """It was not sent, or nobody knows."""
        if self._asking is not None:
            self._asking.failed(not_sent=not_sent)
        if self._write is None:
            return
        if not_sent:
            self._write.abandon()
        else:
            self._write.outcome_unknown()

    def done(self, transaction: Transaction | None) -> None:
        """It was handed to the broker; in a transaction it is pending until the commit (SHIM-11)."""
        if self._asking is not None:
            self._asking.sent()
        if self._write is None or self._version is None:
            return
        if transaction is None:
            self._write.record(self._version)
        else:
            transaction.add(self._write, self._version)


def _with_mark(properties: Any) -> tuple[str, Any]:
    """A mark that no other message has, and a copy of the properties that carries it.

    It is the `message_id` where the application gives none. One that the application gives may be used again for
    another message, whose arrival would then prove this one: such a message carries a header of ours instead.
    """
    mark = uuid4().hex
    properties = _copy(properties)
    headers = dict(headers_of(properties))
    if properties.message_id is None:
        properties.message_id = mark
        headers.pop(MARK_HEADER, None)  # came along with properties of another message
    else:
        headers[MARK_HEADER] = mark
    properties.headers = headers or None
    return mark, properties


def _without_mark(properties: Any) -> Any:
    """Return the properties without another message's mark, whose arrival this one would prove (PROP-37).

    A `message_id` is a mark where the lineage that came with it, or the scope's, names it.
    """
    headers = headers_of(properties)
    mark = getattr(properties, "message_id", None)
    is_mark = False
    if isinstance(mark, str) and _MARK.fullmatch(mark):
        scope = current_scope()
        texts = [str(text) for text in carried_lineages(headers).values()]
        if scope is not None:
            texts.append(scope.recorded_lineage.serialize())
        is_mark = any(mark in text for text in texts)
    if not is_mark and MARK_HEADER not in headers:
        return properties
    properties = _copy(properties)
    properties.headers = {name: value for name, value in headers.items() if name != MARK_HEADER}
    if is_mark:
        properties.message_id = None
    return properties


def _stamped(options: ChannelOptions, properties: Any, own: WriteId | None, frame_max: int, exchange: str) -> Any:
    """The properties as they leave: the same object where there is nothing to change, else a copy."""
    headers = headers_of(properties)
    carried = carried_lineages(headers) if HEADER in headers or JMS_HEADER in headers else {}
    if headers.get(HEADER) is not None and HEADER not in carried:
        logs.warn(
            f"foreign header {options.store.name}",
            f"a message to {options.store.name} has a header {HEADER} that is no lineage; it is left as it is, so the "
            "message carries no lineage. Give the application's header another name.",
            code="AP405",
        )
        return properties
    text = text_to_send(options, carried, own, shared=_shared(exchange, headers))
    if text is None and not carried:
        return properties
    rest = {name: value for name, value in headers.items() if name not in carried}
    stamped = _copy(properties)
    if text is None:  # what came in and was not believed must not go on either (TRUST-5)
        stamped.headers = rest
        return stamped
    stamped.headers = {**rest, HEADER: text}
    if _has_room(stamped, frame_max):
        return stamped
    return _no_room(options, properties, stamped, rest, frame_max)


def _shared(exchange: str, headers: Mapping[str, Any]) -> str:
    """Return the place that may give a message to several queues; nothing for the default exchange (BRANCH-28)."""
    if exchange:
        return f"exchange {display.shown(exchange)}"
    return "the queues of CC and BCC" if headers.keys() & {"CC", "BCC"} else ""


def _copy(properties: Any) -> Any:
    """Properties of the caller's class with the same values; the headers are still the caller's."""
    if properties is None:
        return BasicProperties()
    if type(properties) is not BasicProperties:
        return copy.copy(properties)
    made: Any = object.__new__(BasicProperties)  # what copy.copy does, at a fifth of the time
    made.__dict__.update(properties.__dict__)
    return made


def _has_room(properties: Any, frame_max: int) -> bool:
    """Whether the properties fit into one frame, as AMQP wants: a broker closes the connection over a longer one."""
    if frame_max <= 0:
        return True
    least = 4096
    for name, value in properties.headers.items():
        least += 4 * (_most_bytes(name) + _most_bytes(value))
    if least < frame_max:
        return True
    try:
        return _encoded_size(properties) + _FRAME_OVERHEAD <= frame_max
    except Exception:  # the application's own values: pika says so when it sends them
        return True


def _encoded_size(properties: Any) -> int:
    if isinstance(properties, BasicProperties):
        return sum(len(piece) for piece in properties.encode())
    own = 0 if properties.message_id else _MESSAGE_ID
    return len(properties.properties.marshal()) + own


def _most_bytes(value: object) -> int:
    """A quarter of the most bytes that a header's name or value takes; nested ones are encoded to know."""
    if isinstance(value, str | bytes):
        return len(value) + 4
    return 1 << 30 if isinstance(value, dict | list) else 8


def _no_room(options: ChannelOptions, properties: Any, stamped: Any, rest: dict[Any, Any], frame_max: int) -> Any:
    """The lineage would make the header frame too long: it is left out, and said so, before anything is sent."""
    plain = BasicProperties() if properties is None else properties
    if plain.headers and not _has_room(plain, frame_max):
        return properties  # too long without us: the broker's own answer
    words = (
        f"a message to {options.store.name} has no room for its lineage: its headers fill a frame of {frame_max} bytes"
    )
    if options.on_no_room == "raise":
        raise ConfigurationError(
            f'{words}. Put less into its headers, raise frame_max, or say on_no_room="send".', code="AP510"
        )
    events.on_lineage_incomplete("budget", options.store.name)
    logs.warn(f"no room {options.store.name}", f"{words}; it is sent without. Put less into its headers.", code="AP510")
    # Where there is room for that much, what was lost does not look empty.
    lost = outgoing_text(EMPTY.marked_incomplete().serialize(), trust_settings(), Purpose.MESSAGE)
    stamped.headers = {**rest, HEADER: lost}
    if not _has_room(stamped, frame_max):
        stamped.headers = rest
    return stamped
