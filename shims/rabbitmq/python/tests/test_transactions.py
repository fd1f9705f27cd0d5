"""Transactional channels: tracked messages are pending until the commit (SHIM-11, SCOPE-14, SCOPE-17)."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_rabbitmq
import pika
import pytest
from antipode._scope.scope import Scope
from pika.exceptions import AMQPError
from rabbit_regions import Link, Region, select_channel, wait_for


def count(scope: Scope) -> int:
    return len(scope.pending)


def test_committed_and_rolled_back(a: Region) -> None:
    channel, queue = a.wrapped(track=True), a.queue()
    with antipode.scope() as scope:
        channel.basic_publish("", queue, b"before")
        channel.tx_select()
        channel.basic_publish("", queue, b"dropped")
        assert scope.lineage.incomplete == {"notifications"}
        channel.tx_rollback()
        assert count(scope) == 0
        assert len(scope.lineage) == 1, "the first message's alone"
        for body in (b"one", b"two"):
            channel.basic_publish("", queue, body)
        assert count(scope) == 2
        channel.tx_commit()
        assert count(scope) == 0
        assert len(scope.lineage) == 3
        channel.tx_commit()
    assert [a.get(queue)[2] for _ in range(3)] == [b"before", b"one", b"two"]


def test_who_commits_what_others_published(a: Region) -> None:
    """SCOPE-24: has each message; who rolls it back has nothing."""
    channel, queue = a.wrapped(track=True), a.queue()
    channel.tx_select()
    with antipode.scope():
        channel.basic_publish("", queue, b"one")
    channel.basic_publish("", queue, b"outside")
    with antipode.scope() as committing:
        channel.basic_publish("", queue, b"two")
        assert count(committing) == 1
        channel.tx_commit()
        assert count(committing) == 0
        assert len(committing.lineage) == 3
        assert committing.lineage.is_complete()
    with antipode.scope():
        channel.basic_publish("", queue, b"dropped")
    with antipode.scope():
        channel.tx_rollback()
        assert antipode.serialize() == "1"


def test_a_commit_in_doubt_stays_pending(a: Region) -> None:
    link = Link(a)
    queue = a.queue()
    connection = pika.BlockingConnection(pika.URLParameters(link.url))
    channel = antipode_rabbitmq.wrap(connection.channel(), store="notifications", track=True)
    with antipode.scope() as scope:
        channel.tx_select()
        channel.basic_publish("", queue, b"x")
        link.cut()
        with antipode.scope() as committing, pytest.raises(AMQPError):
            channel.tx_commit()
        for each in (scope, committing):  # SCOPE-24
            assert [write.unknown for write in each.pending] == [True]
            assert each.lineage.incomplete == {"notifications"}


def test_an_asynchronous_commit(a: Region) -> None:
    queue = a.queue()
    before: list[int] = []
    after: list[tuple[int, int]] = []

    def on_channel(channel: Any) -> None:
        def selected(_: Any) -> None:
            with antipode.scope() as scope:
                scope.hold()  # it outlives this callback
                channel.basic_publish("", queue, b"x")
                before.append(len(scope.pending))
            with antipode.scope() as committing:
                committing.hold()
                channel.tx_commit(lambda _: after.extend((len(s.pending), len(s.lineage)) for s in (scope, committing)))
                before.append(len(committing.pending))

        channel.tx_select(selected)

    with select_channel(a, on_channel, track=True) as errors:
        wait_for("the commit", lambda: after or errors)
    assert not errors
    assert before == [1, 1]  # SCOPE-24
    assert after == [(0, 1)] * 2
    assert a.get(queue)[2] == b"x"
