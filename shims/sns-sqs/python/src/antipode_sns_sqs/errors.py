"""What an error of boto3 says of a request: whether it may have been done, and whether the service is out of reach."""

from __future__ import annotations

from antipode.shim import aws, tap
from botocore.exceptions import ClientError


class TapRefusedError(tap.TapRefusedError):
    """SQS is there and will not let the tap be read: no such queue, no right, no tap."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(f"{what}. {cure}")
        self.what = what
        self.cure = cure


class UnavailableError(OSError):
    """The service answers that it cannot answer now."""


def code_of(error: ClientError) -> str:
    """The error's code, without the prefix that SQS's older protocol has."""
    return aws.code_of(error).removeprefix("AWS.SimpleQueueService.")
