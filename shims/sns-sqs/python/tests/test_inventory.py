"""Every operation of SNS and SQS is known: what sends a message carries the lineage (SHIM-51)."""

from __future__ import annotations

import boto3
from antipode.shim.aws import wrapped_class
from antipode.testing.inventory import check_inventory, check_makes_none
from antipode_sns_sqs.client import CarryingClient
from antipode_sns_sqs.publishing import FORMS
from botocore.client import BaseClient

CONSUMES = {"ReceiveMessage", "DeleteMessage", "DeleteMessageBatch"}
MOVES = {"StartMessageMoveTask", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch"}
"""A message goes back, or from its dead letters to its queue, with the lineage that it has."""
QUEUES = {
    *("AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "GetQueueAttributes", "GetQueueUrl"),
    *("ListDeadLetterSourceQueues", "ListMessageMoveTasks", "ListQueueTags", "ListQueues", "PurgeQueue"),
    *("RemovePermission", "SetQueueAttributes", "TagQueue", "UntagQueue"),
}
TOPICS = {
    *("AddPermission", "CheckIfPhoneNumberIsOptedOut", "ConfirmSubscription", "CreatePlatformApplication"),
    *("CreatePlatformEndpoint", "CreateSMSSandboxPhoneNumber", "CreateTopic", "DeleteEndpoint"),
    *("DeletePlatformApplication", "DeleteSMSSandboxPhoneNumber", "DeleteTopic", "GetDataProtectionPolicy"),
    *("GetEndpointAttributes", "GetPlatformApplicationAttributes", "GetSMSAttributes", "GetSMSSandboxAccountStatus"),
    *("GetSubscriptionAttributes", "GetTopicAttributes", "ListEndpointsByPlatformApplication"),
    *("ListOriginationNumbers", "ListPhoneNumbersOptedOut", "ListPlatformApplications"),
    *("ListSMSSandboxPhoneNumbers", "ListSubscriptions", "ListSubscriptionsByTopic", "ListTagsForResource"),
    *("ListTopics", "OptInPhoneNumber", "PutDataProtectionPolicy", "RemovePermission", "SetEndpointAttributes"),
    *("SetPlatformApplicationAttributes", "SetSMSAttributes", "SetSubscriptionAttributes", "SetTopicAttributes"),
    *("Subscribe", "TagResource", "Unsubscribe", "UntagResource", "VerifySMSSandboxPhoneNumber"),
}


def operations(service: str) -> list[str]:
    client = boto3.client(service, region_name="eu-west-1", aws_access_key_id="k", aws_secret_access_key="s")
    found: list[str] = client.meta.service_model.operation_names
    client.close()
    return found


def test_every_operation_is_known() -> None:
    """SHIM-51: a new release of botocore that brings one fails here."""
    sent = {"sqs": {"SendMessage", "SendMessageBatch"}, "sns": {"Publish", "PublishBatch"}}
    assert set(FORMS) == sent["sqs"] | sent["sns"]
    tables = {"sends": sent["sqs"], "consumes": CONSUMES, "moves": MOVES, "neither": QUEUES}
    check_inventory(operations("sqs"), tables)
    check_inventory(operations("sns"), {"sends": sent["sns"], "neither": TOPICS})


def test_the_class_of_a_wrapped_client_makes_no_other() -> None:
    """SHIM-50"""
    check_makes_none(wrapped_class(CarryingClient, BaseClient))
