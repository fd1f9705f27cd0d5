"""Making a tap: for the operator or the application's own set-up."""

from __future__ import annotations

import json
from typing import Any, Final

from antipode import ConfigurationError
from botocore.exceptions import ClientError

from antipode_sns_sqs.errors import code_of
from antipode_sns_sqs.probing import TAG, TAG_VALUE

RETENTION_S: Final = 300


def declare_tap(sns: Any, sqs: Any, topic_arn: str, queue: str | None = None, *, retention: int = RETENTION_S) -> str:
    """Declares a tap: a queue with the tag `antipode=tap`, subscribed to a topic. Done again it is the same.

    sns: a client of the topic's region. sqs: a client of the region that waits. queue: the queue's name, by default
    the topic's with `-tap`; each process that waits needs one of its own. retention: seconds that what nobody reads is
    kept, at least 60. Returns the queue's URL, which is the tap's text.

    Raises ConfigurationError for a queue that is there and is no tap.
    """
    topic = topic_arn.rpartition(":")[2]
    queue = queue or f"{topic.removesuffix('.fifo')}-tap"
    if queue.endswith(".fifo"):
        raise ConfigurationError(
            f"{queue}: a tap is a standard queue, also beside a FIFO topic. Give another name", code="AP501"
        )
    url, fresh = _queue(sqs, queue)
    if not fresh and sqs.list_queue_tags(QueueUrl=url).get("Tags", {}).get(TAG) != TAG_VALUE:
        raise ConfigurationError(
            f"there is a queue {queue} already, and it is no tap: reading it would take messages from its consumers. "
            "Give another name",
            code="AP501",
        )
    sqs.tag_queue(QueueUrl=url, Tags={TAG: TAG_VALUE})
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {"MessageRetentionPeriod": str(retention), "Policy": json.dumps(policy(arn, topic_arn))}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    sns.subscribe(
        TopicArn=topic_arn,
        Protocol="sqs",
        Endpoint=arn,
        Attributes={"RawMessageDelivery": "true"},
        ReturnSubscriptionArn=True,
    )
    return str(url)


def policy(queue_arn: str, topic_arn: str) -> dict[str, Any]:
    """The queue's policy: the topic may send to it."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}},
            }
        ],
    }


def _queue(sqs: Any, name: str) -> tuple[str, bool]:
    """A queue's URL, and whether it was made now."""
    try:
        return sqs.get_queue_url(QueueName=name)["QueueUrl"], False
    except ClientError as error:
        if code_of(error) not in ("NonExistentQueue", "QueueDoesNotExist"):
            raise
    return sqs.create_queue(QueueName=name)["QueueUrl"], True
