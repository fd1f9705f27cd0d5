"""Sending: the lineage goes into a copy of the message's headers; with `track` the message is a write of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from antipode import ConfigurationError, Opaque, WriteId
from antipode.messages import HEADER, JMS_HEADER
from antipode.shim import display, logs
from antipode.shim.queue_messages import carried_lineages, text_to_send

from antipode_activemq.marks import MARK_HEADER
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.outcomes import Outcomes

_TOPICS: Final = ("/topic/", "topic://", "/temp-topic/")


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
        return send(_stamped(options, _without_mark(headers), None, str(destination)))
    _check_topic(options, str(destination))
    mark = uuid4().hex
    key, version = str(destination), Opaque(mark)
    headers = {**headers, MARK_HEADER: mark}
    headers = _stamped(options, headers, store.write_id(key, version), key)
    write = store.begin(key)
    with outcomes.sending(headers, write, version):
        return send(headers)


def _without_mark(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return headers without the mark of the tracked message that they are of: another is not that one (PROP-37)."""
    if MARK_HEADER not in headers:
        return headers
    return {name: value for name, value in headers.items() if name != MARK_HEADER}


def _check_topic(options: ConnectionOptions, destination: str) -> None:
    """A plain topic loses what is published while no link carries it, and then nobody can wait for it."""
    if options.stored_topics or not destination.startswith("/topic/"):
        return
    raise ConfigurationError(
        f"a tracked message to {destination} may be lost for good while the link between the brokers is down: topics "
        "keep nothing for those who are away. Send to a queue; or let a composite topic put it into a queue for the "
        "link (shims/activemq/README.md), and say wrap(…, stored_topics=True).",
        code="AP501",
    )


def _stamped(
    options: ConnectionOptions, headers: Mapping[str, Any], own: WriteId | None, destination: str
) -> Mapping[str, Any]:
    """The headers as they leave: the same object where there is nothing to change, else a copy."""
    carried = carried_lineages(headers) if HEADER in headers or JMS_HEADER in headers else {}
    if headers.get(JMS_HEADER) is not None and JMS_HEADER not in carried:
        logs.warn(
            f"foreign header {options.store.name}",
            f"a message to {options.store.name} has a header {JMS_HEADER} that is no lineage; it is left as it is, so "
            "the message carries no lineage. Give the application's header another name.",
            code="AP405",
        )
        return headers
    is_shared = destination.startswith(_TOPICS) or "," in destination  # a composite destination names several
    shared = display.shown(destination) if is_shared else ""
    text = text_to_send(options, carried, own, shared=shared)
    if text is None and not carried:
        return headers
    rest = {name: value for name, value in headers.items() if name not in carried}
    if text is None:  # what came in and was not believed must not go on either (TRUST-5)
        return rest
    return {**rest, JMS_HEADER: text}
