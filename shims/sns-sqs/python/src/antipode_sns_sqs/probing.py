"""Whether a tap can be read, and what cures it (spec SHIM-3)."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any, Final, NoReturn

from antipode.shim.aws import status_of
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from antipode_sns_sqs.errors import TapRefusedError, UnavailableError, code_of
from antipode_sns_sqs.tap import Tap

TAG: Final = "antipode"
TAG_VALUE: Final = "tap"
"""A queue with this tag may be read empty: `declare_tap` gives it. Without it a queue has consumers of its own."""
RIGHTS: Final = (
    "sqs:GetQueueAttributes",
    "sqs:ListQueueTags",
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
)
_NOT_THERE: Final = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_NO_RIGHT: Final = frozenset({"AccessDenied", "AccessDeniedException"})


def check_tap(tap: Tap, client: Any) -> dict[str, str]:
    """The tap's attributes. Raises TapRefusedError where it may not be read, and what botocore raises out of reach."""
    try:
        attributes = client.get_queue_attributes(QueueUrl=tap.queue_url, AttributeNames=["All"]).get("Attributes", {})
        tags = client.list_queue_tags(QueueUrl=tap.queue_url).get("Tags", {})
    except ClientError as error:
        raise_refused(tap, error)
    if tags.get(TAG) != TAG_VALUE:
        raise TapRefusedError(
            f"{tap.queue} is no tap: it has not the tag {TAG}={TAG_VALUE}, and reading it would take messages from its "
            "consumers",
            "Declare one beside it: antipode_sns_sqs.declare_tap(sns, sqs, TOPIC_ARN).",
        )
    return dict(attributes)


def probe(tap: Tap, timeout: float) -> dict[str, str]:
    """Asks whether a tap can be read, and looks at it for a moment; takes nothing away. Raises as `check_tap` does."""
    with closing(tap.connect(timeout)) as client:
        attributes = check_tap(tap, client)
        try:
            client.receive_message(QueueUrl=tap.queue_url, MaxNumberOfMessages=1, VisibilityTimeout=0)
        except ClientError as error:
            raise_refused(tap, error)
        return attributes


def raise_refused(tap: Tap, error: ClientError) -> NoReturn:
    """What SQS's refusal means, and what to do about it."""
    code = code_of(error)
    if status_of(error) >= 500 or code in ("ThrottlingException", "RequestThrottled"):
        raise UnavailableError(str(error)) from error
    if code in _NOT_THERE:
        raise TapRefusedError(
            f"there is no queue {tap.queue}",
            "Declare it once: antipode_sns_sqs.declare_tap(sns, sqs, TOPIC_ARN, "
            f"{tap.queue!r}); or the URL names another region or account.",
        ) from error
    if code in _NO_RIGHT or status_of(error) == 403:
        raise TapRefusedError(
            f"its user may not read {tap.queue}, or is not known ({code})", f"Grant it: {json.dumps(grant(tap))}"
        ) from error
    raise TapRefusedError(str(error), "See what AWS says of this code.") from error


def grant(tap: Tap) -> dict[str, Any]:
    """The statement of an IAM policy that lets a tap be read."""
    _, account, name = tap.queue_url.rsplit("/", 2)
    region = tap.region or (tap.client.meta.region_name if tap.client is not None else "REGION")
    return {"Effect": "Allow", "Action": list(RIGHTS), "Resource": f"arn:aws:sqs:{region}:{account}:{name}"}


def words_of(error: Exception) -> str:
    """What happened, in few words and without what may be private."""
    if isinstance(error, EndpointConnectionError):
        return "it does not answer"
    return f"{type(error).__name__}" if isinstance(error, BotoCoreError) else str(error)
