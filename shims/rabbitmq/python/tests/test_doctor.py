"""What operators are told of a broker and a tap (`antipode doctor amqp://…`)."""

from __future__ import annotations

import uuid

import pytest
from antipode.administration import Administration, Level, administration_of, found_shims
from antipode_rabbitmq import RabbitMQShim, declare_tap
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


def test_what_a_broker_refuses_or_does_not_answer_is_raised_by_the_client(b: Region, unused_port: int) -> None:
    with pytest.raises(ConnectionError, match=r"[Rr]efused"):
        RabbitMQShim.diagnose(f"amqp://guest:guest@127.0.0.1:{unused_port}/%2F#tap")


def test_there_are_no_epochs() -> None:
    assert RabbitMQShim.epochs("amqp://broker") == []
    with pytest.raises(ValueError, match="no epochs"):
        RabbitMQShim.settle("amqp://broker", "e")
