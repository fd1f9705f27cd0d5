"""Durations: ``80ms``, ``1.5s`` on the command line; float seconds or timedelta in code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

from antipode_lab.errors import LabError

Duration = float | timedelta | str
"""Seconds, a timedelta, or text with its unit (``80ms``, ``0.5s``, ``2m``)."""

_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|)\s*")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def seconds(value: Duration) -> float:
    """``value`` in seconds. Text needs a unit, except ``0``.

    Raises:
        LabError: for what is no duration, or a negative one.
    """
    if isinstance(value, timedelta):
        result = value.total_seconds()
    elif isinstance(value, str):
        match = _TEXT.fullmatch(value)
        if match is None or (not match[2] and float(match[1]) != 0):
            raise LabError(f"{value!r} is no duration; write it with its unit, such as 80ms or 1.5s")
        result = float(match[1]) * _SECONDS[match[2] or "s"]
    else:
        result = float(value)
    if not 0 <= result < 3600:
        raise LabError(f"a duration of {result:g} s is outside 0 to 3600 s")
    return result


def lag_ms(value: Duration) -> int:
    """A one-way lag in whole milliseconds, which is all that Toxiproxy can do.

    Raises:
        LabError: for a lag with a fraction of a millisecond.
    """
    exact = seconds(value) * 1000
    whole = round(exact)
    if abs(exact - whole) > 1e-6:
        raise LabError(
            f"a lag of {exact:g} ms is not whole milliseconds, which is all that Toxiproxy can do; "
            "for less, put antipode_lab.relay in front of the server"
        )
    return whole


def spread(lags: Duration | Sequence[Duration], count: int) -> list[int]:
    """One lag a link, in ms: the last one given holds for all further links."""
    given: Iterable[Duration] = [lags] if isinstance(lags, str | float | int | timedelta) else lags
    found = [lag_ms(lag) for lag in given]
    if not found:
        raise LabError("no lag given")
    if len(found) > max(count, 1):
        raise LabError(f"{len(found)} lags given for {count} link(s)")
    return [found[min(index, len(found) - 1)] for index in range(count)]
