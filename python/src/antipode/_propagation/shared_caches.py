"""Which responses a shared cache may keep, for others than their caller (spec PROP-34, PROP-38, PROP-39)."""

from __future__ import annotations

import re
import time
from typing import Final

from antipode._propagation.carriers import Headers, pairs

_CONTROL: Final = "cache-control"
_TARGETED: Final = frozenset({"cdn-cache-control", "surrogate-control"})
"""The same for some caches alone, and above the first there; those of vendors end like the first of them."""
_ACCELERATED: Final = "x-accel-expires"
_OTHERS: Final = frozenset({_CONTROL, "expires", "last-modified", "content-location", _ACCELERATED})

_NEVER_KEPT: Final = frozenset({"PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
_KEPT_BY_PLACE: Final = frozenset({"POST", "PATCH"})
"""Methods whose answers are kept only where they say of which resource they are."""
_GUESSED: Final = frozenset({0, 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501})
"""Statuses of which a cache may guess how long they are fresh; 0 is one that is not known."""
NOT_MODIFIED: Final = 304
"""The cache has the answer already, by a guess that this one need not give the reason of (RFC 9110, 15.4.5)."""
_STALE: Final = frozenset({"stale-while-revalidate", "stale-if-error"})

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_DATE: Final = re.compile(
    r"[A-Za-z]{3}, ([0-9]{2}) ([A-Za-z]{3}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT", re.ASCII
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_Directives = list[tuple[str, str | None]]


def is_shared(headers: Headers, method: str = "", status: int = 0) -> bool:
    """Return whether a shared cache may keep this response to a request of this method; unsure, it may.

    Where method or status are not known, the headers alone say it.
    """
    if method in _NEVER_KEPT:
        return False
    lines: dict[str, list[str]] = {}
    for name, value in pairs(headers):
        if name in _OTHERS or _is_targeted(name):
            lines.setdefault(name, []).append(value)
    by_place = method in _KEPT_BY_PLACE
    if (not lines and status != NOT_MODIFIED) or (by_place and "content-location" not in lines):
        return False
    if any(map(_is_not_zero, lines.get(_ACCELERATED, ()))):
        return True
    if "expires" in lines:
        otherwise = not all(map(_is_past, lines["expires"]))
    else:
        guessed = status == NOT_MODIFIED or ("last-modified" in lines and status in _GUESSED)
        otherwise = guessed and not by_place
    return _shares(lines.get(_CONTROL, []), otherwise) or any(
        _shares(values, False) for name, values in lines.items() if _is_targeted(name)
    )


def _is_targeted(name: str) -> bool:
    return name in _TARGETED or name.endswith("-cdn-cache-control")


def _shares(lines: list[str], otherwise: bool) -> bool:
    """Whether these directives let a cache keep the response; `otherwise`: where they say nothing of its age."""
    line = ",".join(lines).lower()
    exact = _directives(_QUOTED.sub(lambda quoted: quoted[0].replace(",", " "), line))
    loose = exact + _directives(line)  # some caches split at each comma
    words = {word for word, _ in loose}
    if "public" in words:
        return True
    out = ("private", "no-cache") if "must-understand" in words else ("private", "no-cache", "no-store")
    if any(_stands_alone(word, exact) for word in out):
        return False
    named = {word for word, _ in exact}
    age = "s-maxage" if "s-maxage" in named else "max-age"
    ages = {age, "s-maxage"} | _STALE
    if any(word in ages and _is_not_zero(value) for word, value in loose):
        return True
    return otherwise and age not in named


def _directives(line: str) -> _Directives:
    found: _Directives = []
    for directive in line.split(","):
        word, equals, value = directive.partition("=")
        found.append((word.strip(), value if equals else None))
    return found


def _stands_alone(word: str, directives: _Directives) -> bool:
    """Return whether a word is there, each time by itself: with the name of a field it speaks of that field alone."""
    values = [value for other, value in directives if other == word]
    return bool(values) and all(value is None for value in values)


def _is_not_zero(value: str | None) -> bool:
    digits = (value or "").strip(' \t"')
    return not digits or digits.strip("0") != ""


def _is_past(expires: str) -> bool:
    """Whether every cache takes it for past: no date at all is (RFC 9111, 5.3), an old form of one may not be."""
    text = expires.strip(" \t")
    if re.fullmatch("-?[0-9]*", text):
        return True
    date = _DATE.fullmatch(text)
    if date is None or date[2] not in _MONTHS:
        return False
    day, year, hour, minute, second = (int(date[place]) for place in (1, 3, 4, 5, 6))
    return (year, _MONTHS.index(date[2]) + 1, day, hour, minute, second) <= tuple(time.gmtime())[:6]
