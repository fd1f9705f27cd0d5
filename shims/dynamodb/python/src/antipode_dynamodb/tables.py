"""What is known of a table: its key, whether tombstones may be written, where it is replicated."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antipode.shim import logs
from botocore.exceptions import BotoCoreError, ClientError

from antipode_dynamodb.attributes import TOMBSTONE

_AGAIN_S: Final = 60.0
"""Time to live may be switched on while we run: so often it is asked again where it is off."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table, as it was when last asked."""

    name: str
    keys: tuple[str, ...]
    """The names of the key's attributes, the partition key first."""
    ttl: str | None
    """The attribute of time to live where that is on: without it nothing would take tombstones away."""
    stream: bool
    regions: tuple[str, ...]
    """The regions of the global table, as AWS says."""
    showing: frozenset[str]
    """The indexes that hold our attribute of tombstones, so that these can be left out at the server."""
    lasting: bool
    """Whether nothing of the application's goes by itself, so far as is known."""


def table_name(name: str) -> str:
    """The name of a table, which may be given as an ARN."""
    return name.rpartition(":table/")[2].partition("/")[0] if name.startswith("arn:") else name


class Tables:
    """The tables that a client has met."""

    def __init__(self, client: Any, store: str, *, with_tombstones: bool = True) -> None:
        self._client = client
        self._with_tombstones = with_tombstones
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Table, float]] = {}

    @property
    def region(self) -> str:
        """The client's region."""
        return str(self._client.meta.region_name)

    def get(self, name: str) -> Table:
        """What is known of a table; asked when it is first met. Raises what the client raises."""
        short = table_name(name)
        found = self._known.get(short)
        if found is not None and (found[0].ttl is not None or time.monotonic() - found[1] < _AGAIN_S):
            return found[0]
        try:
            table = self._ask(short)
        except (ClientError, BotoCoreError):
            if found is None:
                raise
            table = found[0]
        with self._lock:
            self._known[short] = (table, time.monotonic())
        return table

    def known(self, name: str) -> Table | None:
        """What is known of a table by now; never asks."""
        found = self._known.get(table_name(name))
        return None if found is None else found[0]

    def _ask(self, name: str) -> Table:
        described = self._client._make_api_call("DescribeTable", {"TableName": name})["Table"]
        keys = sorted(described["KeySchema"], key=lambda part: part["KeyType"] != "HASH")
        regions = [replica["RegionName"] for replica in described.get("Replicas", ())]
        ttl, lasting = self._time_to_live(name)
        return Table(
            name,
            tuple(part["AttributeName"] for part in keys),
            ttl,
            bool(described.get("StreamSpecification", {}).get("StreamEnabled")),
            tuple(regions),
            frozenset(
                index["IndexName"]
                for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
                for index in described.get(kind, ())
                if _shows_tombstones(index.get("Projection", {}))
            ),
            lasting,
        )

    def _time_to_live(self, name: str) -> tuple[str | None, bool]:
        if not self._with_tombstones:
            return None, False
        try:
            found = self._client._make_api_call("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]
        except ClientError as error:
            logs.warn(
                f"ttl {self._store} {name}",
                f"{self._store}: it cannot be told whether {name} has time to live ({error}), so deletions there leave "
                "no tombstone and are unproven. Allow dynamodb:DescribeTimeToLive.",
                code="AP213",
            )
            return None, False
        if found.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}:
            return str(found["AttributeName"]), found["AttributeName"] == TOMBSTONE
        logs.info(
            f"ttl {self._store} {name}",
            f"{self._store}: {name} has no time to live, so deletions there leave no tombstone and are unproven. "
            f"{ttl_cure(name)}",
            code="AP213",
        )
        return None, True


def _shows_tombstones(projection: Mapping[str, Any]) -> bool:
    return projection.get("ProjectionType") == "ALL" or TOMBSTONE in projection.get("NonKeyAttributes", ())


def ttl_cure(name: str) -> str:
    """The command that lets tombstones be written."""
    return (
        f"Run: aws dynamodb update-time-to-live --table-name {name} --time-to-live-specification "
        f"Enabled=true,AttributeName={TOMBSTONE}"
    )
