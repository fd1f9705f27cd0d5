"""A network connector that forwards whatever is subscribed to, as ActiveMQ's default is, carries taps from A to B."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_activemq
import pytest
from activemq_regions import QUEUE, TAP, Region, tap_of, wait_for
from antipode import Opaque, Verdict, WriteId
from antipode_activemq import ActiveMQShim
from antipode_lab.stores.activemq import ActiveMqStore


def test_it_is_noticed_and_then_nothing_is_proved(lab_factory: Any) -> None:
    """SHIM-41: else what has come no further than region A would pass in region B."""
    lab = lab_factory("activemq", queue_lag="1ms", options={"activemq": {"demand": True, "taps_in_a": True}})[
        "activemq"
    ]
    assert isinstance(lab, ActiveMqStore)
    a, b = Region(lab, "a"), Region(lab, "b")
    antipode_activemq.register("in-a", tap=tap_of(a))  # whoever reads A's tap leaves a probe there
    connection = a.wrapped("notifications", track=True)
    with antipode.scope():
        connection.send(QUEUE, "")
    antipode_activemq.register("in-b", tap=tap_of(b), on_unfit="unproven")
    foreign = antipode.EMPTY.including(WriteId("in-b", b"x", Opaque("never-arrived")))

    def unproven() -> bool:
        result = antipode.barrier(foreign, timeout=0.5, stores=["in-b"], on_timeout="proceed", on_unproven="proceed")
        judged = result.stores["in-b"]
        assert judged.verdict is not Verdict.VISIBLE
        return judged.verdict is Verdict.UNPROVEN and "network connector" in judged.reason

    wait_for("the foreign probe", unproven, 20)
    findings = ActiveMQShim.diagnose(f"{b.url}#{TAP}")
    assert any("excludedDestinations" in finding.cure for finding in findings)
    with pytest.raises(antipode.UnfitStoreError, match="excludedDestinations"):
        antipode_activemq.register("again-in-b", tap=tap_of(b))
    a.close()
    b.close()
