"""The engine on a virtual clock, in a world whose truth is known: runs drawn from seeds, and what may never be in them.

One seed is one run, and one commit and seed always take the same steps. Needs the package `greenlet`. Modules, from the
bottom: `actors` (clock and scheduler), `seams` (what takes the place of time, threads and descriptors in the engine),
`world` (nodes with logs), `shims`, `script` (what is drawn from a seed), `oracles` (what may never be), `happenings`
(what a script's events do), `run`, `shrinking`, `mutants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antipode.testing.simulation.oracles import Finding
from antipode.testing.simulation.run import Outcome, play
from antipode.testing.simulation.script import drawn
from antipode.testing.simulation.seams import seams

__all__ = ["Outcome", "drawn", "outcomes", "play", "seams"]

_TWICE: int = 20
"""One run in so many is played twice."""


def outcomes(seeds: Iterable[int]) -> Iterator[Outcome]:
    """Play the runs of these seeds, within `seams()`; one in twenty twice, to see that it takes the same steps."""
    for seed in seeds:
        outcome = play(drawn(seed))
        if seed % _TWICE == 0:
            again = play(drawn(seed))
            if again.hash != outcome.hash:
                outcome.findings.append(Finding("determinism", f"{outcome.hash}, then {again.hash}", 0.0))
        yield outcome
