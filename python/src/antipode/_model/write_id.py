"""Write identifiers: one write to one datastore, `<store, key, version>` (paper section 5.1, spec LIN)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from antipode._model import wire

_spell_name: Final = wire.spell_name
_spell_key: Final = wire.spell_key
_spell_mark: Final = wire.spell_mark
_new: Final[Any] = tuple.__new__  # past the checks, for parts that have been checked


class Ordered(NamedTuple):
    """A version that compares within its epoch: a history that had one writer at a time.

    `counter` is an unsigned 64-bit number. Only an object's version may have the empty epoch.
    """

    epoch: str
    counter: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.counter}"


class Opaque(NamedTuple):
    """A version without order: equal or not."""

    mark: str

    def __str__(self) -> str:
        return self.mark


Version: TypeAlias = Ordered | Opaque


class _Fields(NamedTuple):
    store: str
    key: bytes
    version: Version


class WriteId(_Fields):
    """One write: the store's logical name, the object's key, the version that the write made.

    An empty key makes it a position: everything in the store's history up to the version. Raises ValueError for
    what the wire form cannot carry (an empty store name, a counter out of range, a position without epoch).
    """

    __slots__ = ()

    def __new__(cls, store: str, key: bytes | str, version: Version) -> WriteId:
        """Checks the parts; a `str` key is taken as UTF-8."""
        octets = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
        _check_store(store)
        if isinstance(version, Opaque):
            if not octets:
                raise ValueError("an opaque version needs a key: a position is ordered")
            if not version[0]:
                raise ValueError("an opaque version needs a mark")
        elif isinstance(version, Ordered):
            _check_ordered(version, position=not octets)
        else:
            raise TypeError(f"a version is Ordered or Opaque, not {version!r}")
        write_id: WriteId = _new(cls, (store, octets, version))
        return write_id

    @classmethod
    def position(cls, store: str, epoch: str, counter: int) -> WriteId:
        """Everything in `store`'s history `epoch` up to `counter`."""
        if counter >> 64:  # negative, or too great
            raise ValueError(f"a counter is an unsigned 64-bit number: {counter}")
        _check_position(store, epoch)
        write_id: WriteId = _new(cls, (store, b"", _new(Ordered, (epoch, counter))))
        return write_id

    @property
    def is_position(self) -> bool:
        """Whether this covers a whole history up to its counter."""
        return not self.key

    @property
    def section(self) -> str:
        """This identifier alone, as a section of the wire form."""
        store, octets, version = self
        key = _spell_key(octets) if octets else ""
        if isinstance(version, Opaque):
            return f"{_spell_name(store)}.{key}._.{_spell_mark(version[0])}"
        return f"{_spell_name(store)}.{key}.{_spell_name(version.epoch)}.{version.counter}"

    def __str__(self) -> str:
        return self.section


def from_entry(store: str, key: str, epoch: str, last: int | str) -> WriteId:
    """The write identifier of an entry of a store that has been validated; its key, epoch and mark are spelled."""
    if isinstance(last, int):
        version: Version = _new(Ordered, (wire.unspell_name(epoch), last))
    else:
        version = Opaque(wire.unspell_mark(last))
    write_id: WriteId = _new(WriteId, (store, wire.unspell(key) if key else b"", version))
    return write_id


@lru_cache(maxsize=1024)
def _check_store(store: str) -> None:
    if not 0 < len(store.encode("utf-8", "surrogateescape")) <= wire.MAX_STORE:
        raise ValueError(f"a store's name has 1 to {wire.MAX_STORE} octets: {store!r}")


@lru_cache(maxsize=1024)
def _check_position(store: str, epoch: str) -> None:
    _check_store(store)
    _check_epoch(epoch)


@lru_cache(maxsize=1024)
def _check_epoch(epoch: str) -> None:
    """Checks the epoch of a position: unlike an object's it is never empty."""
    if not epoch:
        raise ValueError("a position needs an epoch")
    if len(epoch.encode("utf-8", "surrogateescape")) > wire.MAX_EPOCH:
        raise ValueError(f"an epoch has at most {wire.MAX_EPOCH} octets: {epoch!r}")


def _check_ordered(version: Ordered, *, position: bool) -> None:
    if not 0 <= version.counter <= wire.MAX_COUNTER:
        raise ValueError(f"a counter is an unsigned 64-bit number: {version.counter}")
    if position or version.epoch:
        _check_epoch(version.epoch)
