"""`antipode doctor sqs+https://…/ACCOUNT/QUEUE`: whether a tap can be read, and what cures it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from antipode.shim.administration import Finding, Level
from antipode.shim.tap import refused_tap

from antipode_sns_sqs.errors import TapRefusedError
from antipode_sns_sqs.probing import probe
from antipode_sns_sqs.tap import Tap

PROBE_S = 2.0
_SHORT_S = 60


def diagnose(url: str) -> Sequence[Finding]:
    """Findings for a tap."""
    tap = Tap.of(url)
    try:
        attributes = probe(tap, PROBE_S)
    except TapRefusedError as error:
        return [refused_tap(error.what, error.cure)]
    return list(_of_attributes(tap, attributes))


def _of_attributes(tap: Tap, attributes: Mapping[str, str]) -> Iterator[Finding]:
    yield Finding(Level.OK, f"tap: {tap.queue} can be read")
    topics = topics_of(attributes)
    if not topics:
        yield Finding(
            Level.WARNING,
            f"tap: the policy of {tap.queue} lets no topic send to it",
            "Then nothing arrives there, and every barrier on a tracked message ends at its deadline.",
            f"antipode_sns_sqs.declare_tap(sns, sqs, TOPIC_ARN, {tap.queue!r})",
            code="AP516",
        )
    else:
        yield Finding(Level.OK, f"tap: takes what is published to {', '.join(topics)}")
    if "RedrivePolicy" in attributes:
        yield Finding(
            Level.WARNING,
            f"tap: {tap.queue} has a dead-letter queue",
            "What a second process reads meanwhile may end there, and then it is not seen here.",
            f"aws sqs set-queue-attributes --queue-url {tap.queue_url} --attributes RedrivePolicy=",
            code="AP709",
        )
    waiting = int(attributes.get("ApproximateNumberOfMessages", 0))
    if waiting > tap.remember:
        yield Finding(
            Level.WARNING,
            f"tap: {waiting} messages wait in {tap.queue}",
            "Nobody reads it. Whoever begins to wait has to read all of them first.",
            f"aws sqs set-queue-attributes --queue-url {tap.queue_url} --attributes MessageRetentionPeriod={_SHORT_S}",
            code="AP709",
        )


def topics_of(attributes: Mapping[str, str]) -> list[str]:
    """The topics that a queue's policy names."""
    try:
        statements = json.loads(attributes.get("Policy") or "{}").get("Statement", [])
    except ValueError:
        return []
    topics: list[str] = []
    for statement in statements if isinstance(statements, list) else [statements]:
        for condition in (statement.get("Condition") or {}).values():
            source = condition.get("aws:SourceArn") or condition.get("AWS:SourceArn") or []
            topics += [source] if isinstance(source, str) else source
    return topics
