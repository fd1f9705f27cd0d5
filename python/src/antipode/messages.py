"""Messages: one scope each, filled from the message's own header, and the header of what is sent (spec PROP)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from antipode._model.lineage import Lineage
from antipode._model.scope_values import Delivery
from antipode._propagation.carriers import JMS_PROPERTY, LINEAGE_HEADER, read
from antipode._propagation.gate import give, leaving, lineage_outside, take
from antipode._scope.scope import Scope, current_scope, open_scope
from antipode._trust.trust import Direction, judge_message_in, judge_message_out, report, trust_settings

HEADER: Final = LINEAGE_HEADER
"""The header of messages and responses."""
JMS_HEADER: Final = JMS_PROPERTY
"""The same in JMS, whose property names are Java identifiers."""
_NO_TEXT: Final = "?"
"""Stands for a value that is no text: it is malformed."""


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
    for what came in. `delivery` says whether a barrier may give the message back. With `mode=off` a lineage is
    still taken, because it is still passed on (PROP-26).
    """
    with open_scope(kind="message", delivery=delivery) as scope:
        _receive(scope, _texts(source), lineage_in, sender)
        yield scope


def receive_text(scope: Scope, text: str, *, lineage_in: bool | None = None, sender: str = "a message") -> None:
    """Joins a message's or value's lineage text into its scope, if it is trusted and can be read."""
    _receive(scope, read({HEADER: text}).texts, lineage_in, sender)


def _receive(scope: Scope, texts: tuple[str, ...], lineage_in: bool | None, sender: str) -> None:
    if not texts:
        return
    trust = trust_settings()
    taken = take(texts, lambda text: judge_message_in(text, trust, lineage_in), Direction.MESSAGE_IN, sender)
    scope.receive(taken.lineage)
    taken.note_in(scope)


def outgoing_message(*, lineage_out: bool | None = None, scope: Scope | None = None) -> str | None:
    """Return the header's value for a message that is sent now; None where it carries none.

    Outside any scope it may be incomplete (SCOPE-31): where the message carries a lineage already, do not ask.
    Raises PendingWriteError with `on_pending=raise`.
    """
    scope = scope or current_scope()
    if scope is not None:
        lineage = leaving(scope)
    elif judge_message_out(trust_settings(), lineage_out).accepted:
        lineage = lineage_outside(Direction.MESSAGE_OUT.words)
    else:
        return None
    return message_text(lineage, lineage_out=lineage_out, sender=scope)


def message_text(lineage: Lineage, *, lineage_out: bool | None = None, sender: Scope | None = None) -> str | None:
    """The header's value for a message with this lineage, of which `leaving` has given what is the scope's.

    `sender`: that scope.
    """
    if not lineage:
        return None
    trust = trust_settings()
    decision = judge_message_out(trust, lineage_out)
    if not decision.accepted:
        report(decision, Direction.MESSAGE_OUT)
        return None
    return give(lineage, trust, Direction.MESSAGE_OUT, sender)


def _texts(source: str | bytes | Mapping[str, Any] | None) -> tuple[str, ...]:
    if not source:
        return ()  # a header that is there and empty was emptied on the way; a text that is not there is none
    if isinstance(source, str | bytes):
        return read({HEADER: source}).texts
    values = [
        (HEADER, _text(value))  # a frame of STOMP may hold it as JMS spells it
        for name, value in source.items()
        if str(name).lower() in {HEADER, JMS_HEADER} and value is not None
    ]
    return read(values).texts


def _text(value: object) -> str | bytes:
    """A header's text; one that cannot be read for what is none, a number 1 for instance (PROP-17)."""
    if isinstance(value, str | bytes):
        return value
    return bytes(value) if isinstance(value, bytearray | memoryview) else _NO_TEXT
