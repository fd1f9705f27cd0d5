"""Random histories of a replicated application, consistent by construction, with planted violations (spec HIST-21).

    python python/tests/check_history/generating.py --operations 100000 --plant WriteCORead=3 > history.jsonl

All writes go into one log. Each request sees a prefix of it, which only grows: as far as what it has written,
received and read before, and by chance a little more. So the log, with each request's reads where they stood, is the
order that XCY asks for. A planted violation has keys of its own, so that it is one and stays the only one that it
makes.
"""

from __future__ import annotations

import argparse
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from antipode.check.history.operations import Kind, Operation
from antipode.check.history.patterns import Pattern
from antipode.check.history.writing import write_operations


@dataclass(frozen=True, slots=True)
class Shape:
    """What the application looks like."""

    operations: int = 1000
    services: int = 8
    keys: int = 200
    stores: int = 4
    requests_at_once: int = 40
    length: int = 8
    """Operations of one scope, at most; a scope may send and so begin others."""
    reads: float = 0.6
    lag: int = 50
    """How many writes of the log a fresh request may be behind."""


@dataclass(slots=True)
class _Scope:
    process: str
    scope: str
    request: str
    seen: int
    left: int
    inbox: str = ""
    dependent: bool = False
    written: list[str] = field(default_factory=list)


def generate(seed: int, shape: Shape | None = None, plant: Sequence[Pattern] = ()) -> list[Operation]:
    """A history, the same for the same seed, with one violation for each pattern of `plant`."""
    chance = random.Random(seed)
    operations = list(_Application(chance, shape or Shape()).run())
    for number, pattern in enumerate(plant):
        gadget = _GADGETS[pattern](f"planted-{number}")
        places = sorted(chance.randint(0, len(operations)) for _ in gadget)
        for place, operation in zip(reversed(places), reversed(gadget), strict=True):
            operations.insert(place, operation)
    return operations


class _Application:
    def __init__(self, chance: random.Random, shape: Shape) -> None:
        self._chance = chance
        self._shape = shape
        self._log: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._length = 0
        self._number = 0
        self._requests = 0
        self._scopes: list[_Scope] = []

    def run(self) -> Iterator[Operation]:
        chance, shape = self._chance, self._shape
        for _ in range(shape.operations):
            while len(self._scopes) < shape.requests_at_once:
                self._scopes.append(self._begun())
            place = chance.randrange(len(self._scopes))
            scope = self._scopes[place]
            yield self._operation(scope)
            scope.left -= 1
            if scope.left <= 0:
                self._scopes[place] = self._scopes[-1]
                self._scopes.pop()

    def _begun(self) -> _Scope:
        chance, shape = self._chance, self._shape
        self._requests += 1
        name = f"q{self._requests}"
        seen = max(0, self._length - chance.randint(0, shape.lag))
        return _Scope(self._service(), f"{name}.0", name, seen, chance.randint(1, shape.length))

    def _service(self) -> str:
        return f"service-{self._chance.randrange(self._shape.services)}"

    def _operation(self, scope: _Scope) -> Operation:
        chance = self._chance
        self._number += 1
        name = str(self._number)
        made = Operation(name, Kind.READ, scope.process, scope.scope, scope.request, time=self._number / 1000)
        if scope.inbox:
            made.kind, made.message, scope.inbox = Kind.RECEIVE, scope.inbox, ""
            return made
        if chance.random() < 0.15 and scope.left > 1 and len(self._scopes) < 2 * self._shape.requests_at_once:
            made.kind, made.message = Kind.SEND, f"m{name}"
            begun = _Scope(
                self._service(), f"{scope.request}.{name}", scope.request, scope.seen, scope.left, made.message
            )
            self._scopes.append(begun)
            return made
        item = self._item()
        made.store, made.key = item
        if chance.random() < self._shape.reads:
            scope.seen = max(scope.seen, self._length - chance.randint(0, self._shape.lag))
            made.reads_from = self._newest(item, scope.seen)
            return made
        made.kind = Kind.WRITE
        made.lineage = tuple(scope.written[-4:]) or None
        scope.written.append(name)
        self._length += 1
        self._log.setdefault(item, []).append((self._length, name))
        scope.seen = self._length
        return made

    def _item(self) -> tuple[str, str]:
        key = min(int(self._chance.paretovariate(0.8)) - 1, self._shape.keys - 1)
        return f"store-{key % self._shape.stores}", str(key)

    def _newest(self, item: tuple[str, str], seen: int) -> str | None:
        log = self._log.get(item, [])
        place = bisect_left(log, (seen + 1, ""))
        return log[place - 1][1] if place else None


class _Gadget:
    """Operations of one violation, in keys and scopes of their own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.made: list[Operation] = []

    def _add(self, kind: Kind, scope: str, key: str) -> Operation:
        name = f"{self._name}.{len(self.made) + 1}"
        made = Operation(
            name, kind, f"{self._name}-{scope}", f"{self._name}.{scope}", store="planted", key=f"{self._name}.{key}"
        )
        self.made.append(made)
        return made

    def write(self, scope: str, key: str) -> str:
        return self._add(Kind.WRITE, scope, key).id

    def read(self, scope: str, key: str, source: str | None) -> Operation:
        made = self._add(Kind.READ, scope, key)
        made.reads_from = source
        return made


def _cyclic_co(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    first = gadget.read("a", "x", None)
    own = gadget.write("a", "y")
    gadget.read("b", "y", own)
    first.reads_from = gadget.write("b", "x")
    return gadget.made


def _thin_air(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    gadget.read("a", "x", f"{name}.never")
    return gadget.made


def _init_read(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    gadget.write("writer", "post")
    notice = gadget.write("writer", "notice")
    gadget.read("reader", "notice", notice)
    gadget.read("reader", "post", None)
    return gadget.made


def _old_read(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    old = gadget.write("writer", "post")
    gadget.write("writer", "post")
    notice = gadget.write("writer", "notice")
    gadget.read("reader", "notice", notice)
    gadget.read("reader", "post", old)
    return gadget.made


def _seen_init_read(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    gadget.write("a", "x")
    one = gadget.write("a", "k")
    after = gadget.write("a", "z")
    two = gadget.write("b", "k")
    assert one != two
    gadget.read("reader", "k", two)
    gadget.read("reader", "x", None)
    gadget.read("reader", "z", after)
    gadget.read("reader", "k", two)
    return gadget.made


def _cyclic_hb(name: str) -> list[Operation]:
    gadget = _Gadget(name)
    one = gadget.write("a", "x")
    two = gadget.write("b", "x")
    gadget.read("reader", "x", one)
    gadget.read("reader", "x", two)
    gadget.read("reader", "x", one)
    return gadget.made


_GADGETS: Final[dict[Pattern, Callable[[str], list[Operation]]]] = {
    Pattern.CYCLIC_CO: _cyclic_co,
    Pattern.THIN_AIR_READ: _thin_air,
    Pattern.WRITE_CO_INIT_READ: _init_read,
    Pattern.WRITE_CO_READ: _old_read,
    Pattern.WRITE_HB_INIT_READ: _seen_init_read,
    Pattern.CYCLIC_HB: _cyclic_hb,
}


def main(words: Sequence[str] | None = None) -> int:
    """Writes a history to standard output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests-at-once", type=int, default=40)
    parser.add_argument("--length", type=int, default=8, help="operations of a scope, at most")
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--lag", type=int, default=50, help="writes that a request may be behind")
    parser.add_argument("--plant", action="append", default=[], metavar="PATTERN[=COUNT]", help=", ".join(Pattern))
    given = parser.parse_args(words)
    plant: list[Pattern] = []
    for word in given.plant:
        name, _, count = word.partition("=")
        try:
            plant += [Pattern(name)] * int(count or 1)
        except ValueError:
            parser.error(f"--plant {word}: want one of {', '.join(Pattern)}, with =COUNT")
    shape = Shape(
        given.operations, keys=given.keys, requests_at_once=given.requests_at_once, length=given.length, lag=given.lag
    )
    write_operations(generate(given.seed, shape, plant), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
