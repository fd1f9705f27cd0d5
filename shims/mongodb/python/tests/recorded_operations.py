"""What a recorded history has of MongoDB's operations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from antipode import recorder
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import History
from antipode.check.history.reading import read_history
from antipode_mongodb.noting import _digest
from bson.codec_options import CodecOptions
from mongodb_regions import DATABASE, STORE

CHANGES = ("key", "value", "there", "expires", "late_version", "any_key", "nothing")


def lines(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    recorder.forget()
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [line for line in found if line["kind"] in kinds]


def judged(folder: Path) -> tuple[Verdict, History]:
    recorder.forget()
    history = read_history(folder)
    return decide(history).verdict, history


def key(name: str, collection: str = "posts") -> str:
    return f"{DATABASE}.{collection}/s{name}"


def digest(name: str, **fields: Any) -> str:
    return _digest(STORE, key(name).encode(), {"_id": name, **fields}, CodecOptions())
