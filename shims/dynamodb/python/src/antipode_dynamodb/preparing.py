"""What a table needs before its clients are wrapped: `antipode init` (spec SHIM-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from antipode.shim.administration import InitRequest, Step

from antipode_dynamodb.attributes import TOMBSTONE
from antipode_dynamodb.doctor import GRANT
from antipode_dynamodb.plain import for_questions
from antipode_dynamodb.tables import ttl_cure
from antipode_dynamodb.targets import target_of

OPTIONS: Final[Mapping[str, str]] = {"table": "the store's table; for several: names with commas between (the store's)"}
_TIMEOUT_S: Final = 5.0


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """Time to live for tombstones, and the rights to read versions."""
    target = target_of(url)
    names = [name.strip() for name in wanted.options.get("table", wanted.store).split(",")]
    steps = [
        Step(
            "aws",
            ttl_cure(name).removeprefix("Run: "),
            "without it deletions leave no tombstone, and are unproven in other regions",
            partial(_enable, target.client, name),
        )
        for name in names
    ]
    steps += [
        Step(
            "aws iam",
            GRANT.replace("TABLE", name),
            "a statement for the policy of the services: without it writes are incomplete, and waits unproven",
        )
        for name in names
    ]
    return steps


def _enable(client: Any, name: str) -> str:
    """Switches time to live on; one that is on stays as it is."""
    own = for_questions(client, _TIMEOUT_S)
    found = own.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if found.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}:
        return f"there already, by {found.get('AttributeName')}"
    own.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": TOMBSTONE})
    return "enabled"
