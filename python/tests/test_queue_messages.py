"""What the shims of queues share of one message: its scope, a lineage that is not there, when it goes back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from antipode import ConfigurationError, Redeliver, WriteId
from antipode._scope import lost_writes
from antipode._scope.operations import append
from antipode._scope.pending_write import PendingWrite
from antipode.messages import HEADER, JMS_HEADER
from antipode.shim.queue_messages import (
    MessageDelivery,
    QueueOptions,
    delivered,
    note_unstamped,
    redeliver_seconds,
    text_to_send,
)
from antipode.testing import isolated
from fakes import fake_store

TEXT = "1~s.k._.m"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


def options(*, stamped: bool = True, lineage_in: bool | None = None) -> QueueOptions:
    store = fake_store("queue")
    return QueueOptions(store, False, stamped, lineage_in, None, None)


def is_lost(headers: dict[Any, Any], **more: Any) -> bool:
    """Whether a message with these headers leaves its scope incomplete."""
    given = options(**more)
    with delivered(given, MessageDelivery(True, "", headers), ended=lambda: None, give_back=raised) as scope:
        note_unstamped(given, scope, headers)
        return not scope.lineage.is_complete()


def raised(error: Redeliver) -> None:
    raise AssertionError("it does not go back") from error


@pytest.mark.parametrize("name", [HEADER, JMS_HEADER, HEADER.title(), JMS_HEADER.upper()])
def test_a_lineage_by_any_of_its_names_is_one(name: str) -> None:
    """PROP-17: as the scope is filled from."""
    assert not is_lost({name: TEXT})
    assert is_lost({name: None}), "a header without a value is none"


@pytest.mark.parametrize("headers", [{}, {"other": "1"}, {1: TEXT}])
def test_a_stamped_message_without_one_has_lost_it(headers: dict[Any, Any]) -> None:
    """TRUST-28"""
    assert is_lost(headers)
    assert not is_lost(headers, stamped=False)
    assert not is_lost(headers, lineage_in=False)


@pytest.mark.parametrize(("given", "seconds"), [(None, None), (0, 0), (1.5, 1.5), (timedelta(minutes=1), 60.0)])
def test_a_delay_is_in_seconds(given: Any, seconds: float | None) -> None:
    """API section 3a"""
    assert redeliver_seconds(given) == seconds


@pytest.mark.parametrize("given", [-1, 86_400, timedelta(days=1), timedelta(seconds=-1), float("nan")])
def test_a_delay_that_cannot_be_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="redeliver_delay"):
        redeliver_seconds(given)


def test_a_message_goes_back_when_its_scope_has_ended() -> None:
    """BAR-45, SCOPE-6"""
    told: list[Any] = []
    delivery = MessageDelivery(True, "", {HEADER: TEXT})
    error = Redeliver("later")

    def handle() -> None:
        with delivered(options(), delivery, ended=lambda: told.append("ended"), give_back=told.append) as scope:
            assert scope.lineage.serialize() == TEXT
            assert scope.queue == "queue"
            raise error

    handle()
    assert told == ["ended", error]
    assert not delivery.can_redeliver


def test_a_message_that_was_settled_does_not() -> None:
    """BAR-45"""
    told: list[Any] = []

    def handle() -> None:
        delivery = MessageDelivery(True, "", {})
        with delivered(options(), delivery, ended=lambda: told.append("ended"), give_back=raised):
            delivery.settle("acknowledged")
            raise Redeliver("later")

    with pytest.raises(Redeliver):
        handle()
    assert told == ["ended"]


def test_another_messages_lineage_that_is_not_believed_leaves_a_mark_outside_any_scope() -> None:
    """SCOPE-31, TRUST-5: it goes, and nothing says any more what the message depends on."""
    append(WriteId.position("s", "e", 1))
    assert text_to_send(options(), {HEADER: TEXT}, None) == TEXT
    assert text_to_send(options(lineage_in=False), {HEADER: TEXT}, None) == "1~_.i"
    assert text_to_send(options(), {}, None) == "1~_.i"


def test_a_second_write_that_begins_while_one_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCOPE-31: in another thread; what is known already is never missed."""

    class First(list[PendingWrite]):
        def __iter__(self) -> Iterator[PendingWrite]:
            lost_writes.begun_outside(PendingWrite("s"))
            return super().__iter__()

    monkeypatch.setattr(lost_writes._Process, "first", First([PendingWrite("s")]))
    assert lost_writes.knows_lineages()
