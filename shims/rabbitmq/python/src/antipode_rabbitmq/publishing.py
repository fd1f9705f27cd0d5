"""Publishing: the lineage goes into a copy of the message's headers; with `track` the message is a write of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from antipode import logs, telemetry
from antipode.errors import ConfigurationError, MalformedLineageError
from antipode.exchange import leaving
from antipode.lineage import EMPTY, Lineage
from antipode.messages import HEADER, outgoing_message, receive_text
from antipode.scope import Scope, current_scope
from antipode.seal import strip_seal
from antipode.trust import judge_message_out, outgoing_text, trust_settings
from antipode.wire import unwrap_header
from antipode.writeid import Opaque, WriteId
from pika.exceptions import ChannelWrongStateError, ConnectionWrongStateError, UnroutableError
from pika.spec import BasicProperties

from antipode_rabbitmq.delivery import MessageDelivery
from antipode_rabbitmq.marks import MARK_HEADER
from antipode_rabbitmq.options import ChannelOptions, headers_of

_NOT_SENT: Final = (UnroutableError, ChannelWrongStateError, ConnectionWrongStateError)
_FRAME_OVERHEAD: Final = 64
"""More than a content header frame has around its properties."""


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
) -> Any:
    """Publishes by `send`, pika's own method. The caller's properties stay as they are."""
    store = options.store
    if not options.track or not store.records:  # with mode=off what came in is passed on, and nothing added (PROP-26)
        return send(exchange, routing_key, body, _stamped(options, properties, None, frame_max), mandatory)
    mark, properties = _with_mark(properties)
    key = str(exchange or routing_key or store.name)
    version = Opaque(mark)
    properties = _stamped(options, properties, store.write_id(key, version), frame_max)
    write = store.begin(key)
    try:
        result = send(exchange, routing_key, body, properties, mandatory)
    except _NOT_SENT:  # no queue has it, or it never left
        write.abandon()
        raise
    except BaseException:
        write.outcome_unknown()
        raise
    write.record(version)
    return result


def _with_mark(properties: Any) -> tuple[str, Any]:
    """A mark that no other message has, and a copy of the properties that carries it.

    It is the `message_id` where the application gives none. One that the application gives may be used again for
    another message, whose arrival would then prove this one: such a message carries a header of ours instead.
    """
    mark = uuid4().hex
    properties = BasicProperties() if properties is None else copy.copy(properties)
    headers = dict(headers_of(properties))
    if properties.message_id is None:
        properties.message_id = mark
        headers.pop(MARK_HEADER, None)  # came along with properties of another message
    else:
        headers[MARK_HEADER] = mark
    properties.headers = headers or None
    return mark, properties


def _stamped(options: ChannelOptions, properties: Any, own: WriteId | None, frame_max: int) -> Any:
    """The properties as they leave: the same object where there is nothing to add, else a copy."""
    headers = headers_of(properties)
    found = headers.get(HEADER)
    if found is not None and not _is_ours(found):
        logs.warn(
            f"foreign header {options.store.name}",
            f"a message to {options.store.name} has a header {HEADER} that is no lineage; it is left as it is, so the "
            "message carries no lineage. Give the application's header another name.",
        )
        return properties
    text = _text(options, found, own)
    if text is None:
        return _without(properties) if found is not None and _is_refused(options) else properties
    stamped = BasicProperties() if properties is None else copy.copy(properties)
    stamped.headers = {**headers, HEADER: text}
    if _has_room(stamped, frame_max):
        return stamped
    return _no_room(options, properties, stamped, headers, frame_max)


def _is_refused(options: ChannelOptions) -> bool:
    return not judge_message_out(trust_settings(), options.lineage_out).accepted


def _without(properties: Any) -> Any:
    """A copy without our header: a lineage that came in must not go on to where none may go (TRUST-5)."""
    plain = copy.copy(properties)
    plain.headers = {name: value for name, value in headers_of(properties).items() if name != HEADER}
    return plain


def _is_ours(value: object) -> bool:
    """Whether a header's value is a lineage: the properties of a message that was received are published again."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str):
        return False
    try:
        for text in unwrap_header([value]):
            Lineage.deserialize(strip_seal(text))
    except MalformedLineageError:
        return False
    return True


def _text(options: ChannelOptions, found: Any, own: WriteId | None) -> str | None:
    """The header's value; None where the message carries none, or keeps the one that it has."""
    scope = current_scope()
    if scope is None and own is None:
        return None
    if own is None and (found is None or _came_with(scope, found)):
        text = outgoing_message(lineage_out=options.lineage_out, scope=scope)
    else:
        lineage = EMPTY if scope is None else leaving(scope)
        if found is not None and not _came_with(scope, found):
            lineage |= _received(options, found)
        if own is not None:
            lineage = lineage.including(own)
        text = outgoing_message(lineage_out=options.lineage_out, scope=Scope(lineage, kind="message"))
    if text is None and options.stamped and scope is not None and options.store.records and not _is_refused(options):
        return outgoing_text(EMPTY.serialize(), trust_settings())
    return text


def _came_with(scope: Scope | None, found: Any) -> bool:
    """Whether this is the header of the very message that the scope was opened for: its lineage is in the scope."""
    delivery = None if scope is None else scope.delivery
    return isinstance(delivery, MessageDelivery) and delivery.header == found


def _received(options: ChannelOptions, found: Any) -> Lineage:
    """The lineage of another message whose properties are published here, as far as it may be believed."""
    other = Scope(kind="message")
    texts = unwrap_header([found.decode("latin-1") if isinstance(found, bytes) else found])
    for text in texts:
        receive_text(other, text, lineage_in=options.lineage_in, sender=f"a message to {options.store.name}")
    return other.lineage


def _has_room(properties: Any, frame_max: int) -> bool:
    """Whether the properties fit into one frame, as AMQP wants: a broker closes the connection over a longer one."""
    if frame_max <= 0:
        return True
    least = 4 * sum(_most_bytes(name) + _most_bytes(value) for name, value in properties.headers.items())
    if least + 4096 < frame_max:
        return True
    try:
        return sum(len(piece) for piece in properties.encode()) + _FRAME_OVERHEAD <= frame_max
    except Exception:  # the application's own values: pika says so when it sends them
        return True


def _most_bytes(value: object) -> int:
    """A quarter of the most bytes that a header's name or value takes; nested ones are encoded to know."""
    if isinstance(value, str | bytes):
        return len(value) + 4
    return 1 << 30 if isinstance(value, dict | list) else 8


def _no_room(options: ChannelOptions, properties: Any, stamped: Any, headers: dict[Any, Any], frame_max: int) -> Any:
    """The lineage would make the header frame too long: it is left out, and said so, before anything is sent."""
    plain = BasicProperties() if properties is None else properties
    if headers and not _has_room(plain, frame_max):
        return properties  # too long without us: the broker's own answer
    words = (
        f"a message to {options.store.name} has no room for its lineage: its headers fill a frame of {frame_max} bytes"
    )
    if options.on_no_room == "raise":
        raise ConfigurationError(f'{words}. Put less into its headers, raise frame_max, or say on_no_room="send".')
    telemetry.incomplete("budget", options.store.name)
    logs.warn(f"no room {options.store.name}", f"{words}; it is sent without. Put less into its headers.")
    # Where there is room for that much, what was lost does not look empty.
    lost = outgoing_text(EMPTY.marked_incomplete().serialize(), trust_settings())
    stamped.headers = {**headers, HEADER: lost}
    return stamped if _has_room(stamped, frame_max) else properties
