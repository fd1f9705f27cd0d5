"""A store in several regions for the tests: wrapped clients of the lab's servers, barriers on what they wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import antipode
import antipode_dynamodb
from antipode import BarrierResult, Lineage, Verdict
from antipode_lab.errors import LabError
from antipode_lab.stores.dynamodb import DynamoDbStore

STORE = "blog-posts"
TABLE = "posts"
DEADLINE_SLACK_S = 1.5


LAGS = {"b1": 5, "b2": 20}


def restore(lab: DynamoDbStore) -> None:
    """Everything as it was at first."""
    details = lab.state.details
    for name in lab.servers:
        if not lab.running(name):
            with suppress(LabError):
                lab.thaw(name)
            if not lab.running(name):
                lab.restart(name)
        if details["clock_ms"][name]:
            lab.clock(name, 0)
    for name, lag in LAGS.items():
        if lab.pair_lag(name, "a") != lag:
            lab.lag(name, f"{lag}ms")
    if details["cuts"]:
        lab.heal()


def until(condition: Callable[[], object], why: str, seconds: float = 90.0) -> None:
    """Polls a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {why}"
        time.sleep(0.005)


def key(name: str) -> dict[str, Any]:
    """The key of an item."""
    return {"id": {"S": name}}


def item(name: str, value: str = "v", **more: Any) -> dict[str, Any]:
    """An item."""
    return {**key(name), "value": {"S": value}, **more}


class Posts:
    """One table of the lab, wrapped at every region; readers of region B use all its servers."""

    def __init__(self, lab: DynamoDbStore, **options: Any) -> None:
        self.lab = lab
        self.names = list(lab.servers)
        self.readers = [name for name in self.names if name != "a"]
        self.plain = {name: lab.client(name) for name in self.names}
        self.wrapped = {name: self.wrap(name, **options) for name in self.names}

    def wrap(self, name: str, client: Any = None, **options: Any) -> Any:
        options = {"tables": [TABLE], "replicas": [self.plain[reader] for reader in self.readers], **options}
        return antipode_dynamodb.wrap(client or self.plain[name], store=STORE, **options)

    def write(self, name: str, value: str = "v", *, at: str = "a") -> Lineage:
        """Writes through a wrapped client; the scope's lineage."""
        with antipode.scope() as scope:
            self.wrapped[at].put_item(TableName=TABLE, Item=item(name, value))
            return scope.lineage

    def raw(self, at: str, name: str) -> dict[str, Any] | None:
        """An item as a server has it, without Antipode."""
        found: dict[str, Any] = self.plain[at].get_item(TableName=TABLE, Key=key(name), ConsistentRead=True)
        return found.get("Item")

    def shows(self, at: str, name: str) -> str | None:
        """The value that a server has, without Antipode."""
        found = (self.raw(at, name) or {}).get("value")
        return None if found is None else str(found["S"])

    def look(self, lineage: Lineage, timeout: float = 90.0, **options: Any) -> BarrierResult:
        """A barrier that never raises for a verdict, and never takes longer than its deadline."""
        began = time.monotonic()
        result = antipode.barrier(
            lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed", stores=[STORE], **options
        )
        assert time.monotonic() - began < timeout + DEADLINE_SLACK_S, "past its deadline"
        return result

    def verdict(self, lineage: Lineage, timeout: float = 90.0) -> Verdict:
        """The verdict for this store."""
        return self.look(lineage, timeout).stores[STORE].verdict


@contextmanager
def requests_of(client: Any) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What a wrapped client sends meanwhile."""
    sent: list[tuple[str, dict[str, Any]]] = []
    low = client._antipode.low

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        sent.append((model.name, dict(params)))

    low.meta.events.register("before-parameter-build.dynamodb", note)
    try:
        yield sent
    finally:
        low.meta.events.unregister("before-parameter-build.dynamodb", note)


@contextmanager
def answering(client: Any, operation: str, answer: Callable[[], dict[str, Any] | None]) -> Iterator[None]:
    """Answers calls in the server's place where `answer` gives an error: DynamoDB Local has no rights to be missing."""

    class Http:
        status_code = 400

    def handler(**_: Any) -> tuple[Http, dict[str, Any]] | None:
        error = answer()
        return None if error is None else (Http(), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}})

    event = f"before-call.dynamodb.{operation}"
    client.meta.events.register_first(event, handler)
    try:
        yield
    finally:
        client.meta.events.unregister(event, handler)


def denied() -> dict[str, Any]:
    """What AWS says to who lacks a right."""
    return {"Code": "AccessDeniedException", "Message": "User: app is not authorized to perform this"}
