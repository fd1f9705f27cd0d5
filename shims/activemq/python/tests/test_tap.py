"""`track` and taps: a message can be waited for where somebody reads the region's tap."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import antipode
import antipode_activemq
from activemq_regions import QUEUE, TAP, Region, tap_of, wait_for
from antipode import Opaque, Verdict, WriteId
from antipode.messages import JMS_HEADER
from antipode.store import registry
from antipode_activemq import MARK_HEADER


def message(mark: str, store: str = "notifications") -> antipode.Lineage:
    return antipode.EMPTY.including(WriteId(store, b"x", Opaque(mark)))


def judge(lineage: antipode.Lineage, timeout: float = 5.0) -> antipode.BarrierResult:
    return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")


def verdict(lineage: antipode.Lineage, timeout: float = 5.0) -> Verdict:
    return judge(lineage, timeout).stores["notifications"].verdict


def test_a_tracked_message_joins_the_lineage_and_is_waited_for_in_the_other_region(a: Region, b: Region) -> None:
    """SHIM-17."""
    tap = tap_of(b)
    box = b.inbox(QUEUE)
    connection = a.wrapped(track=True, tap=tap)
    assert registry().need("notifications").replicas == (tap.address,)
    with antipode.scope() as scope:
        connection.send(QUEUE, "body", mine="1")
        (write_id,) = scope.lineage
        assert (write_id.store, write_id.key) == ("notifications", QUEUE.encode())
        result = antipode.barrier(timeout=5)
    assert result.satisfied
    assert result.complete
    received = box.next()
    assert write_id.version == Opaque(received.headers[MARK_HEADER])
    assert received.headers["mine"] == "1"
    assert antipode.deserialize(received.headers[JMS_HEADER]) == scope.lineage, "the message depends on itself"
