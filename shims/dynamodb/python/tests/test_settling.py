"""What an error says of writes whose request the client had sent before (spec SCOPE-14, SCOPE-17)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from antipode.shim import Write
from antipode_dynamodb.writing import settle
from botocore.exceptions import ClientError


class Told:
    """A write that remembers what was said of it."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def abandon(self) -> None:
        self.words.append("nothing")

    def outcome_unknown(self) -> None:
        self.words.append("unknown")


@pytest.mark.parametrize(
    ("status", "attempts", "words"), [(400, 0, "nothing"), (400, 1, "unknown"), (500, 0, "unknown")]
)
def test_a_refusal_speaks_of_the_only_attempt(status: int, attempts: int, words: str) -> None:
    """SCOPE-14: the first may have done it, and a throttle or a condition refuses the second."""
    reply: Any = {
        "Error": {"Code": "ProvisionedThroughputExceededException", "Message": "scripted"},
        "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": attempts},
    }
    write = Told()
    settle([cast("Write", write)], ClientError(reply, "BatchWriteItem"))
    assert write.words == [words]
