"""ActiveMQ, fetched once through Maven: an embedded broker a region, without Spring, which is up in half a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from antipode_lab.maven import MavenProgram

VERSION: Final = "5.17.6"
BROKER: Final = MavenProgram(
    name=f"ActiveMQ {VERSION}",
    folder=f"activemq-{VERSION}",
    dependencies=(
        f"org.apache.activemq:activemq-broker:{VERSION}",
        f"org.apache.activemq:activemq-jaas:{VERSION}",
        f"org.apache.activemq:activemq-kahadb-store:{VERSION}",
        f"org.apache.activemq:activemq-stomp:{VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    launcher=Path(__file__).with_name("ActiveMqRegion.java"),
    store="activemq",
)
"""Apache ActiveMQ's own jars and our launcher."""


def command(folder: Path, settings: Mapping[str, object], heap_mib: int) -> list[str]:
    """Starts a broker with these settings (see the launcher), its data in this folder."""
    folder.mkdir(exist_ok=True)
    file = folder / "region.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in {**settings, "data": folder / "data"}.items()))
    return [*BROKER.java(heap_mib, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"), str(file)]
