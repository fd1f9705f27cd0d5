"""What a region needs before tracked messages can be waited for: `antipode init sqs+https://…` (spec SHIM-3)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

from antipode.shim.administration import InitRequest, Step
from antipode.shim.aws import own_config, own_session

from antipode_sns_sqs.declaring import RETENTION_S, declare_tap
from antipode_sns_sqs.probing import grant
from antipode_sns_sqs.tap import Tap

OPTIONS: Final[Mapping[str, str]] = {
    "topic": "the ARN of the topic that the tap is subscribed to",
    "sns_endpoint": "where the topic's SNS answers, if not at AWS",
    "retention": f"seconds that what nobody reads is kept ({RETENTION_S})",
}
_TIMEOUT_S: Final = 5.0
_NAMELESS: Final = "USER"


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """A tap in the region that waits, and the right to read it; nothing without `track=True`."""
    tap = Tap.of(url)
    steps = []
    topic = wanted.options.get("topic", "")
    if topic:
        retention = int(wanted.options.get("retention", RETENTION_S))
        more = "" if retention == RETENTION_S else f", retention={retention}"
        steps.append(
            Step(
                "python",
                f"antipode_sns_sqs.declare_tap(sns, sqs, {topic!r}, {tap.queue!r}{more})",
                "without a tap nobody sees what has arrived in the region, and tracked messages are unproven there",
                partial(_declare, tap, topic, wanted.options.get("sns_endpoint"), retention),
            )
        )
    document = json.dumps({"Version": "2012-10-17", "Statement": [grant(tap)]})
    user = wanted.user or _NAMELESS
    steps.append(
        Step(
            "aws",
            shlex.join(
                [
                    *("iam", "put-user-policy", "--user-name", user),
                    *("--policy-name", f"antipode-{tap.queue}", "--policy-document", document),
                ]
            ),
            "the right to read the tap; for a role it is put-role-policy --role-name",
        )
    )
    return steps


def _declare(tap: Tap, topic: str, endpoint: str | None, retention: int) -> str:
    with closing(tap.connect(_TIMEOUT_S)) as sqs, closing(_beside(sqs, topic, endpoint)) as sns:
        declare_tap(sns, sqs, topic, tap.queue, retention=retention)
    return "declared"


def _beside(sqs: Any, topic: str, endpoint: str | None) -> Any:
    """A client of the topic's SNS, with the tap's credentials."""
    session, region = own_session(sqs._get_credentials()), topic.split(":")[3]
    return session.create_client("sns", region_name=region, endpoint_url=endpoint, config=own_config(_TIMEOUT_S))
