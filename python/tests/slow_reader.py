"""A reader of lineage texts that is written out by hand, rule by rule (WIRE-1 to WIRE-16): slow, and plain to see."""

from __future__ import annotations

from collections.abc import Callable

from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage
from antipode._model.section import Section

PLAIN = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")
HEX = "0123456789ABCDEF"


class Refused(Exception):
    """The slow reader's verdict."""


def octets(name: str) -> bytes:
    """Unspells a name octet by octet (WIRE-2)."""
    found, place = bytearray(), 0
    while place < len(name):
        char = name[place]
        if char in PLAIN:
            found.append(ord(char))
            place += 1
            continue
        digits = name[place + 1 : place + 3]
        if char != "_" or len(digits) != 2 or any(digit not in HEX for digit in digits):
            raise Refused(name)
        octet = int(digits, 16)
        if chr(octet) in PLAIN:
            raise Refused(f"over-escape in {name}")
        found.append(octet)
        place += 3
    return bytes(found)


def slow_read(text: str) -> tuple[set[tuple[bytes, bytes, bytes | None, bytes | int]], set[bytes], list[str]]:
    """Splits at `~`, then at `.`, then by threes; every rule in words. Gives entries, flag and extensions."""
    if len(text) > 4087:
        raise Refused("too long")
    first, *parts = text.split("~")
    if first != "1":
        raise Refused("form")
    entries: set[tuple[bytes, bytes, bytes | None, bytes | int]] = set()
    flag: set[bytes] = set()
    extensions: list[str] = []
    stores: set[bytes] = set()
    count = 0
    for index, part in enumerate(parts):
        fields = part.split(".")
        if fields[0] == "_":
            _slow_extension(part, index == len(parts) - 1, flag, extensions)
            continue
        if index and parts[index - 1].startswith("_."):
            raise Refused("a section behind an extension")
        store = octets(fields[0])
        if not 1 <= len(store) <= 63 or store in stores:
            raise Refused("store")
        stores.add(store)
        rest = fields[1:]
        if not rest or len(rest) % 3:
            raise Refused("fields")
        for place in range(0, len(rest), 3):
            entries.add((store, *_slow_entry(*rest[place : place + 3])))
            count += 1
    if count > 512:
        raise Refused("entries")
    return entries, ({b""} if b"" in flag else flag), extensions


def _slow_entry(key_text: str, epoch_text: str, last: str) -> tuple[bytes, bytes | None, bytes | int]:
    key = octets(key_text)
    if len(key_text) > 1024:
        raise Refused("key")
    if epoch_text == "_":
        if not key or not last:
            raise Refused("opaque")
        return key, None, octets(last)
    epoch = octets(epoch_text)
    if len(epoch) > 32 or not (key or epoch):
        raise Refused("epoch")
    if not last or any(c not in "0123456789" for c in last) or (len(last) > 1 and last[0] == "0"):
        raise Refused("counter")
    if int(last) >= 2**64:
        raise Refused("counter")
    return key, epoch, int(last)


def _slow_extension(part: str, is_last: bool, flag: set[bytes], extensions: list[str]) -> None:
    _, tag, *rest = part.split(".") if "." in part else (part, "")
    if not tag or any(c not in "abcdefghijklmnopqrstuvwxyz0123456789" for c in tag):
        raise Refused("tag")
    names = [octets(name) for name in rest]
    if tag == "i":
        if any(not 1 <= len(name) <= 63 for name in names):
            raise Refused("a name in the flag")
        flag.update(names or [b""])
    elif tag == "h":
        if not is_last:
            raise Refused("seal")
    else:
        extensions.append(part)


def is_refused(reader: Callable[[str], object], text: str) -> bool:
    """Whether a reader of ours refuses a text."""
    try:
        reader(text)
    except MalformedLineageError:
        return True
    return False


def judged(text: str) -> bool:
    """Both readers agree on a text; whether they take it."""
    try:
        entries, flag, extensions = slow_read(text)
    except Refused:
        assert is_refused(wire.split, text)
        assert text.strip(wire.WHITE_SPACE) != text or is_refused(Lineage.deserialize, text)
        return False
    parsed = wire.split(text)
    found = set()
    for section in parsed.sections.values():
        name, *rest = section.split(".")
        for place in range(0, len(rest), 3):
            key, epoch, last = rest[place : place + 3]
            opaque = epoch == "_"
            found.add(
                (
                    wire.unspell(name),
                    wire.unspell(key),
                    None if opaque else wire.unspell(epoch),
                    wire.unspell(last) if opaque else int(last),
                )
            )
        Section.open(section)
    assert found == entries
    assert {wire.unspell(name) for name in parsed.incomplete} == flag
    assert parsed.extensions == tuple(sorted(set(extensions)))
    lineage = Lineage.deserialize(text)
    assert wire.split(lineage.serialize()).incomplete == parsed.incomplete
    assert Lineage.deserialize(lineage.serialize()) == lineage
    assert Lineage(lineage) == lineage
    return True
