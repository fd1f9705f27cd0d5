"""How sure a rate is: Wilson's score interval for a share of a sample."""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

_Z: Final = 1.959963984540054
"""The standard normal distribution's 97.5th percentile: an interval of 95 %."""


class Rate(NamedTuple):
    """A share, between 0 and 1, with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Rate:
    """The share of `hits` in `of` independent trials.

    Raises:
        ValueError: there is no such share.
    """
    if not 0 <= hits <= of or of == 0:
        raise ValueError(f"{hits} of {of} is no share")
    share = hits / of
    wide = _Z**2 / of
    middle = share + wide / 2
    spread = _Z * sqrt(share * (1 - share) / of + wide / (4 * of))
    # Rounding must not push the share itself out of its interval, nor the interval out of 0 to 1.
    low = 0.0 if hits == 0 else min((middle - spread) / (1 + wide), share)
    high = 1.0 if hits == of else max((middle + spread) / (1 + wide), share)
    return Rate(share, low, high)
