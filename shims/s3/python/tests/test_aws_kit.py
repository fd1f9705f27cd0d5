"""Whether a request of a boto3 client may have been done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from antipode.shim.aws import WrappedAwsClient, copy_of, wrapped_class
from botocore.exceptions import ClientError


class Client:
    """Makes its calls as botocore's clients do: what is before a request may call, and raise."""

    def __init__(self) -> None:
        self.before: Callable[[], object] = int
        self.after: Callable[[], object] = int

    def _make_api_call(self, operation: str, params: dict[str, Any]) -> str:
        self.before()
        return self._make_request(operation)

    def _make_request(self, operation: str) -> str:
        self.after()
        return operation


def refusal(status: int, attempts: int = 0) -> ClientError:
    reply = {"HTTPStatusCode": status, "RetryAttempts": attempts}
    return ClientError({"Error": {"Code": "no"}, "ResponseMetadata": reply}, "Put")


def fail(error: Exception) -> Callable[[], object]:
    def failing() -> None:
        raise error

    return failing


def wrapped() -> Any:
    plain = Client()
    return copy_of(plain, wrapped_class(WrappedAwsClient, Client), _antipode_plain=plain)


def outcome(client: Any) -> list[bool]:
    """Return what is told of a call that fails: whether it may have been done."""
    told: list[bool] = []
    with pytest.raises((ClientError, OSError)):
        client._antipode_attempt("Put", {}, told.append)
    return told


@pytest.mark.parametrize(
    ("error", "may_be_done"),
    [
        (OSError("cut"), True),
        (refusal(503), True),
        (refusal(403), False),
        (refusal(301), False),
        (refusal(403, attempts=1), True),  # that of the first attempt may be lost
    ],
)
def test_only_a_refusal_of_the_first_attempt_is_certain(error: Exception, may_be_done: bool) -> None:
    client = wrapped()
    client.after = fail(error)
    assert outcome(client) == [may_be_done]


def test_a_call_that_never_left_was_not_done() -> None:
    client = wrapped()
    assert client._antipode_send("Put", {}) == "Put"  # the request before did
    client.before = fail(OSError("no endpoint"))
    assert outcome(client) == [False]


def test_a_call_of_a_hook_does_not_make_the_outer_one_unsent() -> None:
    client, inner = wrapped(), wrapped()
    inner.before = fail(OSError("no endpoint"))

    def hook() -> None:
        outcome(inner)
        raise OSError("cut")

    client.after = hook
    assert outcome(client) == [True]
