"""Receiving: one scope a message, filled from the message's own attribute (spec SCOPE-6, PROP-17, BAR-45)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from antipode import ConfigurationError, Mode, Redeliver, Scope, message_scope
from antipode.shim import BoundedMap
from antipode.shim.queue_messages import (
    MessageDelivery,
    delivered,
    note_unstamped,
    refuse_acknowledgement,
    say_redelivery,
)
from botocore.exceptions import BotoCoreError, ClientError

from antipode_sns_sqs.attributes import ATTRIBUTE, CarriedLineage, carried
from antipode_sns_sqs.options import Binding

_log: Final = logging.getLogger("antipode")
_LONGEST_S: Final = 43_200
"""SQS hides a message for twelve hours at most."""


class Receipt(NamedTuple):
    """Where a received message came from."""

    client: Any
    queue_url: str


_receipts: Final[BoundedMap[str, Receipt]] = BoundedMap(10_000)
"""By receipt handle: `scope_of(message)` finds its queue by it."""
_returning: Final[BoundedMap[str, bool]] = BoundedMap(10_000)
"""By receipt handle: messages that go back, or have."""
_open: Final[dict[str, MessageDelivery]] = {}
"""By receipt handle: messages whose scopes are open."""


def receive(client: Any, binding: Binding, params: dict[str, Any]) -> Any:
    """Receives with our attribute among those asked for."""
    names = params.get("MessageAttributeNames", [])
    if isinstance(names, list | tuple) and not _asks_for_ours(names):
        params = {**params, "MessageAttributeNames": [*names, ATTRIBUTE]}
    answer = client._antipode_send("ReceiveMessage", params)
    for message in answer.get("Messages") or ():
        if message["ReceiptHandle"] in _returning:
            _returning.put(message["ReceiptHandle"], False)
        _receipts.put(message["ReceiptHandle"], Receipt(client, params["QueueUrl"]))
    return answer


def _asks_for_ours(names: Any) -> bool:
    """Whether a list of names has ours: by itself, or by what means all. (`antipode.*` means those with a dot.)"""
    return any(name in ("All", ".*", ATTRIBUTE) for name in names)


def deleting(params: Mapping[str, Any]) -> None:
    """The application is about to delete messages: none of them may be given back any more.

    Raises ConfigurationError where one of them goes back: it would be lost (PROP-36).
    """
    entries = params.get("Entries")
    each = entries if isinstance(entries, list | tuple) else [params]
    handles = [entry.get("ReceiptHandle") if isinstance(entry, Mapping) else None for entry in each]
    if any(isinstance(handle, str) and _returning.get(handle) for handle in handles):
        raise refuse_acknowledgement("SQS")
    for handle in handles:
        delivery = _open.get(handle) if isinstance(handle, str) else None
        if delivery is not None:
            delivery.settle("it has been deleted already")


@contextmanager
def scope_of(message: Any, *, client: Any = None, queue_url: str | None = None) -> Iterator[Scope]:
    """Opens the scope of one message for a block; one for each message, also of a batch.

    message: as a wrapped client or resource of SQS has received it; also a record of a Lambda event, of SQS or of SNS.
    `barrier(on_timeout="redeliver")` inside ends the block, gives the message back after the delay, and goes on behind
    the block: delete the message at the block's end, or behind it where not `scope.delivery.goes_back` (PROP-36).

    client, queue_url: the wrapped client and the queue, for a message that this process has not received itself, such
    as one that another process handed over; without them it cannot go back.

    Raises ConfigurationError for a client that was not wrapped.
    """
    handle = _handle(message)
    receipt = _receipts.get(handle) if handle is not None else None
    if client is not None:
        plain = getattr(getattr(client, "meta", None), "client", client)  # of a resource
        if getattr(plain, "_antipode", None) is None:
            raise ConfigurationError(
                "scope_of(client=…) takes a client that antipode_sns_sqs.wrap() has returned", code="AP501"
            )
        queue_url = queue_url or (receipt.queue_url if receipt is not None else None)
        receipt = Receipt(plain, queue_url or "")
    found = carried(message)
    if receipt is None:
        detail = (
            "this process has not received it by a wrapped client, or more than 10,000 messages ago: "
            "scope_of(message, client=…, queue_url=…)"
        )
        with message_scope(found.headers, delivery=MessageDelivery(False, detail, found.headers)) as scope:
            yield scope
        return
    with _message(receipt, handle, found) as scope:
        yield scope


@contextmanager
def _message(receipt: Receipt, handle: str | None, found: CarriedLineage) -> Iterator[Scope]:
    """The scope of one message whose client is known. Redeliver out of the block gives the message back."""
    binding: Binding = receipt.client._antipode
    known = handle is not None and bool(receipt.queue_url)
    detail = "" if known else "its receipt handle or its queue is not known"
    delivery = MessageDelivery(known, detail, found.headers)
    if handle is not None:
        _open[handle] = delivery

    def ended() -> None:
        if handle is not None and _open.get(handle) is delivery:
            del _open[handle]

    def give_back(error: Redeliver) -> None:
        _give_back(binding, receipt, handle, error)

    with delivered(binding, delivery, ended=ended, give_back=give_back) as scope:
        _note(binding, scope, found)
        yield scope


def _handle(message: Any) -> str | None:
    if isinstance(message, Mapping):
        handle = message.get("ReceiptHandle", message.get("receiptHandle"))
    else:
        handle = getattr(message, "receipt_handle", None)
    return handle if isinstance(handle, str) else None


def _note(binding: Binding, scope: Scope, found: CarriedLineage) -> None:
    """What the message's coming itself proves, and what its lack of a lineage says."""
    store = binding.store
    if store.mode is Mode.OFF:
        return
    note_unstamped(binding, scope, found.headers)
    if found.mark is not None:
        binding.arrived(found.mark)


def _give_back(binding: Binding, receipt: Receipt, handle: str | None, error: Redeliver) -> None:
    """Has SQS show the message again after the delay; should that fail, its own visibility timeout does."""
    seconds = min(math.ceil(binding.redeliver_delay), _LONGEST_S)  # SQS counts whole seconds
    say_redelivery(binding, error, seconds)
    if handle is not None:
        _returning.put(handle, True)
    params = {"QueueUrl": receipt.queue_url, "ReceiptHandle": handle, "VisibilityTimeout": seconds}
    try:
        receipt.client._antipode_send("ChangeMessageVisibility", params)
    except (ClientError, BotoCoreError) as failed:
        _log.debug("a message of %s comes back by its own visibility timeout: %s", binding.store.name, failed)
