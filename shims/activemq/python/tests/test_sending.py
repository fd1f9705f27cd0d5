"""What is sent carries the lineage; what the application gave stays its own."""

from __future__ import annotations

import uuid
from typing import Any

import antipode
import antipode_activemq
import pytest
import stomp
import stomp.exception
from activemq_regions import Blog, Inbox, Link, Region, wait_for
from antipode import ConfigurationError
from antipode._base.otel_context import hold
from antipode._facade.branches import Branch
from antipode._scope.context import BLOCK
from antipode.messages import HEADER, JMS_HEADER
from antipode.testing.inventory import check_makes_none
from antipode_activemq import MARK_HEADER
from antipode_activemq.connection import _wrapped_class


def test_the_class_of_a_wrapped_connection_makes_no_other() -> None:
    """SHIM-50"""
    check_makes_none(_wrapped_class(stomp.Connection12), _wrapped_class(stomp.Connection10))


def test_it_is_the_clients_own_connection(b: Region) -> None:
    """SHIM-1, SHIM-2."""
    plain = b.lab.plain_connection("b")
    connection = antipode_activemq.wrap(plain, store="notifications")
    assert isinstance(connection, stomp.StompConnection12)
    assert connection.transport is plain.transport
    again = antipode_activemq.wrap(connection, store="others")
    assert again._antipode.plain is plain
    listener = Inbox()
    connection.set_listener("mine", listener)
    assert connection.get_listener("mine") is listener
    assert connection.get_listener("nobody") is None
    connection.remove_listener("mine")
    assert plain.get_listener("mine") is None
    with pytest.raises(AssertionError, match="destination"):
        connection.send(None, "")
    with pytest.raises(stomp.exception.NotConnectedException):
        connection.send("/queue/x", "")
    with pytest.raises(TypeError, match="stomp"):
        antipode_activemq.wrap(object(), store="notifications")


@pytest.mark.parametrize("version", ["10", "11", "12"])
def test_every_version_of_stomp_carries_it(b: Region, blog: Blog, version: str) -> None:
    """PROP-17, PROP-18."""
    queue = b.queue()
    made = getattr(stomp, f"StompConnection{version}")([("127.0.0.1", b.lab.server("b").port)])
    connection = b.wrapped(plain=made)
    lineages: list[antipode.Lineage] = []

    def callback(frame: Any) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        lineages.append(scope.lineage)

    box = b.inbox(queue, callback, connection=connection)
    with antipode.scope() as scope:
        blog.posts_a.set("post:1", "hi")
        connection.send(queue, "hi:\n\\ü", content_type="text/plain", headers={"mine": "1"}, other="2")
        expected = scope.lineage
    wait_for("the message", lambda: lineages)
    frame = box.next()
    assert lineages == [expected]
    assert frame.body == "hi:\n\\ü"
    assert (frame.headers["mine"], frame.headers["other"]) == ("1", "2")
    assert antipode.deserialize(frame.headers[JMS_HEADER]) == expected
    assert HEADER not in frame.headers
    assert MARK_HEADER not in frame.headers


def test_outside_a_scope_and_without_lineage_nothing_is_added(b: Region) -> None:
    queue = b.queue()
    box, connection = b.inbox(queue), b.wrapped()
    given = {"mine": "1"}
    connection.send(queue, "", headers=given)
    with antipode.scope():
        connection.send(queue, "", headers=given)
    for _ in range(2):
        assert JMS_HEADER not in box.next().headers
    assert given == {"mine": "1"}


def test_stamped_messages_carry_the_empty_lineage_and_lack_is_a_loss(b: Region) -> None:
    queue = b.queue()
    connection = b.wrapped(stamped=True)
    found: list[Any] = []
    b.inbox(queue, lambda _: found.append(antipode.current_scope().lineage), connection=connection)  # type: ignore[union-attr]
    with antipode.scope():
        connection.send(queue, "")
    wait_for("the first", lambda: found)
    b.own.send(queue, "")
    wait_for("the second", lambda: len(found) == 2)
    assert [lineage.is_complete() for lineage in found] == [True, False]


def test_headers_of_another_message_are_joined_as_far_as_they_are_believed(b: Region, blog: Blog) -> None:
    """TRUST-5: what was not believed does not go on either."""
    queue = b.queue()
    box, connection = b.inbox(queue), b.wrapped()
    theirs = antipode.deserialize("1~blog..0123456789abcdef.7")
    with antipode.scope() as scope:
        blog.posts_a.set("post:1", "hi")
        connection.send(queue, "", headers={HEADER: theirs.serialize(), "mine": "1"})
        expected = scope.lineage | theirs
    headers = box.next().headers
    assert antipode.deserialize(headers[JMS_HEADER]) == expected
    assert HEADER not in headers
    assert headers["mine"] == "1"
    with antipode.testing.isolated():
        closed = b.wrapped(lineage_in=False, lineage_out=False)
        with antipode.scope():
            closed.send(queue, "", headers={JMS_HEADER: theirs.serialize()})
    assert JMS_HEADER not in box.next().headers


@pytest.mark.parametrize("options", [{}, {"track": True, "mode": "off"}], ids=["untracked", "off"])
def test_headers_of_a_tracked_message_leave_their_mark_behind(b: Region, options: dict[str, Any]) -> None:
    """PROP-37: a copy that is not tracked would prove that the first one arrived."""
    queue, copies = b.queue(), b.queue()
    box, copied = b.inbox(queue), b.inbox(copies)
    with antipode.scope():
        b.wrapped(track=True).send(queue, "42", headers={"mine": "1"})
    received = box.next().headers
    assert received[MARK_HEADER]
    with antipode.testing.isolated():
        plain = b.wrapped(**options)
        with antipode.scope():
            plain.send(copies, "in a scope", headers=received)
        plain.send(copies, "outside", headers=received)
    for _ in range(2):
        headers = copied.next().headers
        assert MARK_HEADER not in headers
        assert headers["mine"] == "1"
        assert headers[JMS_HEADER] == received[JMS_HEADER]
    assert MARK_HEADER in received


def test_a_header_of_the_applications_own_is_left_alone(
    b: Region, blog: Blog, caplog: pytest.LogCaptureFixture
) -> None:
    queue = b.queue()
    box, connection = b.inbox(queue), b.wrapped()
    with antipode.scope():
        blog.posts_a.set("post:1", "hi")
        connection.send(queue, "", headers={JMS_HEADER: "family tree"})
    assert box.next().headers[JMS_HEADER] == "family tree"
    assert "Give the application's header another name" in caplog.text


def test_with_mode_off_nothing_is_added(b: Region) -> None:
    """PROP-26."""
    queue = b.queue()
    box, connection = b.inbox(queue), b.wrapped(track=True, mode="off")
    with antipode.scope() as scope:
        connection.send(queue, "")
        assert not scope.lineage
    assert not {JMS_HEADER, MARK_HEADER} & set(box.next().headers)


# Receipts and transactions: when a tracked message counts


def test_with_a_receipt_a_message_is_pending_until_it_has_come(b: Region, link: Link) -> None:
    """SHIM-6."""
    connection = antipode_activemq.wrap(link.connection(), store="notifications", track=True)
    box = Inbox()
    connection.set_listener("", box)
    b.connected(connection)
    link.silence()
    with antipode.scope() as scope:
        connection.send(b.queue(), "", receipt="r")
        assert not scope.recorded_lineage
        assert scope.pending
        assert not scope.outgoing().is_complete(["notifications"])
        link.heal()
        wait_for("the receipt", lambda: "r" in box.receipts)
        assert len(scope.lineage) == 1
        assert not scope.pending


def test_whoever_is_told_of_a_receipt_finds_the_write(b: Region) -> None:
    connection = b.wrapped(track=True)
    found: list[int] = []
    with antipode.scope() as scope:

        class Told(stomp.ConnectionListener):  # type: ignore[misc]
            def on_receipt(self, frame: Any) -> None:
                found.append(len(scope.lineage))

        connection.set_listener("", Told())
        connection.send(b.queue(), "", receipt=uuid.uuid4().hex)
        wait_for("the receipt", lambda: found)
    assert found == [1]


def test_a_refused_message_leaves_nothing_and_a_broken_connection_a_doubt(b: Region, link: Link) -> None:
    refused = b.wrapped(track=True, user="reader")
    box = Inbox()
    refused.set_listener("box", box)
    with antipode.scope() as scope:
        refused.send("/queue/readers.only", "", receipt="r")
        wait_for("the refusal", lambda: box.errors)
        wait_for("its end", lambda: not scope.pending)
        assert not scope.lineage
    connection = antipode_activemq.wrap(link.connection(), store="notifications", track=True)
    b.connected(connection)
    link.silence()
    with antipode.scope() as scope:
        connection.send(b.queue(), "", receipt="r")
        link.cut()
        wait_for("the end", lambda: scope.pending and scope.pending[0].unknown)
        assert not scope.recorded_lineage
        assert not scope.outgoing().is_complete(["notifications"])


def in_flight(scope: antipode.Scope) -> int:
    """How many writes are pending now."""
    return len(scope.pending)


def test_a_transaction_counts_when_it_is_committed_or_never(b: Region) -> None:
    """SHIM-11, SCOPE-24: for who sent it, and for who commits it."""
    queue = b.queue()
    connection = b.wrapped(track=True)
    box = Inbox()
    connection.set_listener("box", box)
    with antipode.scope() as scope:
        first = connection.begin()
        connection.send(queue, "1", transaction=first)
        connection.send(queue, "2", transaction=first)
        second = connection.begin()
        connection.send(queue, "3", transaction=second)
        assert not scope.recorded_lineage
        assert in_flight(scope) == 3
        with antipode.scope() as committing:
            connection.commit(first, receipt="committed")
            assert in_flight(scope) == 3
            assert in_flight(committing) in (0, 2)  # the receipt may be there
            wait_for("the receipt", lambda: "committed" in box.receipts)
            assert len(scope.lineage) == 2
            assert len(committing.lineage) == 2
        assert in_flight(scope) == 1
        connection.abort(second)
        assert in_flight(scope) == 0
        third = connection.begin()
        connection.send(queue, "4", transaction=third)
        with antipode.scope() as committing:
            connection.commit(third)
        assert len(scope.lineage) == 3
        assert len(committing.lineage) == 1
        fourth = connection.begin()
        connection.send(queue, "5", transaction=fourth)
        connection.disconnect()
        wait_for("the broker's own rollback", lambda: not scope.pending)
        assert len(scope.lineage) == 3
    received = b.inbox(queue)
    wait_for("what was committed", lambda: len(received.frames) == 3)
    assert received.bodies == ["1", "2", "4"]


@pytest.mark.parametrize("destination", ["/topic/posts", "topic://posts", "/queue/a,/queue/b"])
def test_a_task_goes_to_no_place_with_several_takers(b: Region, destination: str) -> None:
    """BRANCH-28: nothing leaves; a queue has one taker."""
    connection = b.wrapped()
    with antipode.scope() as scope:
        block = Branch(scope, "orders", 30.0, "here")
        with hold(BLOCK, block), pytest.raises(ConfigurationError, match="AP119"):
            connection.send(destination, "task")
        assert not block.announced
        with hold(BLOCK, block):
            connection.send(b.queue(), "task")
        assert len(block.announced) == 1
