"""What operators are told of a broker and a tap (`antipode doctor amqp://…`)."""

from __future__ import annotations

import uuid

import pytest
from antipode.shim.administration import (
    Administration,
    InitRequest,
    Level,
    StorePreparer,
    administration_of,
    found_shims,
)
from antipode_rabbitmq import RabbitMQShim, Tap, declare_tap
from antipode_rabbitmq.doctor import probe
from rabbit_regions import Region


def test_the_shim_is_found_by_its_entry_point_and_scheme() -> None:
    assert isinstance(RabbitMQShim, Administration)
    assert [found.shim for found in found_shims() if found.name == "rabbitmq"] == [RabbitMQShim]
    assert administration_of("amqps://broker/vhost") is RabbitMQShim


def test_findings(b: Region) -> None:
    levels = [finding.level for finding in RabbitMQShim.diagnose(b.url)]
    assert levels == [Level.OK, Level.WARNING]
    queue = declare_tap(b.own, b.exchange(), f"tap-{uuid.uuid4().hex[:12]}")
    b.queues.append(queue)
    (fine,) = RabbitMQShim.diagnose(f"{b.url}#{queue}")
    assert fine.level is Level.OK
    (missing,) = RabbitMQShim.diagnose(f"{b.url}#no-such-queue")
    assert missing.level is Level.UNPROVEN
    assert "declare_tap" in missing.cure


def test_what_a_broker_refuses_or_does_not_answer_is_raised_by_the_client(b: Region) -> None:
    with pytest.raises(ConnectionError, match=r"[Rr]efused"):
        RabbitMQShim.diagnose("amqp://guest:guest@127.0.0.1:1/%2F#tap")


def test_there_are_no_epochs() -> None:
    assert RabbitMQShim.epochs("amqp://broker") == []
    with pytest.raises(ValueError, match="no epochs"):
        RabbitMQShim.settle("amqp://broker", "e")


def test_init_declares_the_tap_that_doctor_misses(b: Region) -> None:
    shim: StorePreparer = RabbitMQShim
    assert isinstance(shim, StorePreparer)
    exchange, queue = b.exchange(), f"tap-{uuid.uuid4().hex[:12]}"
    url = f"{b.url}#{queue}"
    assert [each.level for each in RabbitMQShim.diagnose(url)] == [Level.UNPROVEN]
    declare, grant = shim.preparations(url, InitRequest("notifications", "bob", {"exchange": exchange}))
    assert declare.run is not None
    b.queues.append(queue)
    for _ in range(2):  # it may be done again
        assert declare.run() == "declared"
    assert [each.level for each in RabbitMQShim.diagnose(url)] == [Level.OK]
    assert grant.run is None  # it replaces what the user may do: a person's decision
    assert "set_permissions" in grant.text
    assert "bob" in grant.text
    probe(Tap.of(url))


def test_init_needs_nothing_where_nothing_is_tracked() -> None:
    assert RabbitMQShim.preparations("amqp://broker/%2F", InitRequest("notifications")) == []
    (grant,) = RabbitMQShim.preparations("amqp://broker/blog#a.tap", InitRequest("notifications"))
    assert grant.text == r"set_permissions -p blog USER '^$' '^$' '^a\.tap$'"
