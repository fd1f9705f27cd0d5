"""The inventory of a client: tables that name each public way of its classes (spec SHIM-51).

A shim's test calls `check_inventory` with the ways of the classes that it wraps, and with its tables: what writes, what
reads, what hands on something that does, what does neither, what is refused. A release of the client that brings a way,
or takes one away, fails it until somebody has seen what that way does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from antipode._model.errors import ConfigurationError


def public_ways(kinds: Iterable[type]) -> set[str]:
    """Return the names of the public methods and properties of these classes; classes inside of them are none."""
    return {
        name
        for kind in kinds
        for name in dir(kind)
        if not name.startswith("_") and not isinstance(getattr(kind, name, None), type)
    }


def check_makes_none(*kinds: type) -> None:
    """Raise AssertionError where one of these classes of wrapped objects makes another object (SHIM-50)."""
    for kind in kinds:
        with suppress(ConfigurationError):
            kind()
            raise AssertionError(f"{kind.__module__}.{kind.__qualname__} makes an object that records nothing")


def check_inventory(ways: Iterable[str], tables: Mapping[str, Collection[str]]) -> None:
    """Raise AssertionError where a way is in no table or in two, or a table names what is no way."""
    found = set(ways)
    named = [name for table in tables.values() for name in table]
    twice = sorted({name for name in named if named.count(name) > 1})
    unknown, gone = sorted(found - set(named)), sorted(set(named) - found)
    assert not unknown, f"nobody has said what these do: {', '.join(unknown)}"
    assert not gone, f"the client has them no more: {', '.join(gone)}"
    assert not twice, f"they are in two tables: {', '.join(twice)}"
