"""What leaves: the lineage in a copy of the headers, and nothing else is changed."""

from __future__ import annotations

import copy
import inspect
import logging
from typing import Any

import antipode
import antipode_rabbitmq
import pika
import pytest
from antipode import EMPTY, ConfigurationError, Lineage, Ordered, Trust, WriteId, configure
from antipode._base.otel_context import hold
from antipode._facade.branches import Branch
from antipode._scope.context import BLOCK
from antipode._store.store import join_store
from antipode.messages import HEADER, JMS_HEADER
from antipode_rabbitmq import RabbitMQShim
from antipode_rabbitmq.marks import mark_of
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ChannelWrongStateError, UnroutableError
from rabbit_regions import Blog, Region, delivered, properties, wait_for

WRITE = WriteId.position("blog", "0-1", 42)
TEXT = "1~blog..0-1.42"


def headers_after(region: Region, channel: Any, queue: str, given: Any = None, **options: Any) -> Any:
    channel.basic_publish("", queue, b"body", given, **options)
    return region.get(queue)[1].headers


def test_a_wrapped_channel_is_still_the_clients_own(a: Region) -> None:
    plain = a.channel()
    channel = antipode_rabbitmq.wrap(plain, store="notifications")
    assert isinstance(channel, BlockingChannel)
    assert type(plain) is BlockingChannel
    assert channel.connection is plain.connection
    assert channel.channel_number == plain.channel_number
    queue = a.queue()
    with antipode.scope():
        antipode.append(WRITE)
        plain.basic_publish("", queue, b"plain")
        channel.basic_publish("", queue, b"wrapped")
    assert a.get(queue)[1].headers is None, "the channel that was passed in stays plain"
    assert a.get(queue)[1].headers == {HEADER: TEXT}
    with channel as entered:
        assert entered is channel
    assert plain.is_closed
    assert channel.is_closed
    with pytest.raises(ChannelWrongStateError):
        channel.basic_publish("", queue, b"")


def test_wrapping_again_replaces_the_options(a: Region) -> None:
    once = a.wrapped()
    twice = antipode_rabbitmq.wrap(once, store="other", lineage_out=False)
    queue = a.queue()
    with antipode.scope():
        antipode.append(WRITE)
        assert headers_after(a, twice, queue) is None
    with pytest.raises(TypeError, match=r"connection\.channel"):
        antipode_rabbitmq.wrap(once.connection, store="notifications")


def test_the_callers_properties_are_not_touched(a: Region) -> None:
    channel, queue = a.wrapped(), a.queue()
    given = properties(headers={"mine": 1}, message_id="m", priority=3, correlation_id="c", content_type="text/plain")
    before = copy.deepcopy(given)
    with antipode.scope():
        antipode.append(WRITE)
        channel.basic_publish("", queue, b"body", given)
    assert given == before
    assert given.headers == {"mine": 1}
    _, received, body = a.get(queue)
    assert body == b"body"
    assert received.headers == {"mine": 1, HEADER: TEXT}
    assert (received.message_id, received.priority, received.correlation_id) == ("m", 3, "c")


def test_nothing_is_added_without_a_lineage(a: Region) -> None:
    channel, queue = a.wrapped(), a.queue()
    assert headers_after(a, channel, queue) is None, "outside any scope"
    with antipode.scope():
        assert headers_after(a, channel, queue) is None, "an empty lineage"


def test_a_stamped_queue_carries_the_empty_lineage_too(a: Region) -> None:
    channel, queue = a.wrapped(stamped=True), a.queue()
    with antipode.scope():
        assert headers_after(a, channel, queue) == {HEADER: "1"}
    assert headers_after(a, channel, queue) is None, "outside any scope nobody knows"


def test_no_identifier_of_the_message_is_appended(a: Region) -> None:
    """PROP-20, SHIM-17."""
    channel, queue = a.wrapped(), a.queue()
    with antipode.scope() as scope:
        channel.basic_publish("", queue, b"", properties(message_id="m"))
        assert scope.lineage == EMPTY


def test_trust_and_options_decide_what_leaves(a: Region) -> None:
    queue = a.queue()
    shut, channel = a.wrapped(lineage_out=False), a.wrapped()
    with antipode.scope():
        antipode.append(WRITE)
        assert headers_after(a, shut, queue) is None
        relayed = headers_after(a, shut, queue, properties(headers={HEADER: "1~x..e.1", "mine": 1}))
        assert relayed == {"mine": 1}, "what came in must not leave by such a channel either"
        configure(trust=Trust.NONE)
        assert headers_after(a, channel, queue) is None
        configure(trust=Trust.KEY, keys={"k": b"0123456789abcdef"})
        assert headers_after(a, channel, queue)[HEADER].startswith(f"{TEXT}~_.h.k.")


def test_an_applications_own_header_of_that_name_is_left_alone(a: Region, caplog: pytest.LogCaptureFixture) -> None:
    channel, queue = a.wrapped(), a.queue()
    with antipode.scope(), caplog.at_level(logging.WARNING, "antipode"):
        antipode.append(WRITE)
        for own in ("the horse's", 7, {"a": 1}, b"\xff\xfe"):
            assert headers_after(a, channel, queue, properties(headers={HEADER: own})) == {HEADER: own}
    assert "is no lineage" in caplog.text


def test_properties_that_came_in_may_be_published_again(a: Region) -> None:
    """A relay: what the message depended on goes on, joined with what the scope has."""
    channel, queue = a.wrapped(), a.queue()
    came = properties(headers={HEADER: "1~acl..0-1.7"})
    both = properties(headers={HEADER: "1~acl..0-1.7", JMS_HEADER: "1~img..0-1.3", "mine": 1})
    with antipode.scope():
        antipode.append(WRITE)
        assert headers_after(a, channel, queue, came) == {HEADER: "1~acl..0-1.7~blog..0-1.42"}
        sent = headers_after(a, channel, queue, both)
        assert sent == {HEADER: "1~acl..0-1.7~blog..0-1.42~img..0-1.3", "mine": 1}
    assert headers_after(a, channel, queue, came) == {HEADER: "1~acl..0-1.7"}, "outside any scope it goes on as it is"
    configure(trust=Trust.KEY, keys={"k": b"0123456789abcdef"})
    with antipode.scope():
        antipode.append(WRITE)
        sent = headers_after(a, channel, queue, came)[HEADER]
        assert sent.startswith(f"{TEXT}~_.i~_.h.k."), "an unsealed lineage must not be sealed by us, nor look empty"


@pytest.mark.parametrize("message_id", [None, "order-42"])
def test_properties_of_a_tracked_message_leave_their_mark_behind(a: Region, message_id: str | None) -> None:
    """PROP-37: a copy that is not tracked would prove that the first one arrived; an application's own id stays."""
    queue, copies = a.queue(), a.queue()
    tracked = a.wrapped(track=True)
    with antipode.scope():
        tracked.basic_publish("", queue, b"42", properties(message_id=message_id))
    method, received, _ = a.get(queue)
    assert mark_of(received) in received.headers[HEADER]
    plain = antipode_rabbitmq.wrap(a.connection().channel(), store="notifications")
    with antipode_rabbitmq.scope_of(method, received):
        plain.basic_publish("", copies, b"in its scope", received)
    with antipode.scope():
        plain.basic_publish("", copies, b"in another", received)
    plain.basic_publish("", copies, b"outside", received)
    for _ in range(3):
        _, copied, _ = a.get(copies)
        assert mark_of(copied) == message_id
        assert copied.headers[HEADER] == received.headers[HEADER]
    assert mark_of(received) != message_id
    plain.connection.close()


def test_a_lineage_that_was_not_believed_does_not_travel_on(a: Region) -> None:
    """TRUST-5: published again with the properties that it came with, inside a scope and outside any."""
    channel, queue = a.wrapped(lineage_in=False), a.queue()
    for name in (HEADER, JMS_HEADER):
        came = properties(headers={name: "1~acl..0-1.7", "mine": 1})
        with antipode_rabbitmq.scope_of(delivered(), came, channel=channel) as scope:
            assert scope.lineage == EMPTY
            assert headers_after(a, channel, queue, came) == {"mine": 1}
            antipode.append(WRITE)
            assert headers_after(a, channel, queue, came) == {"mine": 1, HEADER: TEXT}
        assert headers_after(a, channel, queue, came) == {"mine": 1, HEADER: "1~_.i"}, "SCOPE-31"
        assert came.headers == {name: "1~acl..0-1.7", "mine": 1}


def test_what_a_consumer_removed_does_not_come_back_by_its_own_message(a: Region) -> None:
    channel, queue = a.wrapped(), a.queue()
    a.channel().basic_publish("", queue, b"", properties(headers={HEADER: "1~acl..0-1.7~blog..0-1.42"}))
    method, received, _ = wait_for("it", lambda: (got := channel.basic_get(queue, auto_ack=True))[0] and got)
    with antipode_rabbitmq.scope_of(method, received, channel=channel, auto_ack=True):
        antipode.remove("acl")
        assert headers_after(a, channel, queue, received) == {HEADER: TEXT}


def test_confirms_and_mandatory_stay_the_clients(a: Region) -> None:
    channel, queue = a.wrapped(), a.queue()
    channel.confirm_delivery()
    with antipode.scope() as scope:
        antipode.append(WRITE)
        assert headers_after(a, channel, queue, mandatory=True) == {HEADER: TEXT}
        with pytest.raises(UnroutableError) as raised:
            channel.basic_publish("", "no-such-queue", b"x", mandatory=True)
        assert raised.value.messages[0].body == b"x"
        with pytest.raises(ChannelClosedByBroker):
            channel.basic_publish("no-such-exchange", "", b"x")
        assert not scope.pending


def test_a_write_that_is_pending_marks_the_message(a: Region) -> None:
    channel, queue = a.wrapped(), a.queue()
    store = join_store("orders", RabbitMQShim)
    with antipode.scope():
        write = store.begin(b"1")
        assert headers_after(a, channel, queue) == {HEADER: "1~_.i.orders"}
        configure(on_pending="raise")
        with pytest.raises(antipode.PendingWriteError):
            channel.basic_publish("", queue, b"too early")
        assert a.count(queue) == 0
        write.abandon()


def test_a_lineage_never_makes_a_frame_too_long(a: Region) -> None:
    """PROP-19: over a frame that is too long a broker closes the connection; the headers of the application pass."""
    queue = a.queue()
    channel = a.wrapped(on_no_room="send")
    strict = a.wrapped(on_no_room="raise")
    frame_max = channel._antipode.frame_max
    assert frame_max >= 4096
    fits = {"big": "x" * (frame_max - 60)}
    with antipode.scope():
        antipode.append(*[WriteId.position(f"store-{n}", "0123456789abcdef", 10**12) for n in range(20)])
        assert headers_after(a, channel, queue, properties(headers=fits)) == fits
        with pytest.raises(antipode.ConfigurationError, match="no room"):
            strict.basic_publish("", queue, b"", properties(headers=fits))
        nearly = {"big": "x" * (frame_max - 200), "nested": {"a": [1]}}
        assert headers_after(a, channel, queue, properties(headers=nearly)) == {**nearly, HEADER: "1~_.i"}
        # As much as the application can send at all: the lineage is missed, and not in silence.
        least = sum(len(piece) for piece in properties(headers={"big": ""}).encode())
        most = {"big": "x" * (frame_max - 20 - least)}
        assert headers_after(a, channel, queue, properties(headers=most)) == most
        with pytest.raises(antipode.ConfigurationError, match="no room"):
            strict.basic_publish("", queue, b"", properties(headers=most))
        small = {"nested": {"a": [1]}}
        assert Lineage.deserialize(headers_after(a, channel, queue, properties(headers=small))[HEADER]).is_complete()


def test_an_instrumented_channel_keeps_its_instrumentation(a: Region) -> None:
    """Instrumentations set methods on the channel itself, before or after it is wrapped (PROP-24)."""
    queue, seen = a.queue(), []
    plain = a.channel()

    def instrument(channel: Any, name: str) -> None:
        original = channel.basic_publish

        def basic_publish(*args: Any, **kw: Any) -> Any:
            seen.append(name)
            return original(*args, **kw)

        channel.basic_publish = basic_publish

    instrument(plain, "before")
    channel = antipode_rabbitmq.wrap(plain, store="notifications")
    instrument(channel, "after")
    with antipode.scope():
        antipode.append(WRITE)
        assert headers_after(a, channel, queue) == {HEADER: TEXT}
    assert seen == ["after", "before"]
    plain.basic_publish("", queue, b"")
    assert seen == ["after", "before", "before"]
    assert a.get(queue)[1].headers is None
    del channel.basic_publish
    with antipode.scope():
        antipode.append(WRITE)
        assert headers_after(a, channel, queue) == {HEADER: TEXT}


def test_a_class_of_the_applications_keeps_its_methods(a: Region) -> None:
    class OwnChannel(BlockingChannel):  # type: ignore[misc]
        def publish_text(self, queue: str, text: str) -> None:
            """Publishes by itself: what it sends must carry the lineage, too."""
            self.basic_publish("", queue, text.encode())

    plain, queue = a.channel(), a.queue()
    plain.__class__ = OwnChannel
    channel = antipode_rabbitmq.wrap(plain, store="notifications")
    assert isinstance(channel, OwnChannel)
    with antipode.scope():
        antipode.append(WRITE)
        channel.publish_text(queue, "hi")
    assert a.get(queue)[1].headers == {HEADER: TEXT}
    assert inspect.signature(type(channel).basic_publish) == inspect.signature(BlockingChannel.basic_publish)
    for name in ("queue_declare", "close", "basic_publish"):
        assert getattr(type(channel), name) is getattr(OwnChannel, name), "documentation tools see pika's own"


def test_bytes_and_subclasses_of_properties_pass(a: Region) -> None:
    class OwnProperties(pika.BasicProperties):  # type: ignore[misc]
        pass

    channel, queue = a.wrapped(), a.queue()
    with antipode.scope():
        antipode.append(WRITE)
        given = OwnProperties(headers={"b": b"\xff"})
        assert headers_after(a, channel, queue, given) == {"b": b"\xff", HEADER: TEXT}


def test_the_lineage_of_a_write_to_a_replicated_store_leaves(a: Region, blog: Blog) -> None:
    channel, queue = a.wrapped(), a.queue()
    with antipode.scope() as scope:
        blog.posts_a.set("post:42", "hi")
        assert Lineage.deserialize(headers_after(a, channel, queue)[HEADER]) == scope.lineage
        version = next(iter(scope.lineage)).version
        assert isinstance(version, Ordered)


def test_a_task_goes_to_no_place_with_several_takers(a: Region) -> None:
    """BRANCH-28: nothing leaves, and nothing is announced, recorded or pending."""
    channel = antipode_rabbitmq.wrap(a.channel(), store="notifications", track=True)
    queue = a.queue()
    copied = properties(headers={"CC": [a.queue()]})
    with antipode.scope() as scope:
        for exchange, given in [("amq.direct", None), ("", copied)]:
            block = Branch(scope, "orders", 30.0, "here")
            with hold(BLOCK, block), pytest.raises(ConfigurationError, match="AP119"):
                channel.basic_publish(exchange, queue, b"task", given)
            assert not block.announced
        assert not scope.lineage
        assert not scope.pending
        block = Branch(scope, "orders", 30.0, "here", single_taker=True)
        with hold(BLOCK, block):
            channel.basic_publish("", queue, b"one", copied)
        assert len(block.announced) == 1
        with hold(BLOCK, Branch(scope, "orders", 30.0, "here")):
            channel.basic_publish("", queue, b"two")
    assert [a.get(queue)[2] for _ in range(2)] == [b"one", b"two"]
