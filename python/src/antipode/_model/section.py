"""One store's section of a lineage, opened: its entries, kept minimal (spec LIN, WIRE)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import lt
from typing import Final, TypeVar

_K = TypeVar("_K")
_OPAQUE: Final = "_"
_OPAQUE_ENTRIES: Final = re.compile(r"[^.]++\._\.[^.]++").findall


class Section:
    """The entries of one store as spelled strings, in the normal form of the algebra.

    `positions`: epoch to counter. `objects`: (key, epoch) to counter. `opaques`: (key, mark) pairs.
    """

    __slots__ = ("objects", "opaques", "positions", "store")

    def __init__(self, store: str) -> None:
        self.store = store
        self.positions: dict[str, int] = {}
        self.objects: dict[tuple[str, str], int] = {}
        self.opaques: set[tuple[str, str]] = set()

    @classmethod
    def open(cls, text: str) -> Section:
        """Opens and normalises a section text that `wire.split` has validated."""
        fields = text.split(".")
        section = cls(fields[0])
        section.add(fields[1:])
        section.absorb()
        return section

    def add(self, fields: list[str]) -> None:
        """Adds entries as threes of spelled fields; `absorb` is to follow."""
        rest = iter(fields)
        for key, epoch, last in zip(rest, rest, rest, strict=True):
            if epoch == _OPAQUE:
                self.opaques.add((key, last))
            elif key:
                counter = int(last)
                if self.objects.get((key, epoch), -1) < counter:
                    self.objects[key, epoch] = counter
            else:
                counter = int(last)
                if self.positions.get(epoch, -1) < counter:
                    self.positions[epoch] = counter

    def absorb(self) -> None:
        """A position absorbs every ordered version of the same epoch that is not greater (LIN)."""
        if self.positions and self.objects:
            positions = self.positions
            self.objects = {
                (key, epoch): counter
                for (key, epoch), counter in self.objects.items()
                if positions.get(epoch, -1) < counter
            }

    def joined(self, other: Section) -> Section:
        """The join of two sections of one store."""
        result = Section(self.store)
        result.opaques = self.opaques | other.opaques
        result.positions = _greatest(self.positions, other.positions)
        result.objects = _greatest(self.objects, other.objects)
        result.absorb()
        return result

    def minus(self, other: Section) -> Section:
        """The entries of this section that the other does not cover."""
        result = Section(self.store)
        result.opaques = self.opaques - other.opaques
        result.positions = {e: c for e, c in self.positions.items() if other.positions.get(e, -1) < c}
        result.objects = {
            (key, epoch): counter
            for (key, epoch), counter in self.objects.items()
            if other.objects.get((key, epoch), -1) < counter and other.positions.get(epoch, -1) < counter
        }
        return result

    def __bool__(self) -> bool:
        return bool(self.positions or self.objects or self.opaques)

    def entries(self) -> Iterator[tuple[str, str, int | str]]:
        """Spelled (key, epoch, counter) of positions and objects, and (key, `_`, mark) of opaque versions."""
        for epoch, counter in self.positions.items():
            yield "", epoch, counter
        for (key, epoch), counter in self.objects.items():
            yield key, epoch, counter
        for key, mark in self.opaques:
            yield key, _OPAQUE, mark

    @property
    def text(self) -> str:
        """The section in canonical spelling."""
        spelled = [f"{key}.{epoch}.{last}" for key, epoch, last in self.entries()]
        spelled.sort()
        return ".".join([self.store, *spelled])


def entries_of(text: str) -> Iterable[tuple[str, str, int | str]]:
    """Return the spelled entries of a section text, as `Section.entries` has them; a lone one is not opened."""
    _, *fields = text.split(".")
    if len(fields) != 3:
        return Section.open(text).entries()
    key, epoch, last = fields
    return ((key, epoch, last if epoch == _OPAQUE else int(last)),)


def _greatest(a: dict[_K, int], b: dict[_K, int]) -> dict[_K, int]:
    result = dict(a)
    for place, counter in b.items():
        if result.get(place, -1) < counter:
            result[place] = counter
    return result


def join_texts(a: str, b: str) -> str:
    """The join of two section texts of one store, opened only where it must be."""
    if a == b:
        return a
    if b.count(".") == 3:
        if "._." in b:
            joined = _with_opaque(a, b)
            if joined is not None:
                return joined
        else:
            reached = _reaches(a, b)
            if reached is not None:
                return a if reached else b
    return Section.open(a).joined(Section.open(b)).text


def _reaches(a: str, b: str) -> bool | None:
    """Whether the one entry of section a is not less than that of b; None where these are not of one key and epoch."""
    name, _, last = b.rpartition(".")
    if a.count(".") != 3 or not a.startswith(f"{name}."):
        return None
    present = a[len(name) + 1 :]
    return (len(present), present) >= (len(last), last)  # counters have no leading zero


def _with_opaque(section: str, single: str) -> str | None:
    """A section of nothing but opaque versions with one more, which absorbs nothing; None for any other section.

    Where the section is not in normal form it is for others to open it.
    """
    start = single.index(".") + 1
    entries: list[str] = _OPAQUE_ENTRIES(section, start)
    if not all(map(lt, entries, entries[1:])):
        return None
    entry = single[start:]
    place = bisect_left(entries, entry)
    length = len(section)
    if place == len(entries) or entries[place] != entry:
        entries.insert(place, entry)
        length += len(entry) + 1
    joined = single[:start] + ".".join(entries)
    return joined if len(joined) == length else None  # as long as it must be: nothing else was in it


def subtract_texts(a: str, b: str) -> str | None:
    """What of section a section b does not cover, as canonical text; None where nothing is left."""
    if a == b:
        return None
    if b.count(".") == 3 and "._." not in b:
        covered = _reaches(b, a)
        if covered is not None:
            return None if covered else a
    rest = Section.open(a).minus(Section.open(b))
    return rest.text if rest else None
