"""The lineage: the set of writes that a request depends on, kept minimal (paper section 5, spec LIN)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.section import Section, entries_of, join_texts, subtract_texts
from antipode._model.write_id import WriteId, from_entry

_new: Final = object.__new__
_new_parts: Final[Any] = tuple.__new__
_is_plain: Final = wire.POSITIONS.fullmatch
_has_many_positions: Final = wire.has_many_positions
_split: Final = wire.split
_join: Final = wire.join
_SHORT: Final = wire.SHORT
_Parsed: Final = wire.ParsedText
_CERTAIN: Final = wire.MAX_KEY  # a text so short has not too many entries
_NONE: Final = frozenset[str]()


class Order(StrEnum):
    """How two lineages stand to each other in the order of inclusion."""

    BEFORE = "before"
    AFTER = "after"
    EQUAL = "equal"
    CONCURRENT = "concurrent"


def check_lineage(value: object, call: str) -> None:
    """Raise TypeError, with the cure, where the argument of `call` is no lineage."""
    if not isinstance(value, Lineage):
        raise TypeError(f"{call} takes a Lineage, not {type(value).__name__}: antipode.deserialize(text) reads a text")


class Lineage:
    """An immutable set of write identifiers, with the stores in which something is missing.

    `a | b` joins, `a <= b` asks whether b covers a. Joining is commutative, associative and idempotent, so
    lineages may be merged anywhere, in any order, twice. Each store's section stays an unopened string until
    something is appended to it or merged with it. Order, `==` and `hash` take no part of `incomplete`.
    """

    __slots__ = ("_parts", "_text")

    _text: str | None  # the wire form; None until somebody asks for it
    _parts: wire.ParsedText | None  # the closed sections; None until somebody asks for them

    def __init__(self, ids: Iterable[WriteId] = ()) -> None:
        self._text = None
        self._parts = wire.ParsedText(_sections_of(ids), frozenset(), ())

    @classmethod
    def deserialize(cls, text: str) -> Lineage:
        """Reads a lineage text, white space around it aside; raises MalformedLineageError (paper table 2, WIRE-26)."""
        lineage = _new(cls)
        if (len(text) <= _SHORT and _is_plain(text)) or ("_" not in text and _has_many_positions(text)):
            lineage._text = text
            lineage._parts = None
        else:
            lineage._text = None
            try:
                lineage._parts = _split(text)
            except MalformedLineageError:
                stripped = text.strip(wire.WHITE_SPACE)
                if stripped == text:
                    raise
                return cls.deserialize(stripped)
        return lineage

    @classmethod
    def _make(
        cls,
        sections: dict[str, str],
        incomplete: frozenset[str] = frozenset(),
        extensions: tuple[str, ...] = (),
    ) -> Lineage:
        lineage = _new(cls)
        lineage._text, lineage._parts = None, wire.ParsedText(sections, incomplete, extensions)
        return lineage

    def serialize(self) -> str:
        """The lineage as text in the wire form; `1` for the empty one (paper table 2, spec WIRE).

        A text of plain positions that only passed through comes out as it came in. What no reader would take is
        not written: past 4,087 bytes or 512 entries sections are left out and marked (WIRE-37).
        """
        text = self._text
        if text is None:
            text = _join(self._parts or self._split())
            if len(text) > _CERTAIN and (len(text) > wire.MAX_BYTES or self.most_entries() > wire.MAX_ENTRIES):
                text = _join(self._fitted(wire.MAX_BYTES))
            self._text = text
        return text

    def _split(self) -> wire.ParsedText:
        parts = self._parts
        if parts is None:
            # A text that was not split has been checked, and has plain positions alone.
            sections = {part[: part.index(".")]: part for part in (self._text or "").split("~")[1:]}
            parts = self._parts = _new_parts(_Parsed, (sections, _NONE, ()))
        return parts

    @property
    def _sections(self) -> dict[str, str]:
        return self._split().sections

    @property
    def _incomplete(self) -> frozenset[str]:
        parts = self._parts
        return _NONE if parts is None else parts.incomplete  # a text that was not split has positions alone

    @property
    def _extensions(self) -> tuple[str, ...]:
        parts = self._parts
        return () if parts is None else parts.extensions

    # Joining and taking away

    def including(self, write_id: WriteId, *more: WriteId) -> Lineage:
        """This lineage and these writes (the paper's `append`, as a value)."""
        if not (self._parts or more or write_id[1]):
            # The common hop: a position onto a text of plain positions, raised in place without opening it.
            counter: int
            epoch, counter = write_id[2]  # type: ignore[misc]  # a position's version is Ordered
            before, head, rest = self._text.partition(_position_head(write_id[0], epoch))  # type: ignore[union-attr]
            if head:
                present, mark, after = rest.partition("~")
                if int(present) >= counter:
                    return self
                lineage = _new(Lineage)
                lineage._text = f"{before}{head}{counter}{mark}{after}"
                lineage._parts = None
                return lineage
        sections, incomplete, extensions = self._parts or self._split()
        sections = sections.copy()
        if more:
            for section in _sections_of((write_id, *more)).values():
                _join_into(sections, section)
        else:
            section = write_id.section
            store = section[: section.index(".")]
            present = sections.get(store)
            sections[store] = section if present is None else join_texts(present, section)
        lineage = _new(Lineage)
        lineage._text = None
        lineage._parts = _new_parts(_Parsed, (sections, incomplete, extensions))
        return lineage

    def __or__(self, other: Lineage) -> Lineage:
        """The join of two lineages (the paper's `transfer`, as a value)."""
        if not isinstance(other, Lineage):
            return NotImplemented
        if other is self or not other:
            return self
        if self._parts is None and other._parts is None:
            raised = _raise_all(self._text or "", other._text or "")
            if raised is not None:
                return self if raised == self._text else _of_plain(raised)
        if not (self._sections or self._incomplete or self._extensions):
            return other
        sections = self._sections.copy()
        for section in other._sections.values():
            _join_into(sections, section)
        extensions = self._extensions
        if other._extensions and other._extensions != extensions:
            extensions = tuple(sorted({*extensions, *other._extensions}))
        return self._make(sections, wire.join_incomplete(self._incomplete, other._incomplete), extensions)

    def without(self, what: WriteId | str | Lineage) -> Lineage:
        """This lineage less a write, a whole store with its mark of incompleteness, or what a lineage covers."""
        if isinstance(what, str):
            store = wire.spell_name(what)
            sections = {name: text for name, text in self._sections.items() if name != store}
            return self._make(sections, self._incomplete - {store}, self._extensions)
        other = Lineage((what,)) if isinstance(what, WriteId) else what
        return self._make(self._subtract(other), self._incomplete, self._extensions)

    def added_to(self, base: Lineage) -> Lineage:
        """What this lineage has beyond `base`: entries, marks of incompleteness, extensions (spec PROP)."""
        if not base:
            return self
        incomplete = self._incomplete - base._incomplete if "" not in base._incomplete else frozenset[str]()
        extensions = tuple(e for e in self._extensions if e not in base._extensions)
        return self._make(self._subtract(base), incomplete, extensions)

    def beyond(self, other: Lineage) -> Lineage:
        """The writes of this lineage that `other` does not cover, without marks of incompleteness."""
        return self._make(self._subtract(other))

    def _subtract(self, other: Lineage) -> dict[str, str]:
        sections = {}
        for store, text in self._sections.items():
            covered = other._sections.get(store)
            rest = text if covered is None else subtract_texts(text, covered)
            if rest is not None:
                sections[store] = rest
        return sections

    # Comparing

    def __le__(self, other: Lineage) -> bool:
        """Whether `other` covers every write of this lineage."""
        theirs = other._sections
        for store, text in self._sections.items():
            covering = theirs.get(store)
            if covering is None or (covering != text and subtract_texts(text, covering) is not None):
                return False
        return True

    def __lt__(self, other: Lineage) -> bool:
        return self <= other and not other <= self

    def __ge__(self, other: Lineage) -> bool:
        return other <= self

    def __gt__(self, other: Lineage) -> bool:
        return other < self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lineage):
            return NotImplemented
        if self is other or self._sections == other._sections:
            return True
        return self._sections.keys() == other._sections.keys() and self._normal() == other._normal()

    def __hash__(self) -> int:
        return hash(tuple(self._normal()))

    def _normal(self) -> list[str]:
        """Sections in canonical order, each opened and normalised."""
        return sorted(Section.open(text).text for text in self._sections.values())

    def compare(self, other: Lineage) -> Order:
        """BEFORE where `other` covers this and more, AFTER the other way round, EQUAL, or CONCURRENT."""
        below, above = self <= other, other <= self
        if below:
            return Order.EQUAL if above else Order.BEFORE
        return Order.AFTER if above else Order.CONCURRENT

    # Looking in

    def __iter__(self) -> Iterator[WriteId]:
        """The write identifiers, in canonical order."""
        for text in sorted(self._sections.values()):
            section = Section.open(text)
            store = wire.unspell_name(section.store)
            for key, epoch, last in sorted(section.entries(), key=lambda entry: f"{entry[0]}.{entry[1]}.{entry[2]}"):
                yield from_entry(store, key, epoch, last)

    def __len__(self) -> int:
        return sum(sum(1 for _ in Section.open(text).entries()) for text in self._sections.values())

    def __bool__(self) -> bool:
        """Whether there is anything to send: a write, a mark of incompleteness or an extension (WIRE-31)."""
        parts = self._parts
        if parts is None:
            return self._text != wire.EMPTY_TEXT
        return bool(parts.sections or parts.incomplete or parts.extensions)

    def __contains__(self, write_id: object) -> bool:
        """Whether this lineage covers a write."""
        return isinstance(write_id, WriteId) and Lineage((write_id,)) <= self

    @property
    def stores(self) -> Collection[str]:
        """Names of the stores that it has writes of."""
        parts = self._parts or self._split()
        return [wire.unspell_name(store) for store in parts.sections]

    def of_store(self, store: str) -> list[WriteId]:
        """The writes to one store, in no particular order."""
        parts = self._parts or self._split()
        text = parts.sections.get(wire.spell_name(store))
        if text is None:
            return []
        return [from_entry(store, *entry) for entry in entries_of(text)]

    def section_text(self, store: str) -> str | None:
        """One store's section as it stands, unopened; a value to compare, not to parse."""
        return self._sections.get(wire.spell_name(store))

    def raised(self, spelled: tuple[str, str], counter: int) -> Lineage:
        """This lineage, whose section of the store is one position of this epoch, with a greater counter.

        `spelled`: the store and epoch, by `spelled_position`.
        """
        name, head = spelled
        sections, incomplete, extensions = self._parts or self._split()
        sections = sections.copy()
        sections[name] = f"{head}{counter}"
        lineage = _new(Lineage)
        lineage._text = None
        lineage._parts = _new_parts(_Parsed, (sections, incomplete, extensions))
        return lineage

    def only_position(self, store: str, epoch: str) -> int | None:
        """The counter, where a store's section is one position of this epoch and nothing else; cheap."""
        head = _position_head(store, epoch)
        section = self._sections.get(head[1 : head.index(".")])
        if section is None or not section.startswith(head[1:]):
            return None
        counter = section[len(head) - 1 :]
        return int(counter) if counter.isdigit() else None

    # Incompleteness

    @property
    def incomplete(self) -> frozenset[str]:
        """Names of the stores in which something that belonged here is missing; `""` means anywhere."""
        marks = self._incomplete
        return frozenset(wire.unspell_name(store) for store in marks) if marks else marks

    def is_complete(self, stores: Iterable[str] | None = None) -> bool:
        """Whether nothing is missing, in these stores or in any."""
        if not self._incomplete:
            return True
        if stores is None or "" in self._incomplete:
            return False
        return not any(wire.spell_name(store) in self._incomplete for store in stores)

    def marked_incomplete(self, *stores: str) -> Lineage:
        """This lineage with a mark that something is missing: in these stores, or anywhere if none is named."""
        marks = frozenset(wire.spell_name(store) for store in stores) or wire.ANYWHERE
        return self._make(self._sections, wire.join_incomplete(self._incomplete, marks), self._extensions)

    def vouched(self) -> Lineage:
        """This lineage without any mark of incompleteness: the application vouches that nothing is missing."""
        return self._make(self._sections, frozenset(), self._extensions)

    # Extensions

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions that the lineage carries on, as they are spelled (WIRE-14)."""
        return self._extensions

    def with_extensions(self, extensions: Iterable[str]) -> Lineage:
        """This lineage with exactly these extensions."""
        return self._make(self._sections, self._incomplete, tuple(sorted(set(extensions))))

    # Size

    def fit(self, budget: int, changed: Callable[[], Iterable[str]] | None = None) -> Lineage:
        """This lineage in at most `budget` bytes: whole sections are left out, and marked (WIRE-33 to WIRE-35).

        First those that would not even fit alone, then those that only passed through, the longest first (of equally
        long ones the later in canonical order); then those of the stores that `changed` gives, the oldest change first.
        Where the marks' names would take more than an eighth, or do not fit, one mark without a name stands for all.
        """
        budget = min(budget, wire.MAX_BYTES)
        length = self._length()
        if length <= budget and (length <= _CERTAIN or self.most_entries() <= wire.MAX_ENTRIES):
            return self
        return self._make(*self._fitted(budget, () if changed is None else changed()))

    def _fitted(self, budget: int, changed: Iterable[str] = ()) -> wire.ParsedText:
        """Leaves sections out until the text fits; lengths are summed, so that it takes no longer than a sort."""
        parts = self._split()
        kept, incomplete, extensions = dict(parts.sections), set(parts.incomplete), parts.extensions
        rest = 1 + sum(len(extension) + 1 for extension in extensions)
        flag = wire.flag_length(incomplete)
        size = sum(len(text) + 1 for text in kept.values())
        entries = self.most_entries()
        alone = budget - rest - wire.flag_length(wire.ANYWHERE)
        last = [
            store
            for store in map(wire.spell_name, changed)
            if (text := kept.get(store)) and len(text) < alone and text.count(".") // 3 <= wire.MAX_ENTRIES
        ]
        passing = kept.keys() - last
        first = sorted(passing, key=lambda store: (len(kept[store]), kept[store]), reverse=True)
        for store in (*first, *last):
            if rest + size + flag <= budget and entries <= wire.MAX_ENTRIES:
                break
            text = kept.pop(store)
            size -= len(text) + 1
            entries -= text.count(".") // 3
            if store not in incomplete and "" not in incomplete:
                incomplete.add(store)
                flag = (flag or wire.flag_length(wire.ANYWHERE)) + len(store) + 1
            if flag > budget // 8:
                incomplete = set(wire.ANYWHERE)
                flag = wire.flag_length(incomplete)
        if rest + size + flag <= budget:
            return wire.ParsedText(kept, frozenset(incomplete), extensions)
        bare = wire.ParsedText({}, wire.ANYWHERE, extensions)
        return bare if rest + wire.flag_length(wire.ANYWHERE) <= budget else bare._replace(extensions=())

    def _length(self) -> int:
        """How long the text would be if nothing were left out of it: `serialize` leaves out what no reader takes."""
        parts = self._parts
        if parts is None:
            return len(self._text or wire.EMPTY_TEXT)
        texts = (*parts.sections.values(), *parts.extensions)
        return 1 + sum(map(len, texts)) + len(texts) + wire.flag_length(parts.incomplete)

    def most_entries(self) -> int:
        """Return the number of its writes as its sections are spelled: there may be fewer, never more."""
        return sum(text.count(".") // 3 for text in self._sections.values())

    def __str__(self) -> str:
        return self.serialize()

    def __repr__(self) -> str:
        return f"Lineage({self.serialize()!r})"


@lru_cache(maxsize=1024)
def _position_head(store: str, epoch: str) -> str:
    """How a section begins whose first entry is a position of this epoch."""
    return f"~{wire.spell_name(store)}..{wire.spell_name(epoch)}."


def spelled_position(store: str, epoch: str) -> tuple[str, str]:
    """The store's spelled name, and how its section begins where it is one position of this epoch."""
    head = _position_head(store, epoch)[1:]
    return head[: head.index(".")], head


def _of_plain(text: str) -> Lineage:
    lineage = _new(Lineage)
    lineage._text = text
    lineage._parts = None
    return lineage


def _raise_all(text: str, other: str) -> str | None:
    """The join of two texts of plain positions, where the first has every store and epoch of the second."""
    for section in other.split("~")[1:]:
        name, _, counter = section.rpartition(".")
        before, head, rest = text.partition(f"~{name}.")
        if not head:
            return None
        present, mark, after = rest.partition("~")
        if int(present) < int(counter):
            text = f"{before}{head}{counter}{mark}{after}"
    return text


def _sections_of(ids: Iterable[WriteId]) -> dict[str, str]:
    """The sections of these writes; each is made once, however many writes there are."""
    fields: dict[str, list[str]] = {}
    for write_id in ids:
        store, *entry = write_id.section.split(".")
        fields.setdefault(store, []).extend(entry)
    sections = {}
    for store, entries in fields.items():
        section = Section(store)
        section.add(entries)
        section.absorb()
        sections[store] = section.text
    return sections


def _join_into(sections: dict[str, str], section: str) -> None:
    store = section[: section.index(".")]
    present = sections.get(store)
    sections[store] = section if present is None else join_texts(present, section)


EMPTY: Final = Lineage()
"""The empty, complete lineage: the unit of joining."""
