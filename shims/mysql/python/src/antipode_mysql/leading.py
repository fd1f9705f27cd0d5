"""Where wrapped clients lead, by their words as they are now (spec BAR-52)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pymysql

from antipode_mysql.targets import Target, target_of, words_of

_FILES: Final = ("read_default_file", "option_files")


class _OpenedConnection(NamedTuple):
    connection: weakref.ref[Any]
    words: object
    """What it had for its server when it was opened last."""
    target: Target
    """What it reached then."""
    address: str


class Connections:
    """The wrapped connections of a store, and the servers that they name: each leads there when it is opened anew.

    An application may change a connection's words while it is open: a barrier before the next opening has to know.
    """

    def __init__(self) -> None:
        self._known: dict[int, _OpenedConnection] = {}
        self._kept: dict[object, Target] = {}
        """What connections that are gone have named, by address, where nobody else says where the next one leads."""
        self._last: Mapping[object, Target] = {}

    def opened(self, plain: Any, target: Target, *, is_named: bool) -> None:
        """Note that a connection leads there now. `is_named`: what opens such connections names their servers."""
        known, kept, place = self._known, self._kept, id(plain)

        def forget(_: Any) -> None:
            gone = known[place]
            if not is_named:
                kept.setdefault(gone.address, gone.target)  # first: it is seen here or there
            known.pop(place, None)

        known[place] = _OpenedConnection(weakref.ref(plain, forget), words_of(plain), target, target.address)

    def look(self, _: Any = None) -> object:
        """Return what decides where they lead; equal as long as it is the same, and where no connection is left."""
        return set(self._named())

    def targets(self, _: Any = None) -> list[Target]:
        """Return the servers that they name; those of before where none does any more."""
        return list(self._named().values())

    def _named(self) -> Mapping[object, Target]:
        named: dict[object, Target] = {}
        for each in list(self._known.values()):
            plain = each.connection()
            if plain is None or (words := words_of(plain)) == each.words:
                named[each.address] = each.target
            else:
                named[words] = target_of(plain, reached=False)
        self._last = {**named, **self._kept} or self._last
        return self._last


def look_at_words(words: Mapping[str, Any]) -> object:
    """Return what decides where the words of a pool or an engine lead; equal as long as it is the same."""
    return dict(words), [_stamp(path) for path in _files(words)]


def targets_of_words(words: Mapping[str, Any], driver: str) -> list[Target] | None:
    """Return the servers that a driver's words name, option files included; None where only connecting can tell.

    Raises what the driver raises for them.
    """
    if driver == "pymysql":
        return [target_of(pymysql.Connection(**{**words, "defer_connect": True}))]
    from mysql.connector.connection import MySQLConnection
    from mysql.connector.constants import CNX_POOL_ARGS
    from mysql.connector.optionfiles import read_option_files

    known = {word: value for word, value in words.items() if word not in _FILES}
    if files := _files(words):
        known = read_option_files(option_files=files, **known)
    if known.pop("dns_srv", False):
        return None
    several = known.pop("failover", None) or [{}]
    found = []
    for each in several:
        made: Any = MySQLConnection()
        own = {**known, **each}
        made.config(**{word: value for word, value in own.items() if word not in (*CNX_POOL_ARGS, "priority")})
        found.append(target_of(made))
    return found


def _files(words: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for word in _FILES:
        given = words.get(word) or ()
        found += [given] if isinstance(given, str) else given
    if words.get("read_default_group") and not found:  # as PyMySQL does
        found.append("/etc/my.cnf")
    return [os.path.expanduser(path) for path in found]


def _stamp(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_mtime_ns, found.st_size
