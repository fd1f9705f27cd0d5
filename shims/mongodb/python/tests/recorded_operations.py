"""What a recorded history has of MongoDB's operations."""

from __future__ import annotations

from typing import Any

from antipode_mongodb.noting import _digest
from bson.codec_options import CodecOptions
from mongodb_regions import DATABASE, STORE

CHANGES = ("key", "value", "there", "expires", "late_version", "any_key", "nothing")


def key(name: str, collection: str = "posts") -> str:
    return f"{DATABASE}.{collection}/s{name}"


def digest(name: str, **fields: Any) -> str:
    return _digest(STORE, key(name).encode(), {"_id": name, **fields}, CodecOptions())
