"""Messages on real servers: every way to publish and send, raw and wrapped, received and given back."""

from __future__ import annotations

import time
from typing import Any

import antipode
import antipode_sns_sqs
import pytest
from antipode import ConfigurationError
from antipode_sns_sqs import ATTRIBUTE, scope_of
from sns_regions import Blog, Regions, attribute


def depend(blog: Blog) -> None:
    """The current scope depends on a write that does not come to B."""
    blog.store.freeze("b")
    blog.posts_a.set("post:42", "hi")


def carried(message: Any) -> str:
    """What a message carries, whose lineage its receiver's scope has."""
    with scope_of(message) as scope:
        return scope.lineage.serialize()


def test_every_form_of_publishing(regions: Regions, blog: Blog) -> None:
    """PROP-17: one attribute a message, also in batches; clients and resources, delivered raw and wrapped."""
    raw, wrapped = regions.queue(), regions.queue(raw=False)
    client = antipode_sns_sqs.wrap(regions.sns(), store="notifications")
    topic = antipode_sns_sqs.wrap(regions.lab.resource("a", "sns").Topic(regions.topic), store="notifications")
    batch = [{"Id": str(number), "Message": f"batch {number}"} for number in range(3)]
    with antipode.scope() as scope:
        depend(blog)
        client.publish(TopicArn=regions.topic, Message="client", MessageAttributes={"k": attribute("v")})
        client.publish(TargetArn=regions.topic, Message="target")
        topic.publish(Message="resource", Subject="s")
        assert len(client.publish_batch(TopicArn=regions.topic, PublishBatchRequestEntries=batch)["Successful"]) == 3
        text = scope.lineage.serialize()
    for queue in (raw, wrapped):
        messages = regions.take(queue, count=6)
        assert [carried(message) for message in messages] == [text] * 6


def test_every_form_of_sending(regions: Regions, blog: Blog) -> None:
    """PROP-17."""
    queue = regions.queue(topic="")
    client = antipode_sns_sqs.wrap(regions.sqs(), store="notifications")
    resource = antipode_sns_sqs.wrap(regions.lab.resource("b", "sqs"), store="notifications").Queue(queue)
    entries = [{"Id": str(number), "MessageBody": f"batch {number}"} for number in range(3)]
    with antipode.scope() as scope:
        depend(blog)
        client.send_message(QueueUrl=queue, MessageBody="client")
        resource.send_message(MessageBody="resource", MessageAttributes={"k": attribute("v")})
        resource.send_messages(Entries=entries)
        text = scope.lineage.serialize()
    messages: list[Any] = []
    while len(messages) < 5:
        for message in resource.receive_messages(MaxNumberOfMessages=10, WaitTimeSeconds=5):
            messages.append(message)
            assert carried(message) == text
            message.delete()
    assert {message.body for message in messages} == {"client", "resource", "batch 0", "batch 1", "batch 2"}


def test_fifo(regions: Regions, blog: Blog) -> None:
    """What depends on another lineage is the same message to a FIFO topic; and its order stays."""
    topic = regions.new_topic(".fifo")
    queue = regions.queue(topic=topic, end=".fifo", ContentBasedDeduplication="true")
    client = antipode_sns_sqs.wrap(regions.sns(), store="notifications", track=True)
    with antipode.scope() as scope:
        for number in range(3):
            client.publish(TopicArn=topic, Message=str(number), MessageGroupId="g")
        depend(blog)
        client.publish(TopicArn=topic, Message="0", MessageGroupId="g")
        assert len(list(scope.lineage.of_store("notifications"))) == 3, "the repetition has the first one's mark"
    regions.lab.wait_arrived()  # moto knows a repetition only while the first one has not been deleted
    assert [message["Body"] for message in regions.take(queue, count=3)] == ["0", "1", "2"]


def test_a_receiver_gets_the_attribute_without_asking(regions: Regions, blog: Blog) -> None:
    queue = regions.queue()
    topics = antipode_sns_sqs.wrap(regions.sns(), store="notifications")
    queues = antipode_sns_sqs.wrap(regions.sqs(), store="notifications")
    with antipode.scope():
        depend(blog)
        for _ in range(2):
            topics.publish(TopicArn=regions.topic, Message="42", MessageAttributes={"k": attribute("v")})
    plain = regions.receive(queues, queue)
    assert set(plain["MessageAttributes"]) == {ATTRIBUTE}, "nothing else than was asked for"
    asked = regions.receive(queues, queue, MessageAttributeNames=["k"])
    assert set(asked["MessageAttributes"]) == {"k", ATTRIBUTE}


def test_ten_attributes_arrive_and_eleven_would_not(regions: Regions, blog: Blog) -> None:
    """PROP-19: with raw delivery SNS discards the message over the eleventh."""
    queue = regions.queue()
    client = antipode_sns_sqs.wrap(regions.sns(), store="notifications")
    ten = {f"k{number}": attribute("v") for number in range(10)}
    with antipode.scope():
        depend(blog)
        client.publish(TopicArn=regions.topic, Message="ours", MessageAttributes=ten)
    (message,) = regions.take(queue)
    assert set(message["MessageAttributes"]) == set(ten)
    regions.sns().publish(
        TopicArn=regions.topic, Message="eleven", MessageAttributes={**ten, ATTRIBUTE: attribute("1")}
    )
    regions.sns().publish(TopicArn=regions.topic, Message="last")
    regions.lab.wait_arrived()
    assert [message["Body"] for message in regions.take(queue)] == ["last"]


def test_a_message_of_a_stamped_queue_without_a_lineage_is_incomplete(regions: Regions) -> None:
    queue = regions.queue()
    regions.sns().publish(TopicArn=regions.topic, Message="an old service's")
    client = antipode_sns_sqs.wrap(regions.sqs(), store="notifications", stamped=True)
    with scope_of(regions.receive(client, queue)) as scope:
        assert not scope.lineage.is_complete()


def test_a_message_goes_back_and_comes_again(regions: Regions, blog: Blog) -> None:
    """BAR-45: after the delay, counted by SQS as a failed delivery."""
    queue = regions.queue()
    topics = antipode_sns_sqs.wrap(regions.sns(), store="notifications")
    queues = antipode_sns_sqs.wrap(regions.sqs(), store="notifications", redeliver_delay=0.4)
    with antipode.scope():
        depend(blog)
        topics.publish(TopicArn=regions.topic, Message="42")
    tries: list[tuple[float, int]] = []
    done: list[Any] = []
    deadline = time.monotonic() + 40
    while not done:
        assert time.monotonic() < deadline
        message = regions.receive(queues, queue, MessageSystemAttributeNames=["ApproximateReceiveCount"])
        with scope_of(message):
            tries.append((time.monotonic(), int(message["Attributes"]["ApproximateReceiveCount"])))
            if len(tries) == 2:
                blog.store.heal("b")
            antipode.barrier(timeout=0.1 if len(tries) == 1 else 20, on_timeout="redeliver")
            done.append(blog.posts_b.get("post:42"))
            queues.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert done == [b"hi"]
    assert [count for _, count in tries] == [1, 2]
    assert tries[1][0] - tries[0][0] >= 0.99, "whole seconds, rounded up"


def test_poison_limits_hold(regions: Regions, blog: Blog) -> None:
    """BAR-45: past `maxReceiveCount` the message is in the dead-letter queue, with its lineage."""
    dead = regions.queue(topic="")
    arn = regions.lab.queue_arn("b", dead.rpartition("/")[2])
    queue = regions.queue(RedrivePolicy=f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "2"}}')
    topics = antipode_sns_sqs.wrap(regions.sns(), store="notifications")
    queues = antipode_sns_sqs.wrap(regions.sqs(), store="notifications", redeliver_delay=0)
    with antipode.scope() as scope:
        depend(blog)
        topics.publish(TopicArn=regions.topic, Message="42")
        text = scope.lineage.serialize()
    for _ in range(2):
        with scope_of(regions.receive(queues, queue)):
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
    assert not queues.receive_message(QueueUrl=queue).get("Messages")
    assert carried(regions.receive(queues, dead)) == text


def test_what_was_deleted_cannot_go_back(regions: Regions, blog: Blog) -> None:
    """BAR-45: refused at the barrier's call."""
    queue = regions.queue(topic="")
    client = antipode_sns_sqs.wrap(regions.sqs(), store="notifications")
    with antipode.scope():
        depend(blog)
        for body in ("one", "batch"):
            client.send_message(QueueUrl=queue, MessageBody=body)
    for batch in (False, True):
        message = regions.receive(client, queue)
        with scope_of(message):
            if batch:
                entry = {"Id": "0", "ReceiptHandle": message["ReceiptHandle"]}
                client.delete_message_batch(QueueUrl=queue, Entries=[entry])
            else:
                client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            with pytest.raises(ConfigurationError, match="deleted already"):
                antipode.barrier(timeout=0, on_timeout="redeliver")


def test_deleting_behind_the_block_is_refused(regions: Regions, blog: Blog) -> None:
    """PROP-36: also in a batch; received again, it may be deleted."""
    queue = regions.queue(topic="")
    client = antipode_sns_sqs.wrap(regions.sqs(), store="notifications", redeliver_delay=0)
    with antipode.scope():
        depend(blog)
        client.send_message(QueueUrl=queue, MessageBody="42")
    [message] = client.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    with scope_of(message) as scope:
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
    assert scope.delivery is not None
    assert scope.delivery.goes_back
    handle = message["ReceiptHandle"]
    with pytest.raises(ConfigurationError, match="would be lost"):
        client.delete_message(QueueUrl=queue, ReceiptHandle=handle)
    with pytest.raises(ConfigurationError, match="would be lost"):
        client.delete_message_batch(QueueUrl=queue, Entries=[{"Id": "1", "ReceiptHandle": handle}])
    [message] = client.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def test_a_message_that_another_process_received(regions: Regions, blog: Blog) -> None:
    """With its client and queue named, it can go back as well."""
    queue = regions.queue(topic="")
    client = antipode_sns_sqs.wrap(regions.sqs(), store="notifications", redeliver_delay=0)
    with antipode.scope():
        depend(blog)
        client.send_message(QueueUrl=queue, MessageBody="42")
    message = regions.sqs().receive_message(QueueUrl=queue, WaitTimeSeconds=5, MessageAttributeNames=["All"])
    with scope_of(message["Messages"][0], client=client, queue_url=queue):
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
    assert regions.take(queue)[0]["Body"] == "42"
