"""What happens in one run: drawn from its seed, and then a list that can be cut."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from antipode.testing.simulation.shims import SHIMS

_TIMEOUTS: Final = (0.0, 0.05, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0)


@dataclass(frozen=True, slots=True)
class Features:
    """What exists at all in a run."""

    kinds: tuple[str, ...] = ("position",)
    """The shim of each store."""
    servers: int = 1
    """That readers may use, a store."""
    ttl: float = 0.25
    poll: float = 0.005
    replica_out_after: float = 2.0
    reconnect: float = 5.0
    fails: bool = False
    """`on_replica_out=fail`."""
    places: int = 1000
    lag: float = 0.05
    """The longest that a copy of a write usually is on its way."""
    flight: float = 0.001
    """The same of a question, an answer and a push."""
    preemption: float = 0.0
    discovers: bool = False
    """The servers are named by a callable."""
    lingers: bool = False
    """At the end nobody closes anything, and the engine's threads have to end by themselves."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at a time, in seconds from the beginning."""

    at: float
    what: str
    store: int = 0
    node: int = 0
    value: float = 0.0
    other: int = 0

    def __str__(self) -> str:
        numbers = {"node": self.node, "value": self.value, "other": self.other}
        words = "".join(f" {name} {number:g}" for name, number in numbers.items() if number)
        return f"{self.at:.4f} {self.what} at store {self.store}{words}"


@dataclass(frozen=True, slots=True)
class Call:
    """A barrier: of one thread or task, for some of the writes that there are by then."""

    at: float
    timeout: float
    picks: tuple[tuple[int, int], ...]
    """Store, and how many writes before its last one."""
    by_task: bool = False
    repeats: int = 0
    """So often it is called again in its scope, where it passed."""
    pause: float = 0.0
    """Between the repeats."""
    cancel_after: float | None = None
    is_complete: bool = False
    """`require_complete`."""

    def __str__(self) -> str:
        form = "task" if self.by_task else "thread"
        rest = f" cancel after {self.cancel_after:g}" if self.cancel_after is not None else ""
        rest += " complete" if self.is_complete else ""
        rest += f" repeats {self.repeats} every {self.pause:g}" if self.repeats else ""
        return f"{self.at:.4f} barrier by {form} timeout {self.timeout:g} for {self.picks}{rest}"


@dataclass(frozen=True, slots=True)
class Script:
    """One run."""

    seed: int
    features: Features
    events: tuple[Event, ...]
    calls: tuple[Call, ...]

    @property
    def items(self) -> Sequence[Event | Call]:
        """Return all that happens, in the order of time."""
        found: list[Event | Call] = [*self.events, *self.calls]
        return sorted(found, key=lambda each: each.at)

    def lines(self) -> Sequence[str]:
        """Return it for people."""
        return [str(each) for each in self.items]


def drawn(seed: int) -> Script:
    """Return the run of a seed."""
    chance = random.Random(f"script {seed}")
    features = _features(chance)
    length = chance.choice((0.5, 1.0, 1.0, 2.0, 6.0)) if not features.discovers else chance.choice((6.0, 40.0))
    script = Script(seed, features, tuple(_events(chance, features, length)), tuple(_calls(chance, features, length)))
    kind = chance.random()
    if kind < 0.3:
        return _with_race(chance, script)
    if kind < 0.4:
        return _with_loss(chance, script)
    if kind < 0.45:
        return _with_crowd(chance, script)
    if kind < 0.48:
        return _with_age(chance, script)
    if kind < 0.56:
        return _with_stream(chance, script)
    return _with_joining(chance, script) if kind < 0.58 else script


def _with_joining(chance: random.Random, script: Script) -> Script:
    """Return a script in which discovery names a server again, while a barrier waits for another one (BAR-65)."""
    late = chance.uniform(0.3, 0.8)
    events = (
        Event(0.0, "write"),
        Event(4.9, "some names", value=1.0),
        Event(10.0, "freeze", node=1, value=late),
        Event(10.0, "freeze", node=2, value=late + chance.uniform(-0.2, 2.0)),
        Event(10.1, "write"),
    )
    form = chance.random() < 0.5
    calls = (Call(5.2, 0.3, ((0, 0),)), Call(10.25, chance.choice((1.0, 3.0)), ((0, 0),), by_task=form))
    features = replace(script.features, servers=chance.choice((2, 3)), lag=0.002, flight=0.001, discovers=True)
    return replace(script, features=features, events=events, calls=calls)


def _with_stream(chance: random.Random, script: Script) -> Script:
    """Return a script in which a server's position grows, and sometimes stands still, or leaps (BAR-66)."""
    gap = chance.choice((0.004, 0.02, 0.05))
    writes = [Event(gap * turn, "write") for turn in range(int(1.5 / gap))]
    for _ in range(chance.choice((0, 1, 3))):
        at = 1.5 * chance.random()
        if chance.random() < 0.5:
            writes += [Event(at, "write")] * chance.choice((5, 20, 60))
        else:
            writes.append(Event(at, "freeze", node=1, value=chance.choice((0.05, 0.3))))
    calls = tuple(
        Call(2.0 * chance.random(), chance.choice((0.3, 1.0, 3.0)), ((0, chance.choice((0, 0, 0, 2, 10))),))
        for _ in range(chance.choice((2, 8, 30)))
    )
    features = replace(
        script.features,
        kinds=(chance.choice(("position", "push", "push", "callback", "blocking")),),
        servers=chance.choice((1, 1, 2)),
        lag=chance.choice((0.05, 0.3)),
        flight=chance.choice((0.0, 0.0005, 0.002, 0.02)),
        places=1000,
        discovers=False,
    )
    return replace(
        script, features=features, events=(*script.events, *writes) if gap > 0.01 else tuple(writes), calls=calls
    )


def _with_age(chance: random.Random, script: Script) -> Script:
    """Return a script in which a server loses a write while its answer is under way, and the free path goes on."""
    events = (Event(0.0, "write"), Event(0.5, "empty", node=1, value=1.0))
    calls = tuple(
        Call(0.5 - 0.3 * chance.random(), 1.0, ((0, 0),), repeats=8, pause=0.05) for _ in range(chance.choice((1, 2)))
    )
    features = replace(
        script.features,
        kinds=("position",),
        servers=1,
        ttl=0.25,
        lag=0.002,
        flight=0.15,
        reconnect=5.0,
        discovers=False,
    )
    return replace(script, features=features, events=events, calls=calls)


def _with_crowd(chance: random.Random, script: Script) -> Script:
    """Return a script in which nothing is wrong, and all proofs but the last are too old when that comes."""
    events = [Event(0.0, "freeze", node=1, value=0.3), Event(0.001, "write"), Event(0.002, "write")]
    calls = [
        Call(0.003 + 0.2 * chance.random(), 3.0, ((0, turn % 2),), by_task=chance.random() < 0.2) for turn in range(5)
    ]
    features = replace(
        script.features,
        kinds=(chance.choice(("position", "object", "push", "callback")),),
        servers=chance.choice((3, 4, 5)),
        ttl=chance.choice((0.0, 0.02)),
        flight=0.0,
        preemption=0.5,
        places=1000,
        discovers=False,
    )
    return replace(script, features=features, events=tuple(events), calls=tuple(calls))


def _with_loss(chance: random.Random, script: Script) -> Script:
    """Return a script in which servers lose a write while barriers ask for it, over a slow link."""
    events = [Event(0.0, "write"), *(script.events if chance.random() < 0.3 else ())]
    at = 0.3 + 0.3 * chance.random()
    what = chance.choice(("empty", "empty", "empty", "restart", "failed copy"))
    events += [Event(at, what, 0, node, 1.0, 9) for node in range(1, script.features.servers + 1)]
    kind = chance.choice(("callback", "callback", "position", "position", *SHIMS))
    features = replace(
        script.features,
        kinds=(kind, *script.features.kinds[1:]),
        ttl=0.25 if kind == "position" else chance.choice((0.0, 0.25)),
        lag=0.002,
        flight=chance.choice((0.02, 0.15, 0.15)),
        reconnect=5.0,
    )
    pause = chance.choice((0.01, 0.05, 0.1))
    calls = tuple(Call(at + chance.uniform(-0.3, 0.1), 1.0, ((0, 0),), repeats=8, pause=pause) for _ in range(4))
    return replace(script, features=features, events=tuple(events), calls=calls)


def _with_race(chance: random.Random, script: Script) -> Script:
    """Return a script in which a barrier waits for a late server while an early one may lose the write."""
    late = chance.uniform(0.3, 1.0)
    events = [*script.events, Event(0.0, "freeze", node=1, value=late), Event(0.001, "write")]
    for _ in range(chance.choice((1, 1, 2))):
        what = chance.choice(("empty", "empty", "failed copy", "restart", "point"))
        node = chance.randrange(2, script.features.servers + 2)
        at = late * chance.random()
        events.append(Event(at, what, 0, node, chance.choice((0.3, 1.0, 1.0)), chance.randrange(1, 4)))
    form, whole = chance.random() < 0.3, chance.random() < 0.5
    calls = [*script.calls, Call(0.002, chance.choice((1.0, 3.0)), ((0, 0),), by_task=form, is_complete=whole)]
    features = replace(script.features, lag=min(script.features.lag, 0.05))
    return replace(script, features=features, events=tuple(events), calls=tuple(calls))


def _features(chance: random.Random) -> Features:
    kinds = tuple(chance.choice(tuple(SHIMS)) for _ in range(chance.choice((1, 1, 1, 2))))
    ttl = chance.choice((0.0, 0.02, 0.25, 0.25))
    flight = chance.choice((0.0, 0.0005, 0.002, 0.02, 0.15))
    return Features(
        kinds=kinds,
        servers=chance.choice((1, 2, 2, 3, 3, 4)),
        ttl=ttl,
        poll=chance.choice((0.01, 0.02)),
        replica_out_after=chance.choice((0.3, 1.0, 2.0)),
        reconnect=chance.choice((0.2, 1.0, 5.0)) if flight < 0.01 else chance.choice((2.0, 5.0)),
        fails=chance.random() < 0.2,
        places=chance.choice((1, 3, 1000, 1000)),
        lag=chance.choice((0.002, 0.05, 0.3, 1.0, 1.0)),
        flight=flight,
        preemption=chance.choice((0.0, 0.02, 0.2, 0.5)),
        discovers=chance.random() < 0.1,
        lingers=chance.random() < 0.125 and ttl > 0.1,
    )


_HAPPENINGS: Final[Mapping[str, float]] = {
    "empty": 0.5,
    "restart": 0.3,
    "promote": 0.25,
    "point": 0.25,
    "failed copy": 0.2,
    "freeze": 0.2,
    "silence": 0.15,
    "slow": 0.15,
    "refuse": 0.1,
    "cut": 0.15,
    "deaf": 0.2,
    "old write": 0.2,
    "threads": 0.08,
    "descriptors": 0.08,
    "memory": 0.08,
    "sense": 0.08,
    "wall clock": 0.2,
    "leap": 0.04,
    "loop": 0.06,
    "tune": 0.1,
}
"""What there is beside writes, and in how many of the runs."""


def _events(chance: random.Random, features: Features, length: float) -> list[Event]:
    stores, nodes = len(features.kinds), features.servers + 1
    found = [
        Event(length * chance.random() * chance.random(), "write", chance.randrange(stores))
        for _ in range(chance.choice((1, 2, 5, 10)))
    ]
    found.append(Event(0.0, "write", 0))
    on = [each for each, share in _HAPPENINGS.items() if chance.random() < share]
    if features.discovers:
        on += ["no answer", "no names", "some names"]
    for what in on:
        for _ in range(chance.choice((1, 1, 2, 4))):
            found.append(
                Event(
                    length * chance.random(),
                    what,
                    chance.randrange(stores),
                    chance.randrange(nodes),
                    chance.choice((0.0, 0.01, 0.05, 0.3, 1.0, 4.0)),
                    chance.randrange(nodes),
                )
            )
    return found


def _calls(chance: random.Random, features: Features, length: float) -> list[Call]:
    stores = len(features.kinds)
    count = chance.choice((1, 1, 2, 4, 8)) if chance.random() < 0.98 else 200
    tasks = chance.choice((0.0, 0.0, 0.5, 1.0))
    timeout = chance.choice(_TIMEOUTS)
    found = []
    for _ in range(count):
        most = stores if chance.random() < 0.3 else 1
        picks = tuple(
            (chance.randrange(stores), int(4 * chance.random() ** 2)) for _ in range(chance.choice((1, most, 3)))
        )
        repeats = chance.choice((0, 0, 1, 4))
        found.append(
            Call(
                length * chance.random(),
                timeout if chance.random() < 0.5 else chance.choice(_TIMEOUTS),
                picks,
                by_task=chance.random() < tasks,
                repeats=repeats,
                pause=chance.choice((0.0, 0.01, 0.1, 0.3)) if repeats else 0.0,
                cancel_after=0.2 * chance.random() if chance.random() < 0.05 else None,
                is_complete=chance.random() < 0.2,
            )
        )
    return found
