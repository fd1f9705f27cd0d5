"""Canonical octets of a document's name: `database.collection/` and its `_id`, the same in every language (SHIM-21)."""

from __future__ import annotations

import uuid
from typing import Any, Final, NamedTuple

import bson
from bson.binary import Binary, UuidRepresentation
from bson.codec_options import CodecOptions
from bson.errors import BSONError
from bson.int64 import Int64
from bson.objectid import ObjectId

_ANY: Final = "x"


class Name(NamedTuple):
    """A document's name."""

    database: str
    collection: str
    id: Any


def id_text(value: Any, codec: CodecOptions[Any] | None = None) -> str:
    """An `_id` in one spelling: values that are equal for the server give one text.

    A letter says its type: o ObjectId, s text, n whole number (of any numeric type), u UUID (subtype 4), x any other,
    as the hexadecimal of the BSON document {"": value}.
    """
    if isinstance(value, ObjectId):
        return f"o{value}"
    if isinstance(value, str):
        return f"s{value}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"n{int(value)}"
    if isinstance(value, float) and value.is_integer():
        return f"n{int(value)}"
    if isinstance(value, Binary) and value.subtype == 4 and len(value) == 16:
        return f"u{bytes(value).hex()}"
    encoded = bson.encode({"": value}, codec_options=codec or CodecOptions())
    if isinstance(value, uuid.UUID):
        raw = bson.decode(encoded)[""]
        if isinstance(raw, Binary) and raw.subtype == 4:
            return f"u{bytes(raw).hex()}"
    return f"{_ANY}{encoded.hex()}"


def key_octets(namespace: str, value: Any, codec: CodecOptions[Any] | None = None) -> bytes:
    """The key of a document of `database.collection`."""
    return f"{namespace}/{id_text(value, codec)}".encode("utf-8", "surrogatepass")


def parse_key(key: bytes) -> Name | None:
    """The document that a key names; None where it is no such key (a hash)."""
    try:
        namespace, slash, name = key.decode("utf-8", "surrogatepass").partition("/")
        database, dot, collection = namespace.partition(".")
        if not slash or not dot or not database or not collection or not name:
            return None
        return Name(database, collection, _value(name[0], name[1:]))
    except (ValueError, BSONError):
        return None


def _value(kind: str, text: str) -> Any:
    if kind == "o":
        return ObjectId(text)
    if kind == "s":
        return text
    if kind == "n":
        number = int(text)
        return Int64(number) if -(1 << 63) <= number < 1 << 63 else float(number)
    if kind == "u":
        return Binary(bytes.fromhex(text), 4)
    if kind == _ANY:
        options: CodecOptions[Any] = CodecOptions(uuid_representation=UuidRepresentation.UNSPECIFIED)
        return bson.decode(bytes.fromhex(text), options)[""]
    raise ValueError(f"no kind of name: {kind!r}")
