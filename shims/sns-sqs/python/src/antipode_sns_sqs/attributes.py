"""The message attribute `antipode-lineage`: where it stands in a message, and what it holds (spec PROP-17, PROP-29).

Its value is the lineage's text, and behind that, of a tracked message, the message's own mark as a property:
`1~blog-posts..8371.42;mark=6fd0…`. Readers of lineages cut properties (WIRE-28). So it takes one of SQS's ten
attributes, and stays whether SNS delivers raw or wraps the message into JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from antipode.messages import HEADER, JMS_HEADER

ATTRIBUTE: Final = HEADER
MOST_ATTRIBUTES: Final = 10
"""SQS refuses an eleventh, and with raw delivery SNS discards the message over it."""
_NAMES: Final = (HEADER, JMS_HEADER)
_MARK: Final = "mark="


@dataclass(frozen=True, slots=True)
class CarriedLineage:
    """What a message carries of ours."""

    headers: Mapping[str, Any] = field(default_factory=dict)
    """By name; a value that is no text is a number, which is malformed (PROP-17)."""

    @property
    def mark(self) -> str | None:
        """The message's own mark, if it was tracked."""
        for value in self.headers.values():
            if isinstance(value, str):
                for part in value.split(";")[1:]:
                    if part.strip().startswith(_MARK):
                        return part.strip()[len(_MARK) :] or None
        return None


def with_mark(text: str, mark: str) -> str:
    """The value of a tracked message's attribute."""
    return f"{text};{_MARK}{mark}"


def carried(message: Any) -> CarriedLineage:
    """What a received message carries: as boto3's client or resource gives it, or a record of a Lambda event.

    First its own attributes (sent to the queue, or delivered raw), else those inside the JSON that SNS has made.
    """
    if not isinstance(message, Mapping):  # a Message of the resource
        attributes, body = getattr(message, "message_attributes", None), getattr(message, "body", None)
    elif isinstance(message.get("Sns"), Mapping):  # a Lambda that SNS calls itself
        return CarriedLineage(_values(message["Sns"].get("MessageAttributes")))
    else:
        attributes = message.get("MessageAttributes") or message.get("messageAttributes")
        body = message.get("Body", message.get("body"))
    found = _values(attributes)
    return CarriedLineage(found or _values(_wrapped(body)))


def _wrapped(body: Any) -> Any:
    """The attributes inside the JSON of a message that SNS has wrapped."""
    if not isinstance(body, str) or not body.lstrip().startswith("{") or '"Notification"' not in body:
        return None
    if HEADER not in body and JMS_HEADER not in body:
        return None
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or parsed.get("Type") != "Notification" or "TopicArn" not in parsed:
        return None
    return parsed.get("MessageAttributes")


def _values(attributes: Any) -> dict[str, Any]:
    """The values of our attributes, in any of the spellings that AWS has for them."""
    if not isinstance(attributes, Mapping):
        return {}
    return {name: _value(attributes[name]) for name in _NAMES if name in attributes}


def _value(attribute: Any) -> Any:
    if not isinstance(attribute, Mapping):
        return 0
    kind = attribute.get("DataType") or attribute.get("dataType") or attribute.get("Type") or ""
    value = next((attribute[name] for name in ("StringValue", "stringValue", "Value") if name in attribute), None)
    return value if isinstance(value, str) and str(kind).partition(".")[0] == "String" else 0


def attribute_of(value: str) -> dict[str, str]:
    """An attribute as boto3 takes it."""
    return {"DataType": "String", "StringValue": value}


def size_of(name: str, attribute: Any) -> int:
    """How many bytes of a message's size an attribute takes: its name, its type and its value."""
    if not isinstance(attribute, Mapping):
        return 0
    return _bytes(name) + sum(_bytes(value) for value in attribute.values())


def _bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes | bytearray) else 0


def bytes_of(text: Any) -> int:
    """How many bytes a text is as it is sent."""
    return _bytes(text)
