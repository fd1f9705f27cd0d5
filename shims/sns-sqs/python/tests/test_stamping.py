"""What goes into a message and how it is found again, without a server."""

from __future__ import annotations

import json
from typing import Any

import antipode
import antipode_sns_sqs
import boto3
import pytest
from antipode import ConfigurationError, Lineage, memory
from antipode._base.otel_context import hold
from antipode._facade.branches import Branch
from antipode._scope.context import BLOCK
from antipode.testing import isolated
from antipode_sns_sqs import ATTRIBUTE, Tap
from antipode_sns_sqs.attributes import carried
from antipode_sns_sqs.consuming import _asks_for_ours
from botocore.awsrequest import AWSResponse
from sns_regions import Blog, attribute

LINEAGE = "1~blog.post_3A42._.m1"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:notifications"
QUEUE = "http://127.0.0.1:9/123456789012/notifications"


class Wire:
    """A client whose requests are kept and answered here."""

    def __init__(self, service: str, answer: str = "", status: int = 200) -> None:
        self.sent: list[dict[str, Any]] = []
        self._service, self._answer, self._status = service, answer, status
        self.client = boto3.session.Session().client(
            service,
            region_name="eu-central-1",
            endpoint_url="http://127.0.0.1:9",
            aws_access_key_id="k",
            aws_secret_access_key="s",
        )
        self.client.meta.events.register(f"provide-client-params.{service}.*", self._keep)
        self.client.meta.events.register(f"before-send.{service}.*", self._reply)

    def _keep(self, params: dict[str, Any], **_: Any) -> None:
        self.sent.append(params)

    def _reply(self, request: Any, **_: Any) -> Any:
        class Raw:
            def __init__(self, body: bytes) -> None:
                self._body = body

            def stream(self, **_: Any) -> Any:
                yield self._body

        kind = "text/xml" if self._service == "sns" else "application/x-amz-json-1.0"
        body = self._answer or (
            "<R><PublishResult><MessageId>m</MessageId></PublishResult></R>" if "xml" in kind else "{}"
        )
        return AWSResponse(request.url, self._status, {"content-type": kind}, Raw(body.encode()))


def wrapped(wire: Wire, **options: Any) -> Any:
    return antipode_sns_sqs.wrap(wire.client, store="notifications", **options)


def depending() -> Any:
    """A scope whose lineage is LINEAGE."""
    return antipode.scope(Lineage.deserialize(LINEAGE))


def stamped(wire: Wire, index: int = -1) -> str | None:
    found = wire.sent[index].get("MessageAttributes", {}).get(ATTRIBUTE)
    return None if found is None else str(found["StringValue"])


def test_the_lineage_goes_into_a_copy_of_the_attributes() -> None:
    """PROP-17: one attribute, a String; what the caller gave stays as it was, and the client stays plain (SHIM-1)."""
    wire = Wire("sns")
    client = wrapped(wire)
    assert isinstance(client, type(wire.client))
    given = {"kind": attribute("new")}
    with depending():
        client.publish(TopicArn=TOPIC, Message="42", MessageAttributes=given)
        wire.client.publish(TopicArn=TOPIC, Message="42")
    assert wire.sent[0]["MessageAttributes"] == {"kind": attribute("new"), ATTRIBUTE: attribute(LINEAGE)}
    assert given == {"kind": attribute("new")}
    assert "MessageAttributes" not in wire.sent[1]
    client.publish(TopicArn=TOPIC, Message="42")
    assert wire.sent[2]["MessageAttributes"] == {ATTRIBUTE: attribute("1~_.i")}, "SCOPE-31"


def test_without_track_the_message_is_only_a_carrier() -> None:
    """PROP-20, SHIM-17."""
    wire = Wire("sns")
    with depending() as scope:
        wrapped(wire).publish(TopicArn=TOPIC, Message="42")
        assert scope.lineage.serialize() == LINEAGE


def test_a_tracked_message_carries_its_own_mark() -> None:
    """PROP-29: as a property, which readers of lineages cut; the receiver depends on the message itself."""
    wire = Wire("sns")
    with depending() as scope:
        wrapped(wire, track=True).publish(TopicArn=TOPIC, Message="42")
        (own,) = scope.lineage.of_store("notifications")
    text = stamped(wire)
    assert text is not None
    assert text.endswith(f";mark={own.version.mark}")
    with antipode.message_scope({ATTRIBUTE: text}) as received:
        assert received.lineage == scope.lineage
        assert not received.lineage.incomplete


@pytest.mark.parametrize("service", ["sns", "sqs"])
def test_an_eleventh_attribute_is_never_added(service: str, caplog: pytest.LogCaptureFixture) -> None:
    """PROP-19."""
    wire = Wire(service)
    full = {f"k{number}": attribute("v") for number in range(10)}

    def send(client: Any, attributes: dict[str, Any]) -> None:
        if service == "sns":
            client.publish(TopicArn=TOPIC, Message="42", MessageAttributes=attributes)
        else:
            client.send_message(QueueUrl=QUEUE, MessageBody="42", MessageAttributes=attributes)

    with depending():
        send(wrapped(wire), full)
        assert wire.sent[-1]["MessageAttributes"] == full
        assert "has 10 attributes, and SQS takes 10" in caplog.text
        with pytest.raises(ConfigurationError, match="Use fewer attributes"):
            send(wrapped(wire, on_no_room="raise"), full)
        assert len(wire.sent) == 1, "it is said before anything is sent"
        nine = dict(list(full.items())[:9])
        send(wrapped(wire), nine)
        assert len(wire.sent[-1]["MessageAttributes"]) == 10
        again = {**nine, ATTRIBUTE: attribute(LINEAGE)}
        send(wrapped(wire), again)
        assert len(wire.sent[-1]["MessageAttributes"]) == 10, "its own takes no other place"


def test_a_tracked_message_without_room_leaves_the_lineage_incomplete() -> None:
    wire = Wire("sns")
    full = {f"k{number}": attribute("v") for number in range(10)}
    with depending() as scope:
        wrapped(wire, track=True).publish(TopicArn=TOPIC, Message="42", MessageAttributes=full)
        assert scope.lineage.incomplete
        assert not list(scope.lineage.of_store("notifications"))


def test_a_message_is_not_made_too_long() -> None:
    """PROP-19: where there is room for that much, what was lost does not look empty."""
    wire = Wire("sns")
    client = wrapped(wire)
    own = len(ATTRIBUTE) + len("String")
    with depending():
        client.publish(TopicArn=TOPIC, Message="x" * (262_144 - own - len(LINEAGE)))
        assert stamped(wire) == LINEAGE
        client.publish(TopicArn=TOPIC, Message="x" * (262_144 - own - len(LINEAGE) + 1))
        assert stamped(wire) == "1~_.i"
        client.publish(TopicArn=TOPIC, Message="é" * (262_144 // 2 - 10))
        assert stamped(wire) is None
        with pytest.raises(ConfigurationError, match="Make it shorter"):
            wrapped(wire, on_no_room="raise").publish(TopicArn=TOPIC, Message="x" * 262_130)


def test_a_queue_that_takes_more_has_room() -> None:
    """What is above the least limit without us shows that the queue takes up to 1 MiB."""
    wire = Wire("sqs")
    with depending():
        wrapped(wire).send_message(QueueUrl=QUEUE, MessageBody="x" * 300_000)
    assert stamped(wire) == LINEAGE


def test_a_batch_shares_one_limit() -> None:
    wire = Wire("sqs", '{"Successful": [{"Id": "0"}, {"Id": "1"}], "Failed": []}')
    own = len(ATTRIBUTE) + len("String") + len(LINEAGE)
    entries = [{"Id": "0", "MessageBody": "a"}, {"Id": "1", "MessageBody": "x" * (262_144 - 1 - own)}]
    with depending():
        wrapped(wire).send_message_batch(QueueUrl=QUEUE, Entries=entries)
    sent = wire.sent[0]["Entries"]
    assert [ATTRIBUTE in entry.get("MessageAttributes", {}) for entry in sent] == [True, False]
    assert "MessageAttributes" not in entries[0]


def test_an_attribute_of_the_applications_own_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire("sns")
    with depending():
        wrapped(wire).publish(TopicArn=TOPIC, Message="42", MessageAttributes={ATTRIBUTE: attribute("theirs")})
    assert stamped(wire) == "theirs"
    assert "no lineage; it is left as it is" in caplog.text


def test_attributes_of_another_message_are_joined() -> None:
    """What a message carried goes on with its attributes, and its mark does not."""
    wire = Wire("sns")
    other = {ATTRIBUTE: attribute("1~other.k._.m2;mark=m9")}
    with depending():
        wrapped(wire).publish(TopicArn=TOPIC, Message="42", MessageAttributes=other)
    assert stamped(wire) == "1~blog.post_3A42._.m1~other.k._.m2"
    with antipode.scope():
        wrapped(wire, lineage_in=False).publish(TopicArn=TOPIC, Message="42", MessageAttributes=other)
    assert stamped(wire) is None, "what was not believed does not go on (TRUST-5)"


def test_with_the_mode_off_what_came_in_is_passed_on_and_nothing_added() -> None:
    """PROP-26."""
    wire = Wire("sns")
    with depending() as scope:
        wrapped(wire, track=True, mode="off").publish(TopicArn=TOPIC, Message="42")
        assert scope.lineage.serialize() == LINEAGE
    assert stamped(wire) == LINEAGE


def test_what_may_not_leave_does_not() -> None:
    """TRUST: a tracked message is known by its mark all the same."""
    wire = Wire("sns")
    with depending():
        wrapped(wire, lineage_out=False).publish(TopicArn=TOPIC, Message="42")
        assert stamped(wire) is None
        wrapped(wire, lineage_out=False, track=True).publish(TopicArn=TOPIC, Message="42")
    assert (stamped(wire) or "").startswith("1;mark=")


def test_stamped_says_the_empty_lineage_too() -> None:
    wire = Wire("sns")
    with antipode.scope():
        wrapped(wire, stamped=True).publish(TopicArn=TOPIC, Message="42")
    assert stamped(wire) == "1"


def test_a_write_in_flight_marks_what_leaves() -> None:
    """SCOPE-14, SCOPE-16: a message that leaves in the middle of a write of another store."""
    wire, blog = Wire("sns"), Blog()
    assert isinstance(blog.store, memory.Store)
    (store,) = [each for each in antipode.stores() if each.name == "blog"]
    with antipode.scope():
        write = store.begin("post:1")
        wrapped(wire).publish(TopicArn=TOPIC, Message="42")
        write.abandon()
    assert stamped(wire) == "1~_.i.blog"


def test_what_is_no_message_to_a_topic_is_left_as_it_is() -> None:
    """A telephone, an application's endpoint; and what boto3 itself refuses."""
    wire = Wire("sns")
    client = wrapped(wire, track=True)
    with depending() as scope:
        client.publish(PhoneNumber="+15550100", Message="42")
        client.publish(TargetArn=f"{TOPIC}:app/endpoint".replace("notifications:", "endpoint/x:"), Message="42")
        assert [stamped(wire, 0), stamped(wire, 1)] == [None, None]
        with pytest.raises(Exception, match="Parameter validation failed"):
            client.publish(TopicArn=TOPIC, Message=42)
        with pytest.raises(Exception, match="Parameter validation failed"):
            client.publish_batch(TopicArn=TOPIC, PublishBatchRequestEntries="no")
        assert scope.lineage.serialize() == LINEAGE
        assert not scope.lineage.incomplete, "none of them was sent"


def test_outcomes_of_a_batch_are_each_messages_own() -> None:
    """SHIM-6: taken, refused, and of unknown outcome."""
    failed = '{"Id": "1", "SenderFault": true, "Code": "x"}, {"Id": "2", "SenderFault": false, "Code": "y"}'
    wire = Wire("sqs", f'{{"Successful": [{{"Id": "0"}}], "Failed": [{failed}]}}')
    entries = [{"Id": str(number), "MessageBody": str(number)} for number in range(3)]
    with antipode.scope() as scope:
        wrapped(wire, track=True).send_message_batch(QueueUrl=QUEUE, Entries=entries[:2])
        assert len(list(scope.lineage.of_store("notifications"))) == 1
        assert not scope.pending
        wrapped(wire, track=True).send_message_batch(QueueUrl=QUEUE, Entries=entries)
        assert len(list(scope.lineage.of_store("notifications"))) == 2
        assert len(scope.pending) == 1


def test_a_refusal_leaves_nothing_and_an_error_of_the_service_is_unknown() -> None:
    refused = Wire("sqs", '{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}', 400)
    with antipode.scope() as scope:
        with pytest.raises(refused.client.exceptions.QueueDoesNotExist):
            wrapped(refused, track=True).send_message(QueueUrl=QUEUE, MessageBody="42")
        assert not scope.lineage
        assert not scope.pending


# Reading


@pytest.mark.parametrize(
    "message",
    [
        {"MessageAttributes": {ATTRIBUTE: attribute(LINEAGE)}, "Body": "42"},
        {"messageAttributes": {ATTRIBUTE: {"stringValue": LINEAGE, "dataType": "String"}}, "body": "42"},
        {"Sns": {"MessageAttributes": {ATTRIBUTE: {"Type": "String", "Value": LINEAGE}}, "Message": "42"}},
        {
            "Body": json.dumps(
                {
                    "Type": "Notification",
                    "TopicArn": TOPIC,
                    "MessageAttributes": {ATTRIBUTE: {"Type": "String", "Value": LINEAGE}},
                }
            )
        },
    ],
    ids=["queue", "lambda-sqs", "lambda-sns", "wrapped"],
)
def test_a_lineage_is_found_in_every_form_of_a_message(message: Any) -> None:
    """PROP-17."""
    with antipode_sns_sqs.scope_of(message) as scope:
        assert scope.lineage.serialize() == LINEAGE


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"Body": "{"},
        {"Body": '{"antipode-lineage": "Notification"}'},
        {"Body": '{"Type": "Notification", "MessageAttributes": {"antipode-lineage": {"Value": "1~a"}}}'},
        {"MessageAttributes": None, "Body": None},
    ],
)
def test_what_carries_nothing_is_empty_and_complete(message: Any) -> None:
    with antipode_sns_sqs.scope_of(message) as scope:
        assert not scope.lineage
        assert not scope.lineage.incomplete


@pytest.mark.parametrize(
    "value",
    [attribute("1", "Number"), {"DataType": "Binary", "BinaryValue": b"1"}, attribute("1~x"), attribute(";"), 7],
)
def test_what_cannot_be_read_is_incomplete(value: Any) -> None:
    """PROP-17: a value that is no text, and a text that is no lineage."""
    with antipode_sns_sqs.scope_of({"MessageAttributes": {ATTRIBUTE: value}}) as scope:
        assert scope.lineage.incomplete


def test_marks_are_read_from_properties_alone() -> None:
    """PROP-29."""

    def mark(text: str) -> str | None:
        return carried({"MessageAttributes": {ATTRIBUTE: attribute(text)}}).mark

    assert mark("1~a.k._.m") is None
    assert mark("1;mark=x") == "x"
    assert mark("1;other=y; mark=x") == "x"
    assert mark("1;mark=") is None


def test_which_names_ask_for_ours() -> None:
    for names in (["All"], [".*"], [ATTRIBUTE], ["x", ATTRIBUTE]):
        assert _asks_for_ours(names)
    for names in ([], ["antipode"], ["antipode.*"], ["all"]):
        assert not _asks_for_ours(names)


def test_redelivery_of_a_message_that_nobody_knows_is_refused() -> None:
    """BAR-45."""
    wrapped(Wire("sqs"))
    with antipode_sns_sqs.scope_of({"Body": "42", "ReceiptHandle": "r"}):
        with pytest.raises(ConfigurationError, match="scope_of\\(message, client=…"):
            antipode.barrier(timeout=0, on_timeout="redeliver")


# Settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_no_room": "drop"}, "want send, raise"),
        ({"redeliver_delay": -1}, "at least 0"),
        ({"redeliver_delay": 50_000}, "at most 12 hours"),
        ({"tap": "notifications"}, "a tap is https://sqs.REGION"),
        ({"tap": "https://sqs.us-east-1.amazonaws.com/notifications"}, "a tap is"),
        ({"tap": [7]}, "is no tap"),
    ],
)
def test_options_that_cannot_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        wrapped(Wire("sns"), **options)


def test_what_is_no_client_of_sns_or_sqs() -> None:
    for given in (object(), boto3.session.Session().client("s3", region_name="us-east-1")):
        with pytest.raises(TypeError, match="of SNS or SQS"):
            antipode_sns_sqs.wrap(given, store="notifications")
    with pytest.raises(ConfigurationError, match="that antipode_sns_sqs"):
        with antipode_sns_sqs.scope_of({}, client=Wire("sqs").client):
            pass


def test_taps_are_told_apart_without_credentials() -> None:
    tap = Tap.of("sqs+http://KEY:SECRET@localhost:4566/000000000000/q?region=us-east-1")
    assert tap.address == tap.queue_url == "http://localhost:4566/000000000000/q"
    assert (tap.queue, tap.region, tap.endpoint) == ("q", "us-east-1", "http://localhost:4566")
    assert "SECRET" not in repr(tap)
    assert Tap.of("https://sqs.eu-central-1.amazonaws.com/1/q").region == "eu-central-1"
    client = Wire("sqs").client
    assert Tap.of((client, QUEUE)).client is client


def test_an_unreachable_tap_is_no_error_when_the_client_is_wrapped(caplog: pytest.LogCaptureFixture) -> None:
    with isolated():
        wrapped(Wire("sns"), tap="sqs+http://k:s@127.0.0.1:9/1/q?region=us-east-1")
    assert "does not answer now" in caplog.text
    assert "k:s@" not in caplog.text


def test_a_task_goes_to_no_topic() -> None:
    """BRANCH-28: nothing leaves; a queue has one taker."""
    topics, queues = Wire("sns"), Wire("sqs")
    with antipode.scope() as scope:
        block = Branch(scope, "orders", 30.0, "here")
        with hold(BLOCK, block):
            with pytest.raises(ConfigurationError, match="AP119"):
                wrapped(topics).publish(TopicArn=TOPIC, Message="task")
            assert not block.announced
            wrapped(queues).send_message(QueueUrl=QUEUE, MessageBody="task")
        assert len(block.announced) == 1
    assert not topics.sent
    assert queues.sent
