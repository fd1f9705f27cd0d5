"""A run made smaller, as long as it shows what was found: fewer events, barriers, servers, features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from antipode.testing.simulation.run import Outcome, play
from antipode.testing.simulation.script import Call, Event, Features, Script

_PLAIN: Final = Features()
_TRIES: Final = 6
"""So many schedules are tried of each smaller script: what is left out changes all the chances behind it."""
_MOST_PLAYS: Final = 1500


class _Shrinker:
    def __init__(self, outcome: Outcome) -> None:
        self.best = outcome
        self._oracle = outcome.findings[0].oracle
        self._plays = 0

    def shrink(self) -> Outcome:
        before = None
        while before is not self.best and self._plays < _MOST_PLAYS:
            before = self.best
            self._cut_items()
            self._cut_features()
            self._cut_calls()
        return self.best

    def _try(self, script: Script) -> bool:
        """Play a smaller script; take it where some schedule of it shows the same."""
        for turn in range(_TRIES):
            self._plays += 1
            outcome = play(replace(script, seed=self.best.script.seed + 1_000_003 * turn))
            if any(each.oracle == self._oracle for each in outcome.findings):
                self.best = outcome
                return True
        return False

    def _cut_items(self) -> None:
        """Leave out halves of all that happens, then quarters, to the single ones."""
        length = max(len(self._items) // 2, 1)
        while True:
            start = 0
            while start < len(self._items):
                items = self._items
                if not self._try(self._with(items[:start] + items[start + length :])):
                    start += length
            if length == 1:
                return
            length //= 2

    @property
    def _items(self) -> list[Event | Call]:
        return list(self.best.script.items)

    def _with(self, items: Sequence[Event | Call]) -> Script:
        events = tuple(each for each in items if isinstance(each, Event))
        return replace(self.best.script, events=events, calls=tuple(each for each in items if isinstance(each, Call)))

    def _cut_features(self) -> None:
        for features in self._plainer():
            self._try(replace(self.best.script, features=features))

    def _plainer(self) -> Iterator[Features]:
        if len(self.best.script.features.kinds) > 1:
            yield replace(self.best.script.features, kinds=self.best.script.features.kinds[:1])
        while self.best.script.features.servers > 1:
            fewer = replace(self.best.script.features, servers=self.best.script.features.servers - 1)
            yield fewer
            if self.best.script.features != fewer:
                break
        for name in Features.__dataclass_fields__:
            plain = getattr(_PLAIN, name)
            if name not in {"kinds", "servers"} and getattr(self.best.script.features, name) != plain:
                yield replace(self.best.script.features, **{name: plain})

    def _cut_calls(self) -> None:
        for place, call in enumerate(self.best.script.calls):
            for plain in (
                replace(call, repeats=0, pause=0.0),
                replace(call, cancel_after=None),
                replace(call, by_task=False),
                replace(call, picks=call.picks[:1]),
            ):
                calls = list(self.best.script.calls)
                if plain != calls[place]:
                    calls[place] = plain
                    self._try(replace(self.best.script, calls=tuple(calls)))


def shrunk(outcome: Outcome) -> Outcome:
    """Return a smaller run that shows the same; the engine has to be on the seams."""
    return _Shrinker(outcome).shrink()


def told(outcome: Outcome) -> Sequence[str]:
    """Return what a run had, and what was found, for people: the features that are not plain, then what happens."""
    features = outcome.script.features
    differ = [
        f"{name}={getattr(features, name)}"
        for name in Features.__dataclass_fields__
        if getattr(features, name) != getattr(_PLAIN, name)
    ]
    return [
        f"seed {outcome.script.seed}, {' '.join(differ) or 'plain'}",
        *(f"  {line}" for line in outcome.script.lines()),
        *(f"  FOUND {each}" for each in outcome.findings[:3]),
    ]
