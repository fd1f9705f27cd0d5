"""What the lab knows about its servers and links: the content of ``lab.json`` (described in
lab/README.md).
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA = 1
LinkState = Literal["up", "cut", "silent"]


@dataclass(slots=True)
class Server:
    """One server. ``lag_ms`` is the one-way lag of its link from ``source``, from where it gets its data."""

    name: str
    region: str
    role: str
    host: str
    port: int
    url: str
    lag_ms: int = 0
    source: str | None = None
    pid: int = 0
    state: str = "running"


@dataclass(slots=True)
class Link:
    """One proxied link: ``target`` connects to ``port`` and reaches ``source``. ``lag_ms`` is one way, in
    each direction.
    """

    target: str
    source: str
    proxy: str
    port: int
    lag_ms: int
    state: LinkState = "up"


@dataclass(slots=True)
class StoreState:
    """One store of the lab."""

    kind: str
    options: dict[str, Any]
    servers: dict[str, Server] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class LabState:
    """The whole lab."""

    scratch: str
    supervisor_pid: int
    toxiproxy_port: int
    json_path: str | None = None
    stores: dict[str, StoreState] = field(default_factory=dict)
    docker: dict[str, str] | None = None
    """Of a lab of containers: its Compose `file` and `project`."""

    def to_json(self) -> str:
        """The text of ``lab.json``."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "scratch": self.scratch,
                "supervisor": {"pid": self.supervisor_pid},
                "toxiproxy": {
                    "url": f"http://127.0.0.1:{self.toxiproxy_port}",
                    "port": self.toxiproxy_port,
                },
                "json": self.json_path,
                **({} if self.docker is None else {"docker": self.docker}),
                "stores": {name: asdict(store) for name, store in self.stores.items()},
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> LabState:
        """Reads what ``to_json`` wrote.

        Raises:
            ValueError: for another schema.
        """
        data = json.loads(text)
        if data.get("schema") != SCHEMA:
            raise ValueError(f"schema {data.get('schema')!r}, wanted {SCHEMA}")
        stores = {
            name: StoreState(
                kind=item["kind"],
                options=item["options"],
                servers={key: Server(**server) for key, server in item["servers"].items()},
                links={key: Link(**link) for key, link in item["links"].items()},
                details=item["details"],
            )
            for name, item in data["stores"].items()
        }
        return cls(
            data["scratch"],
            data["supervisor"]["pid"],
            data["toxiproxy"]["port"],
            data["json"],
            stores,
            data.get("docker"),
        )


def write_atomically(path: Path, text: str) -> None:
    """A reader sees the old text or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text + "\n")
    os.replace(partial, path)
