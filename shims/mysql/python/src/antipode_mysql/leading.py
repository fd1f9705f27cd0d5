"""Where wrapped clients lead: by their words as they are now, and by the servers that they reached (spec BAR-52)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pymysql

from antipode_mysql.targets import Target, target_of, words_of

_FILES: Final = ("read_default_file", "option_files")


class Connections:
    """The wrapped connections of a store, and every server that one of them has reached.

    A server that was reached stays: whatever opens connections that lead now here, now there may open the next one
    there again. An application may change a connection's words while it is open; it leads elsewhere at the next
    opening, which a barrier before that has to know.
    """

    def __init__(self) -> None:
        self.reached: dict[str, Target] = {}
        """By address."""
        self._known: dict[int, tuple[weakref.ref[Any], object]] = {}
        """The living connections, each with its words when it was opened last."""

    def opened(self, plain: Any, target: Target) -> None:
        """Note that a connection leads there now."""
        known, place = self._known, id(plain)
        self.reached.setdefault(target.address, target)
        known[place] = weakref.ref(plain, lambda _: known.pop(place, None)), words_of(plain)

    def look(self, _: Any = None) -> object:
        """Return the words of those connections that will lead elsewhere when they are opened anew."""
        return frozenset(words for _, words in self._moved())

    def targets(self, _: Any = None) -> list[Target]:
        """Return all servers that were reached, and those that connections will lead to."""
        return [*self.reached.values(), *(target_of(plain, reached=False) for plain, _ in self._moved())]

    def _moved(self) -> Iterable[tuple[Any, object]]:
        for reference, before in list(self._known.values()):
            plain = reference()
            if plain is not None and (words := words_of(plain)) != before:
                yield plain, words


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
