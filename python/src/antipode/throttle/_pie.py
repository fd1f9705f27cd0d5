"""When requests are shed: PIE, by the delay that a queue will cause (RFC 8033 as Kanaloa uses it; spec THR-5).

No input or output: times and draws are given, and the vectors `throttle-pie` hold every language to the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

_SMALL: Final = ((0.1, 1.0), (0.01, 0.5))
"""From which probability on a step counts by how much; below them by an eighth."""


@dataclass(frozen=True, slots=True)
class PieOptions:
    """Aims of PIE.

    Attributes:
        reference_delay: the delay in the queue that it aims at, seconds.
        alpha: how much a step of the probability follows the delay.
        beta: how much it follows the delay's growth.
        weight: of the newest speed in the average, 0 to 1.
        burst: how long a burst is let through before anything is shed, seconds.
        quiet: how long the queue has to be short before another burst is let through, seconds.
    """

    reference_delay: float = 0.2
    alpha: float = 0.2
    beta: float = 0.1
    weight: float = 0.2
    burst: float = 1.0
    quiet: float = 10.0


class Pie:
    """The probability with which a request that would have to queue is shed."""

    __slots__ = ("_old", "_options", "_since", "_speed", "delay", "probability", "state")

    def __init__(self, options: PieOptions | None = None) -> None:
        self._options = options or PieOptions()
        self._speed: float | None = None
        self._old: float | None = None
        self._since = 0.0
        self.probability = 0.0
        self.delay = 0.0
        """An estimate of how long a request that queues now will wait, in seconds (THR-6)."""
        self.state: Literal["out", "in", "expired", "leaving"] = "out"
        """Of a burst: none, let through, over its time, over."""

    @property
    def is_shedding(self) -> bool:
        """Return whether a request may be shed now."""
        return self.state != "in" and self.probability > 0

    def shed(self, draw: float) -> bool:
        """Return whether a request is shed that has to queue; `draw` is uniform in [0, 1)."""
        return self.state != "in" and draw < self.probability

    def tick(self, queue: int, admitted: int, seconds: float, now: float) -> None:
        """Take in one interval.

        Args:
            queue: how many requests wait now.
            admitted: how many got a permit in the interval.
            seconds: how long the interval really was.
            now: a monotonic time.
        """
        own = self._options
        if queue > 0:
            speed = admitted / seconds
            self._speed = speed if self._speed is None else own.weight * speed + (1 - own.weight) * self._speed
        if self._speed:
            delay = queue / self._speed
        elif queue > 0:
            delay = seconds * queue
        else:
            return
        self.delay = delay
        old, self._old = self._old, delay
        if old is None:
            return
        reference = own.reference_delay
        factor = next((factor for least, factor in _SMALL if self.probability >= least), 0.125)
        step = own.alpha * (delay - reference) / reference + own.beta * (delay - old) / reference
        self.probability = min(max(self.probability + factor * step, 0.0), 1.0)
        self._follow_burst(self.probability == 0 and max(old, delay) < reference / 2, now)

    def _follow_burst(self, has_caught_up: bool, now: float) -> None:
        lasted = now - self._since
        if has_caught_up and self.state in {"in", "expired"}:
            self.state, self._since = "leaving", now
        elif has_caught_up and self.state == "leaving" and lasted > self._options.quiet:
            self.state = "out"
        elif not has_caught_up and self.state == "out":
            self.state, self._since = "in", now
        elif not has_caught_up and (self.state == "leaving" or (self.state == "in" and lasted > self._options.burst)):
            self.state = "expired"
