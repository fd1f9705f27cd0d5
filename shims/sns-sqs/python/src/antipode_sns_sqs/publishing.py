"""Publishing and sending: the lineage goes into a copy of the message's attributes; with `track` it is a write."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from antipode import Opaque
from antipode.shim import BoundedMap, Write, display

from antipode_sns_sqs.options import Binding
from antipode_sns_sqs.stamping import Room, Stamp, stamp

SNS_LIMITS: Final = (262_144,)
SQS_LIMITS: Final = (262_144, 1_048_576)
"""Bytes of a message or batch. SQS takes 1 MiB where a queue allows it; what is above the least of its limits without
us shows that it does."""
_SAME_S: Final = 240.0
"""FIFO drops what comes again within five minutes; so long after the first another one surely is."""


@dataclass(frozen=True)
class _Shape:
    """How one service spells its messages."""

    body: str
    place: str
    """The parameter that names the topic or queue."""
    limits: tuple[int, ...]
    arrives: bool
    """Whether the answer says that the region's queue has it."""


SNS: Final = _Shape("Message", "TopicArn", SNS_LIMITS, False)
SQS: Final = _Shape("MessageBody", "QueueUrl", SQS_LIMITS, True)


class _Form(ABC):
    def __init__(self, shape: _Shape) -> None:
        self.shape = shape

    def send(self, client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
        """Sends with what belongs to the message; the caller's parameters stay as they are."""
        key = self._key(params)
        if key is None:
            return client._antipode_send(operation, params)
        return self._do(client, binding, operation, params, key)

    @abstractmethod
    def _do(self, client: Any, binding: Binding, operation: str, params: dict[str, Any], key: str) -> Any: ...

    def _key(self, params: Mapping[str, Any]) -> str | None:
        """The topic's or queue's name; None for what is no message to one (a telephone), or is spelled wrongly."""
        place = params.get(self.shape.place)
        if place is None and self.shape is SNS:
            place = params.get("TargetArn")
            if isinstance(place, str) and place.count(":") != 5:
                return None
        if not isinstance(place, str):
            return None
        return place.rpartition(":" if self.shape is SNS else "/")[2] or None

    def _is_message(self, entry: Any) -> bool:
        """Whether an entry is spelled as boto3 wants it; what is not is boto3's to refuse."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get(self.shape.body), str):
            return False
        attributes = entry.get("MessageAttributes", {})
        return isinstance(attributes, Mapping) and all(isinstance(each, Mapping) for each in attributes.values())

    def _room(self, entries: Sequence[Mapping[str, Any]]) -> Room:
        texts = (self.shape.body, "Subject")
        return Room.of(self.shape.limits, [(entry, texts) for entry in entries])

    def _stamp(self, binding: Binding, entry: Mapping[str, Any], key: str, room: Room) -> _SentMessage:
        """An entry as it leaves, with a mark of its own where messages are tracked."""
        store = binding.store
        mark = None
        if binding.track and store.records:  # with mode=off what came in is passed on, and nothing added (PROP-26)
            mark = _twin(key, self.shape.body, entry) or uuid4().hex
        own = None if mark is None else store.write_id(key, Opaque(mark))
        topic = f"topic {display.shown(key)}" if self.shape is SNS else ""
        made = stamp(binding, entry, room, own, mark, topic)
        return _SentMessage(binding, self.shape, key, made, mark)


class One(_Form):
    """`publish`, `send_message`."""

    def _do(self, client: Any, binding: Binding, operation: str, params: dict[str, Any], key: str) -> Any:
        if not self._is_message(params):
            return client._antipode_send(operation, params)
        sent = self._stamp(binding, params, key, self._room([params]))
        sent.begin()
        answer = client._antipode_attempt(operation, sent.stamp.entry, sent.failed)
        sent.done()
        return answer


class BatchPublish(_Form):
    """`publish_batch`, `send_message_batch`: each message of a batch has its own attribute, and its own outcome."""

    def __init__(self, shape: _Shape, entries: str) -> None:
        super().__init__(shape)
        self._entries = entries

    def _do(self, client: Any, binding: Binding, operation: str, params: dict[str, Any], key: str) -> Any:
        entries = params.get(self._entries)
        if not isinstance(entries, list | tuple) or not all(self._is_message(entry) for entry in entries):
            return client._antipode_send(operation, params)
        room = self._room(entries)
        messages = [self._stamp(binding, entry, key, room) for entry in entries]
        for sent in messages:
            sent.begin()

        def all_failed(left: bool) -> None:
            for sent in messages:
                sent.failed(left)

        entries = [each.stamp.entry for each in messages]
        answer = client._antipode_attempt(operation, {**params, self._entries: entries}, all_failed)
        taken = {each.get("Id") for each in answer.get("Successful") or ()}
        refused = {each.get("Id"): bool(each.get("SenderFault")) for each in answer.get("Failed") or ()}
        for sent in messages:
            name = sent.stamp.entry.get("Id")
            if name in taken:
                sent.done()
            else:
                sent.not_taken(refused=refused.get(name, False))
        return answer


FORMS: Final[Mapping[str, _Form]] = {
    "Publish": One(SNS),
    "PublishBatch": BatchPublish(SNS, "PublishBatchRequestEntries"),
    "SendMessage": One(SQS),
    "SendMessageBatch": BatchPublish(SQS, "Entries"),
}


class _SentMessage:
    """One message on its way; where it is tracked, a write."""

    def __init__(self, binding: Binding, shape: _Shape, key: str, made: Stamp, mark: str | None) -> None:
        self.stamp = made
        self._binding, self._shape, self._key, self._mark = binding, shape, key, mark
        self._write: Write | None = None

    def begin(self) -> None:
        """It is sent now."""
        if self._mark is not None:
            self._write = self._binding.store.begin(self._key)

    def done(self) -> None:
        """The service has taken it."""
        write, mark = self._write, self._mark
        if write is None or mark is None:
            return
        if not self.stamp.carries_mark:
            write.record_incomplete("budget", "the message has no room for its mark, so nobody can wait for it")
            return
        _remember_twin(self._key, self._shape.body, self.stamp.entry, mark)
        write.record(Opaque(mark))
        if self._shape.arrives:
            self._binding.arrived(mark)

    def failed(self, left: bool) -> None:
        """The call ended with an error: the message was not sent, or with `left` nobody knows."""
        self.not_taken(refused=not left)

    def not_taken(self, *, refused: bool) -> None:
        """It was refused, or nobody knows."""
        if self._write is None:
            return
        if refused:
            self._write.abandon()
        else:
            self._write.outcome_unknown()


# FIFO: what is sent again within five minutes is taken and not delivered, so that its own mark would never arrive.

_twins: Final[BoundedMap[str, tuple[str, float]]] = BoundedMap(10_000)


def _twin(key: str, body: str, entry: Mapping[str, Any]) -> str | None:
    """The mark of the message that this one is a repetition of, as far as this process knows."""
    name = _same(key, body, entry)
    known = None if name is None else _twins.get(name)
    return known[0] if known is not None and time.monotonic() - known[1] < _SAME_S else None


def _remember_twin(key: str, body: str, entry: Mapping[str, Any], mark: str) -> None:
    name = _same(key, body, entry)
    if name is not None and _twin(key, body, entry) is None:
        _twins.put(name, (mark, time.monotonic()))


def _same(key: str, body: str, entry: Mapping[str, Any]) -> str | None:
    """What FIFO knows a repetition by; None for a standard topic or queue."""
    if not key.endswith(".fifo"):
        return None
    told = entry.get("MessageDeduplicationId")
    if told is None:
        told = hashlib.sha256(str(entry[body]).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{key} {entry.get('MessageGroupId')} {told}"
