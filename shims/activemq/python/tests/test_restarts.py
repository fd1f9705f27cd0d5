"""Restarts and partitions of the brokers: no barrier passes for what has not arrived, none takes longer than it may."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_activemq
import pytest
from activemq_regions import QUEUE, Region, tap_of, wait_for
from antipode import Verdict
from antipode_lab.stores.activemq import ActiveMqStore


def verdict(lineage: antipode.Lineage, timeout: float = 20.0) -> Verdict:
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    return result.stores["notifications"].verdict


def sent(a: Region, connection: Any, body: str, **headers: str) -> antipode.Lineage:
    with antipode.scope() as scope:
        a.send(connection, QUEUE, body, **headers)
        return scope.lineage


@pytest.mark.timeout(180)
def test_restarts(activemq_lab: ActiveMqStore) -> None:
    a, b = Region(activemq_lab, "a"), Region(activemq_lab, "b")
    antipode_activemq.register("notifications", tap=tap_of(b))
    connection = a.wrapped(track=True)
    before = sent(a, connection, "before", persistent="true")
    assert verdict(before) is Verdict.VISIBLE
    activemq_lab.partition("b")
    kept = sent(a, connection, "kept", persistent="true")
    lost = sent(a, connection, "lost")
    assert verdict(kept, 0.3) is Verdict.TIMED_OUT
    activemq_lab.restart("a", crash=True)
    assert verdict(kept, 0.3) is Verdict.TIMED_OUT
    activemq_lab.heal()
    assert verdict(kept) is Verdict.VISIBLE, "a persistent message survives the crash, and is carried then"
    assert verdict(lost, 0.5) is Verdict.TIMED_OUT, "one that is not is gone with the broker"
    activemq_lab.restart("b", "nothing")
    # Arrived stays arrived, where it was seen; a broker that was away for long is asked again by and by.
    wait_for("the tap to be read again", lambda: verdict(before, 1) is Verdict.VISIBLE, 30)
    after = sent(a, a.wrapped(track=True), "after")
    assert verdict(after) is Verdict.VISIBLE
    with antipode.testing.isolated():
        antipode_activemq.register("notifications", tap=tap_of(b))
        assert verdict(before, 0.3) is Verdict.TIMED_OUT, "who did not see it cannot know: the broker kept no past"
