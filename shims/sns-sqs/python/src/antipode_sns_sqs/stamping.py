"""Putting the lineage into one message, within the limits of SQS and SNS (spec PROP-17, PROP-19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from antipode import EMPTY, ConfigurationError, WriteId
from antipode.messages import JMS_HEADER
from antipode.shim import Purpose, events, logs, outgoing_text, trust_settings
from antipode.shim.queue_messages import is_lineage, text_to_send

from antipode_sns_sqs.attributes import (
    ATTRIBUTE,
    MOST_ATTRIBUTES,
    attribute_of,
    bytes_of,
    size_of,
    with_mark,
)
from antipode_sns_sqs.options import Binding


class Room:
    """How many bytes a message, or a whole batch, has left below its limit."""

    def __init__(self, left: int) -> None:
        self.left = left

    @classmethod
    def of(cls, limits: Sequence[int], entries: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> Room:
        """Of messages as the application gives them; the limit is the least that they keep without us."""
        size = sum(
            sum(bytes_of(entry.get(text)) for text in texts)
            + sum(size_of(name, value) for name, value in (entry.get("MessageAttributes") or {}).items())
            for entry, texts in entries
        )
        return cls(next((limit for limit in limits if size <= limit), size) - size)


@dataclass(slots=True)
class Stamp:
    """One message as it leaves."""

    entry: dict[str, Any]
    carries_mark: bool


def stamp(
    binding: Binding, entry: Mapping[str, Any], room: Room, own: WriteId | None, mark: str | None, topic: str
) -> Stamp:
    """The message's parameters as they leave; attributes of the caller's are copied, never changed.

    topic: the topic that it goes to, or nothing for a queue (BRANCH-28).
    """
    given: Mapping[str, Any] = entry.get("MessageAttributes") or {}
    brought = {name: _text_of(given[name]) for name in (ATTRIBUTE, JMS_HEADER) if name in given}
    ours = {name: value for name, value in brought.items() if is_lineage(value)}
    store = binding.store.name
    if ATTRIBUTE in brought and ATTRIBUTE not in ours:
        logs.warn(
            f"foreign attribute {store}",
            f"a message to {store} has an attribute {ATTRIBUTE} that is no lineage; it is left as it is, so the "
            "message carries no lineage. Give the application's attribute another name.",
            code="AP405",
        )
        return Stamp(dict(entry), False)
    text = text_to_send(binding, ours, own, shared=topic)
    if text is None and mark is not None:  # the lineage may not leave, and the message is to be known all the same
        text = outgoing_text(EMPTY.serialize(), trust_settings(), Purpose.MESSAGE)
    if text is None and not ours:
        return Stamp(dict(entry), False)
    rest = {name: value for name, value in given.items() if name not in ours}
    room.left += sum(size_of(name, given[name]) for name in ours)
    if text is None:  # what came in and was not believed must not go on either (TRUST-5)
        return _made(entry, rest, mark=False)
    if len(rest) >= MOST_ATTRIBUTES:
        _no_room(binding, f"it has {len(rest)} attributes, and SQS takes {MOST_ATTRIBUTES}", "Use fewer attributes")
        return _made(entry, rest, mark=False)
    lost = outgoing_text(EMPTY.marked_incomplete().serialize(), trust_settings(), Purpose.MESSAGE)
    for value in (text, None, lost):
        if value is None:
            _no_room(binding, f"only {max(room.left, 0)} bytes are left below its limit", "Make it shorter")
            continue
        attribute = attribute_of(value if mark is None else with_mark(value, mark))
        size = size_of(ATTRIBUTE, attribute)
        if size <= room.left:
            room.left -= size
            return _made(entry, {**rest, ATTRIBUTE: attribute}, mark=mark is not None)
    return _made(entry, rest, mark=False)


def _made(entry: Mapping[str, Any], attributes: dict[str, Any], *, mark: bool) -> Stamp:
    made = {**entry, "MessageAttributes": attributes}
    if not attributes:
        del made["MessageAttributes"]
    return Stamp(made, mark)


def _text_of(attribute: Any) -> Any:
    return attribute.get("StringValue") if attribute.get("DataType", "").partition(".")[0] == "String" else None


def _no_room(binding: Binding, why: str, cure: str) -> None:
    """The lineage would pass a limit: it is left out, and said so, before anything is sent."""
    store = binding.store.name
    words = f"a message to {store} has no room for its lineage: {why}"
    if binding.on_no_room == "raise":
        raise ConfigurationError(f'{words}. {cure}, or say on_no_room="send".', code="AP510")
    events.on_lineage_incomplete("budget", store)
    logs.warn(f"no room {store}", f"{words}; it is sent without. {cure}.", code="AP510")
