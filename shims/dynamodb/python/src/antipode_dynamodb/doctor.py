"""What an operator asks of a region: what would be unproven there, and why (`antipode doctor`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from antipode import ConfigurationError
from antipode.shim import place_number
from antipode.shim.administration import EpochRecord, Finding, Level, no_answer
from antipode.shim.aws import code_of
from botocore.exceptions import BotoCoreError, ClientError

from antipode_dynamodb.attributes import TOMBSTONE
from antipode_dynamodb.plain import for_questions
from antipode_dynamodb.tables import Table, Tables, ttl_cure
from antipode_dynamodb.targets import target_of

_TIMEOUT_S: Final = 5.0
_MOST_TABLES: Final = 50
GRANT: Final = (
    '{"Effect": "Allow", "Action": ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:BatchGetItem"], '
    '"Resource": "arn:aws:dynamodb:*:*:table/TABLE"}'
)


def diagnose(target: Any) -> list[Finding]:
    """Asks a region; never raises for what is wrong with it."""
    found = target_of(target)
    client = for_questions(found.client, _TIMEOUT_S)
    try:
        names = client.list_tables(Limit=_MOST_TABLES)["TableNames"]
    except ClientError as error:
        return [
            Finding(
                Level.UNKNOWN, f"may not list its tables: {error}", "nothing can be said of them", GRANT, code="AP203"
            )
        ]
    except BotoCoreError as error:
        return [no_answer(f"does not answer: {error}", "the credentials and the network")]
    findings = [Finding(Level.OK, f"region {found.region}, number {place_number(found.region)} in versions")]
    if not names:
        findings.append(
            Finding(
                Level.UNPROVEN,
                "no table here",
                "writes are waited for in vain: a wrong region or account, or no replica in this region",
                "add a replica of the table in this region, or correct the address",
                code="AP519",
            )
        )
    tables = Tables(client, found.address)
    for name in names:
        findings += _of_table(client, tables, name)
    return findings


def _of_table(client: Any, tables: Tables, name: str) -> Iterator[Finding]:
    try:
        table = tables.get(name)
    except (ClientError, BotoCoreError) as error:
        yield Finding(
            Level.UNPROVEN, f"{name}: cannot be described ({error})", "its writes are incomplete", GRANT, code="AP203"
        )
        return
    yield _of_reading(client, table)
    if table.ttl is None:
        yield Finding(
            Level.UNPROVEN,
            f"{name}: no time to live",
            "deletions leave no tombstone there, and are unproven elsewhere",
            ttl_cure(name),
            code="AP213",
        )
    elif table.ttl == TOMBSTONE:
        yield Finding(Level.OK, f"{name}: time to live by {table.ttl}, so deletions leave tombstones")
    else:
        yield Finding(Level.OK, f"{name}: time to live by {table.ttl}, which tombstones set too")
    if table.regions:
        yield Finding(Level.OK, f"{name}: a global table, also in {', '.join(table.regions)}")
        numbers: dict[int, str] = {}
        for region in {*table.regions, tables.region}:
            other = numbers.setdefault(place_number(region), region)
            if other != region:
                yield Finding(
                    Level.WARNING,
                    f"{name}: {other} and {region} have one number in versions",
                    "wrap() refuses that: two writers could give one version",
                    f"wrap(…, places={{'{region}': NUMBER}}), the same in every service",
                    code="AP208",
                )
    else:
        yield Finding(
            Level.WARNING,
            f"{name}: no replica that DynamoDB knows of",
            "what is written here is visible here at once; elsewhere only if something of your own replicates it",
            "add replicas: aws dynamodb update-table --table-name " + name + " --replica-updates …",
            code="AP516",
        )


def _of_reading(client: Any, table: Table) -> Finding:
    key = {name: {"S": "antipode-doctor"} for name in table.keys}
    request = {table.name: {"Keys": [key], "ConsistentRead": True}}
    try:
        client.batch_get_item(RequestItems=request)
    except ClientError as error:
        if code_of(error) == "AccessDeniedException":
            return Finding(
                Level.UNPROVEN, f"{table.name}: may not be read ({error})", "waits are unproven", GRANT, code="AP203"
            )
    except BotoCoreError as error:
        return Finding(
            Level.UNKNOWN, f"{table.name}: {error}", "it cannot be told whether it may be read", code="AP706"
        )
    return Finding(Level.OK, f"{table.name}: may be described and read")


def epochs(target: Any) -> list[EpochRecord]:
    """None: versions of items are of no epoch."""
    target_of(target)
    return []


def settle(target: Any, epoch: str, position: int | None = None) -> None:
    """Refused: there is no epoch that could have ended."""
    words = "DynamoDB has versions of items, which are of no epoch: there is nothing to settle"
    raise ConfigurationError(words, code="AP513")
