"""Antipode's shim for SNS and SQS: boto3 clients that carry the lineage with each message (DESIGN 7, spec PROP, SHIM).

    topics = antipode_sns_sqs.wrap(boto3.client("sns"), store="notifications")    # still a boto3 client

What it publishes carries the current scope's lineage in the message attribute `antipode-lineage`. What a wrapped SQS
client receives is handled in a scope of its own:

    with antipode_sns_sqs.scope_of(message): …

in which `barrier(on_timeout="redeliver")` gives the message back to its queue.
"""

from antipode.shim import skip_packages

from antipode_sns_sqs.attributes import ATTRIBUTE
from antipode_sns_sqs.consuming import scope_of
from antipode_sns_sqs.declaring import declare_tap
from antipode_sns_sqs.shim import SnsSqsShim
from antipode_sns_sqs.tap import Tap
from antipode_sns_sqs.wrapping import register, wrap

skip_packages("antipode_sns_sqs", "boto3", "botocore")

__version__ = "0.1.0"
__all__ = ["ATTRIBUTE", "SnsSqsShim", "Tap", "declare_tap", "register", "scope_of", "wrap"]
