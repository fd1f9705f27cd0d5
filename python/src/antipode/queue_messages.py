"""What the shims of queues share of one message: its options, what it carries, the text that it leaves with (PROP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from antipode.errors import MalformedLineageError
from antipode.exchange import leaving
from antipode.lineage import EMPTY, Lineage
from antipode.messages import HEADER, JMS_HEADER, message_scope, message_text, outgoing_message
from antipode.scope import Scope, current_scope
from antipode.scope_values import Delivery
from antipode.seal import strip_seal
from antipode.settings import settings
from antipode.store import Store
from antipode.trust import judge_message_out, outgoing_text, trust_settings
from antipode.wire import unwrap_header
from antipode.writeid import WriteId

__all__ = ["MessageDelivery", "QueueOptions", "carried_lineages", "is_lineage", "text_to_send"]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options of one `wrap` of a queue's client; several clients of one store may differ in them."""

    store: Store
    track: bool
    stamped: bool
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    own_redeliver_delay: float | None

    @property
    def redeliver_delay(self) -> float:
        """How long a message waits before it goes back, in seconds."""
        own = self.own_redeliver_delay
        return settings().redeliver_delay if own is None else own


@dataclass(slots=True)
class MessageDelivery(Delivery):
    """A message that was delivered. `can_redeliver` turns false when it has been settled, or its scope has ended."""

    headers: Mapping[Any, Any] = field(default_factory=dict)
    """The message's headers as they came."""

    def settle(self, detail: str) -> None:
        """From now on it cannot go back, for this reason."""
        if self.can_redeliver:
            self.can_redeliver, self.detail = False, detail


def carried_lineages(headers: Mapping[Any, Any]) -> dict[str, Any]:
    """The lineages among the headers, by name: those of a message whose headers are sent again."""
    return {name: headers[name] for name in (HEADER, JMS_HEADER) if name in headers and is_lineage(headers[name])}


def is_lineage(value: object) -> bool:
    """Whether a header's value is a lineage, and not something that the application has under that name."""
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


def text_to_send(options: QueueOptions, carried: Mapping[str, Any], own: WriteId | None) -> str | None:
    """The header's value for a message that is sent now; None where it carries none.

    carried: the lineages that its headers have already. own: the message itself, where it is a write. Raises
    PendingWriteError with `on_pending=raise`.
    """
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
    if text is None and options.stamped and scope is not None and options.store.records and _may_leave(options):
        return outgoing_text(EMPTY.serialize(), trust_settings())
    return text


def _may_leave(options: QueueOptions) -> bool:
    return judge_message_out(trust_settings(), options.lineage_out).accepted


def _came_with(scope: Scope | None, carried: Mapping[str, Any]) -> bool:
    """Whether these are headers of the very message that the scope was opened for: their lineage is in the scope."""
    delivery = None if scope is None else scope.delivery
    if not isinstance(delivery, MessageDelivery):
        return False
    return all(delivery.headers.get(name) == value for name, value in carried.items())


def _received(options: QueueOptions, carried: Mapping[str, Any]) -> Lineage:
    """The lineage of another message whose headers are sent here, as far as it may be believed."""
    sender = f"a message to {options.store.name}"
    with message_scope(carried, lineage_in=options.lineage_in, sender=sender) as other:
        return other.lineage
