"""The lab's SNS and SQS, on moto."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from antipode_lab import Lab, LabError
from antipode_lab.stores.sns import SnsStore

QUEUE = TOPIC = "notifications"


def receive(lab: SnsStore, region: str, queue: str = QUEUE, timeout: float = 30.0) -> dict[str, Any]:
    """Takes the next message."""
    sqs, url = lab.client(region, "sqs"), lab.queue_url(region, queue)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        answer = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MessageAttributeNames=["All"])
        for message in answer.get("Messages", []):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return dict(message)
    raise AssertionError(f"nothing came to {queue} in {region}")


def publish(lab: SnsStore, body: str, topic: str = TOPIC, **more: Any) -> float:
    """Publishes in A; returns when it began."""
    begun = time.monotonic()
    lab.client("a", "sns").publish(TopicArn=lab.topic_arn(topic), Message=body, **more)
    return begun


def test_lags_partitions_and_restarts() -> None:
    options = {"topics": [TOPIC, "ordered.fifo"], "more": {"c": 30}}
    with Lab("sns", queue_lag="10ms", options={"sns": options}) as whole:
        lab = whole.get(SnsStore)
        attributes = {"k": {"DataType": "String", "StringValue": "v"}}
        begun = publish(lab, "one", MessageAttributes=attributes)
        message = receive(lab, "b")
        assert time.monotonic() - begun > 0.01
        assert (message["Body"], message["MessageAttributes"]) == ("one", attributes)
        assert receive(lab, "c")["Body"] == "one"

        lab.lag("b", "300ms")
        begun = publish(lab, "slow")
        assert receive(lab, "b")["Body"] == "slow"
        assert time.monotonic() - begun >= 0.3
        lab.lag("b", "10ms")

        lab.partition("b")
        publish(lab, "held")
        deadline = time.monotonic() + 20
        while "slow" not in lab.arrived("c", QUEUE) or "held" not in lab.arrived("c", QUEUE):
            assert time.monotonic() < deadline
        assert "held" not in lab.arrived("b", QUEUE)
        assert {status.name: status.link for status in lab.status()} == {"a": None, "b": "cut", "c": "up"}
        lab.heal()
        assert receive(lab, "b")["Body"] == "held"
        lab.wait_arrived()

        lab.create_queue("wrapped", TOPIC, raw=False)
        lab.create_queue("q.fifo", "ordered.fifo")
        publish(lab, "json")
        assert json.loads(receive(lab, "b", "wrapped")["Body"])["Message"] == "json"
        lab.partition("c", mode="silent")
        for number in range(5):
            publish(lab, str(number), "ordered.fifo", MessageGroupId="g", MessageDeduplicationId=str(number))
        lab.heal("c")
        for region in ("b", "c"):
            assert [receive(lab, region, "q.fifo")["Body"] for _ in range(5)] == list("01234")

        lab.restart("b", crash=True)
        publish(lab, "after")
        while receive(lab, "b")["Body"] != "after":
            pass
        with pytest.raises(LabError, match="restarts from nothing"):
            lab.restart("b", "disk")


def test_bad_topologies() -> None:
    """What is wrong is said, and nothing is left behind."""
    for options, words in (
        ({"queues": {"q": "none"}}, "there is no topic 'none'"),
        ({"more": {"c": 1, "d": 1, "e": 1, "f": 1}}, "at most 5 regions"),
        ({"regions": 2}, "unexpected keyword"),
    ):
        with pytest.raises(LabError, match=words):
            with Lab("sns", options={"sns": options}):
                pass
