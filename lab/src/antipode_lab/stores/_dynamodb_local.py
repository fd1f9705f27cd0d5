"""DynamoDB Local, fetched once through Maven, with a start of our own that listens on loopback alone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from antipode_lab.maven import MavenProgram

VERSION: Final = "2.6.1"
LOCAL: Final = MavenProgram(
    name=f"DynamoDB Local {VERSION}",
    folder=f"dynamodb-local-{VERSION}",
    dependencies=(f"com.amazonaws:DynamoDBLocal:{VERSION}",),
    launcher=Path(__file__).with_name("DynamoDbLoopback.java"),
    store="dynamodb",
)
"""AWS's DynamoDB Local: its jars (its own, free licence; fetched, never passed on) and our launcher."""


def command(port: int, data: Path, heap_mib: int) -> list[str]:
    """Starts a server on this port, with its data in this folder."""
    native = f"-Djava.library.path={LOCAL.path / 'lib'}"
    server = ["-dbPath", str(data), "-port", str(port), "-disableTelemetry"]
    return [*LOCAL.java(heap_mib, native), *server]
