"""What operators are told of a broker and a tap (`antipode doctor stomp://…`)."""

from __future__ import annotations

import pytest
from activemq_regions import TAP, Region
from antipode.shim.administration import (
    Administration,
    InitRequest,
    Level,
    StorePreparer,
    administration_of,
    found_shims,
)
from antipode_activemq import ActiveMQShim


def test_the_shim_is_found_by_its_entry_point_and_scheme() -> None:
    assert isinstance(ActiveMQShim, Administration)
    assert [found.shim for found in found_shims() if found.name == "activemq"] == [ActiveMQShim]
    assert administration_of("stomp://broker:61613") is ActiveMQShim


def test_findings(b: Region) -> None:
    levels = [finding.level for finding in ActiveMQShim.diagnose(b.url)]
    assert levels == [Level.OK, Level.WARNING]
    fine, links = ActiveMQShim.diagnose(f"{b.url}#{TAP}")
    assert fine.level is Level.OK
    assert "ActiveMQ/5.17" in fine.what
    assert "excludedDestinations" in links.cure
    (past,) = ActiveMQShim.diagnose(f"{b.url}#antipode.tap.without-past")
    assert past.level is Level.UNPROVEN
    assert "fixedCountSubscriptionRecoveryPolicy" in past.cure
    (login,) = ActiveMQShim.diagnose(b.url.replace("app:app", "app:wrong"))
    assert login.level is Level.UNPROVEN


def test_a_broker_that_does_not_answer() -> None:
    with pytest.raises(ConnectionError, match="out of reach"):
        ActiveMQShim.diagnose(f"stomp://app:app@127.0.0.1:1#{TAP}")


def test_there_are_no_epochs() -> None:
    assert ActiveMQShim.epochs("stomp://broker") == []
    with pytest.raises(ValueError, match="no epochs"):
        ActiveMQShim.settle("stomp://broker", "e")


def test_init_prints_lines_of_the_brokers_configuration() -> None:
    shim: StorePreparer = ActiveMQShim
    assert isinstance(shim, StorePreparer)
    assert shim.preparations("stomp://broker", InitRequest("notifications", None, {})) == []
    steps = shim.preparations(
        "stomp://broker", InitRequest("notifications", None, {"queue": "orders", "group": "apps"})
    )
    assert {step.tool for step in steps} == {"activemq.xml"}
    assert not [step for step in steps if step.run is not None], "no client of messages can do any of it"
    text = "\n".join(step.text for step in steps)
    for words in ("antipode.tap.orders", 'read="apps"', "fixedCountSubscriptionRecoveryPolicy", "excludedDestinations"):
        assert words in text
