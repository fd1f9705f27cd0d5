"""Sending: the lineage goes into a copy of the message's headers; with `track` the message is a write of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from antipode import logs
from antipode.errors import ConfigurationError, MalformedLineageError
from antipode.exchange import leaving
from antipode.lineage import EMPTY, Lineage
from antipode.messages import HEADER, JMS_HEADER, message_scope, message_text, outgoing_message
from antipode.scope import Scope, current_scope
from antipode.seal import strip_seal
from antipode.trust import judge_message_out, outgoing_text, trust_settings
from antipode.wire import unwrap_header
from antipode.writeid import Opaque, WriteId

from antipode_activemq.delivery import MessageDelivery
from antipode_activemq.marks import MARK_HEADER
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.outcomes import Outcomes


def publish(
    options: ConnectionOptions,
    outcomes: Outcomes,
    send: Callable[[Mapping[str, Any]], Any],
    destination: Any,
    headers: Mapping[str, Any],
) -> Any:
    """Sends by `send`, which takes the headers and is stomp.py's own method. The caller's headers stay as they are."""
    store = options.store
    if not options.track or not store.records:  # with mode=off what came in is passed on, and nothing added (PROP-26)
        return send(_stamped(options, headers, None))
    _check_topic(options, str(destination))
    mark = uuid4().hex
    key, version = str(destination), Opaque(mark)
    headers = {**headers, MARK_HEADER: mark}
    headers = _stamped(options, headers, store.write_id(key, version))
    write = store.begin(key)
    with outcomes.sending(headers, write, version):
        return send(headers)


def _check_topic(options: ConnectionOptions, destination: str) -> None:
    """A plain topic loses what is published while no link carries it, and then nobody can wait for it."""
    if options.stored_topics or not destination.startswith("/topic/"):
        return
    raise ConfigurationError(
        f"a tracked message to {destination} may be lost for good while the link between the brokers is down: topics "
        "keep nothing for those who are away. Send to a queue; or let a composite topic put it into a queue for the "
        "link (shims/activemq/README.md), and say wrap(…, stored_topics=True)."
    )


def _stamped(options: ConnectionOptions, headers: Mapping[str, Any], own: WriteId | None) -> Mapping[str, Any]:
    """The headers as they leave: the same object where there is nothing to change, else a copy."""
    carried = _carried(headers) if HEADER in headers or JMS_HEADER in headers else {}
    if headers.get(JMS_HEADER) is not None and JMS_HEADER not in carried:
        logs.warn(
            f"foreign header {options.store.name}",
            f"a message to {options.store.name} has a header {JMS_HEADER} that is no lineage; it is left as it is, so "
            "the message carries no lineage. Give the application's header another name.",
        )
        return headers
    text = _text(options, carried, own)
    if text is None and not carried:
        return headers
    rest = {name: value for name, value in headers.items() if name not in carried}
    if text is None:  # what came in and was not believed must not go on either (TRUST-5)
        return rest
    return {**rest, JMS_HEADER: text}


def _is_refused(options: ConnectionOptions) -> bool:
    return not judge_message_out(trust_settings(), options.lineage_out).accepted


def _carried(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The lineages among the headers, by name: those of a message whose headers are sent again."""
    return {name: headers[name] for name in (HEADER, JMS_HEADER) if name in headers and _is_ours(headers[name])}


def _is_ours(value: object) -> bool:
    """Whether a header's value is a lineage, and not something that the application has under that name."""
    if not isinstance(value, str):
        return False
    try:
        for text in unwrap_header([value]):
            Lineage.deserialize(strip_seal(text))
    except MalformedLineageError:
        return False
    return True


def _text(options: ConnectionOptions, carried: dict[str, Any], own: WriteId | None) -> str | None:
    """The header's value; None where the message carries none."""
    scope = current_scope()
    another = bool(carried) and not _came_with(scope, carried)
    if own is None and not another:
        text = None if scope is None else outgoing_message(lineage_out=options.lineage_out, scope=scope)
    else:
        lineage = EMPTY if scope is None else leaving(scope)
        if another:
            lineage |= _received(options, carried)
        if own is not None:
            lineage = lineage.including(own)
        text = message_text(lineage, lineage_out=options.lineage_out)
    if text is None and options.stamped and scope is not None and options.store.records and not _is_refused(options):
        return outgoing_text(EMPTY.serialize(), trust_settings())
    return text


def _came_with(scope: Scope | None, carried: dict[str, Any]) -> bool:
    """Whether these are headers of the very message that the scope was opened for: their lineage is in the scope."""
    delivery = None if scope is None else scope.delivery
    if not isinstance(delivery, MessageDelivery):
        return False
    return all(delivery.headers.get(name) == value for name, value in carried.items())


def _received(options: ConnectionOptions, carried: dict[str, Any]) -> Lineage:
    """The lineage of another message whose headers are sent here, as far as it may be believed."""
    sender = f"a message to {options.store.name}"
    with message_scope(carried, lineage_in=options.lineage_in, sender=sender) as other:
        return other.lineage
