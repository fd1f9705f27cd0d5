"""Messages: one scope each, filled from the message's own header, and the header of what is sent (spec PROP)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from antipode import telemetry, wire
from antipode.errors import MalformedLineageError
from antipode.lineage import EMPTY, Lineage
from antipode.scope import Delivery, Scope, current_scope, open_scope
from antipode.settings import Mode, settings
from antipode.trust import Direction, judge_message_in, judge_message_out, outgoing_text, report, trust_settings

HEADER: Final = "antipode-lineage"
"""The header of messages and responses."""
JMS_HEADER: Final = "antipode_lineage"
"""The same in JMS, whose property names are Java identifiers."""


@contextmanager
def message_scope(
    source: str | bytes | Mapping[str, Any] | None,
    *,
    lineage_in: bool | None = None,
    delivery: Delivery | None = None,
    sender: str = "a message",
) -> Iterator[Scope]:
    """Opens the scope of one message for the block, from its headers or from a lineage text.

    What may not be believed is dropped and counted; what cannot be read leaves the scope incomplete. Never raises
    for what came in. `delivery` says whether a barrier may give the message back.
    """
    with open_scope(kind="message", delivery=delivery) as scope:
        if settings().mode is not Mode.OFF:
            for text in _texts(source):
                receive_text(scope, text, lineage_in=lineage_in, sender=sender)
        yield scope


def receive_text(scope: Scope, text: str, *, lineage_in: bool | None = None, sender: str = "a message") -> None:
    """Joins a message's or value's lineage text into its scope, if it is trusted and can be read."""
    decision = judge_message_in(text, trust_settings(), lineage_in)
    if not decision.accepted:
        report(decision, Direction.MESSAGE_IN, sender)
        scope.note_gap("seal" if decision.reason.name == "SEAL" else "untrusted", detail=f"{sender}: {decision.reason}")
        return
    try:
        scope.receive(Lineage.deserialize(decision.text))
        telemetry.size(Direction.MESSAGE_IN.value, len(decision.text))
    except MalformedLineageError as error:
        telemetry.dropped("malformed", Direction.MESSAGE_IN.value)
        scope.receive(EMPTY.marked_incomplete())
        scope.note_gap("malformed", detail=f"{sender}: {error}")


def outgoing_message(*, lineage_out: bool | None = None, scope: Scope | None = None) -> str | None:
    """The header's value for a message that is sent now; None where it carries none.

    Raises PendingWriteError with `on_pending=raise`.
    """
    scope = scope or current_scope()
    if scope is None or settings().mode is Mode.OFF:
        return None
    lineage = scope.outgoing()
    if not lineage:
        return None
    trust = trust_settings()
    decision = judge_message_out(trust, lineage_out)
    if not decision.accepted:
        report(decision, Direction.MESSAGE_OUT)
        return None
    fitted = lineage.fit(settings().budget_bytes - trust.seal_length)
    if fitted is not lineage:
        for store in fitted.incomplete - lineage.incomplete:
            telemetry.incomplete("budget", store)
    text = outgoing_text(fitted.serialize(), trust)
    telemetry.size(Direction.MESSAGE_OUT.value, len(text))
    return text


def _texts(source: str | bytes | Mapping[str, Any] | None) -> list[str]:
    if not source:
        return []  # a header that is there and empty was emptied on the way; a text that is not there is none
    if isinstance(source, str | bytes):
        return wire.unwrap_header([_as_text(source)])
    values = [
        value for name, value in source.items() if str(name).lower() in {HEADER, JMS_HEADER} and value is not None
    ]
    return wire.unwrap_header([_as_text(value) for value in values])


def _as_text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)
