"""A random recorded run on a store whose replica lags, and what its history must say of it (spec HIST-28, HIST-29).

books = play(seed, Hands(put, get, get_there, lag=…), requests=12)
judge(books, folder)

`lines` and `judged` read what was recorded in a folder, of this run or of any test's own.
"""

from __future__ import annotations

import contextvars
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import antipode
from antipode._diagnostics.history import recorder
from antipode._model.errors import AntipodeError
from antipode.check.history.deciding import Decision, Verdict, decide
from antipode.check.history.operations import INITIAL, History, Kind, Operation
from antipode.check.history.reading import read_history
from antipode.messages import HEADER, message_scope, outgoing_message

__all__ = ["Hands", "HistoryOracle", "judge", "judged", "lines", "play"]


def lines(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    """The recorded lines of these kinds, in the order of their files; the recording ends."""
    recorder.forget()
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [line for line in found if line["kind"] in kinds]


def judged(folder: Path) -> tuple[Verdict, History]:
    """What the checker says of what was recorded, and what it read; the recording ends."""
    recorder.forget()
    history = read_history(folder)
    return decide(history).verdict, history


@dataclass(frozen=True)
class Hands:
    """How the run touches the store. Values are unique, so that each says which write it is."""

    write: Callable[[str, str], object]
    """Writes a value under a key at the primary."""
    read: Callable[[str], str | None]
    """Reads at the primary."""
    read_there: Callable[[str], str | None]
    """Reads at the replica."""
    lag: Callable[[bool], object] = lambda _: None
    """Makes the replica lag, or not."""
    delete: Callable[[str], object] | None = None
    """Deletes a key that is there."""
    keys: tuple[str, ...] = ("1", "2", "3")


@dataclass
class HistoryOracle:
    """What really happened: every write with the writes before it, and every read with what it returned."""

    writes: list[tuple[str, str | None]] = field(default_factory=list)
    """The key, and the value or None for a deletion."""
    reads: list[tuple[str, str | None]] = field(default_factory=list)
    before: list[frozenset[int]] = field(default_factory=list)
    stale: int = 0
    """Reads that returned less than their reader depended on; of runs without deletions."""

    def wrote(self, key: str, value: str | None, past: set[int]) -> None:
        """A write has happened."""
        self.before.append(frozenset(past))
        past.add(len(self.writes))
        self.writes.append((key, value))

    def read(self, key: str, value: str | None, past: set[int]) -> None:
        """A read has returned this."""
        self.reads.append((key, value))
        found = None if value is None else self.writes.index((key, value))
        newer = (number for number in past if self.writes[number][0] == key and number != found)
        self.stale += any(found is None or found in self.before[number] for number in newer)
        if found is not None:
            past |= {found} | self.before[found]


def play(seed: int, hands: Hands, *, barriers: bool, requests: int = 12) -> HistoryOracle:
    """Plays the run in one thread: two requests at a time, by turns; each writes, then sends a message to a reader.

    `ANTIPODE_HISTORY` is set by the caller. With `barriers` each reader passes one first; without, the replica lags,
    first of all and then by chance.
    """
    antipode.configure(auto_merge=True)
    chance, books = random.Random(seed), HistoryOracle()
    left = [_request(random.Random(chance.random()), hands, books, barriers) for _ in range(requests)]
    running: list[tuple[contextvars.Context, Iterator[None]]] = []
    if not barriers:
        hands.lag(True)
    while left or running:
        while left and len(running) < 2:
            running.append((contextvars.copy_context(), left.pop()))
        if not barriers and chance.random() < 0.2:
            hands.lag(chance.random() < 0.7)
        turn = chance.choice(running)
        if turn[0].run(next, turn[1], turn) is turn:
            running.remove(turn)
    recorder.forget()
    return books


def _request(own: random.Random, hands: Hands, books: HistoryOracle, barriers: bool) -> Iterator[None]:
    past: set[int] = set()
    with antipode.scope():
        for _ in range(own.randint(1, 4)):
            _operate(own, hands, books, past)
            yield
        text = outgoing_message()
    with message_scope({HEADER: text} if text else {}):
        for _ in range(own.randint(1, 3)):
            yield
            if barriers:
                try:
                    antipode.barrier(timeout=30)
                except AntipodeError:
                    return
            key = own.choice(hands.keys)
            books.read(key, hands.read_there(key), past)


def _operate(own: random.Random, hands: Hands, books: HistoryOracle, past: set[int]) -> None:
    key, deletes = own.choice(hands.keys), hands.delete is not None and own.random() < 0.3
    if deletes or own.random() < 0.3:
        there = hands.read(key)
        books.read(key, there, past)
        if deletes and hands.delete is not None and there is not None:
            hands.delete(key)
            books.wrote(key, None, past)
    else:
        value = f"value {len(books.writes)}"
        hands.write(key, value)
        books.wrote(key, value, past)


def judge(books: HistoryOracle, folder: Path) -> tuple[History, Decision, int]:
    """The history with the verdict, and how many of its reads it attributes.

    Raises AssertionError where a read is attributed to a write that it did not return.
    """
    history = read_history(folder)
    reads = [number for number, each in enumerate(history.operations) if each.kind is Kind.READ]
    writes = {each.id: order for order, each in enumerate(_writes(history))}
    assert len(writes) == len(books.writes), f"{len(writes)} writes in the history, {len(books.writes)} in the books"
    assert len(reads) == len(books.reads), f"{len(reads)} reads in the history, {len(books.reads)} in the books"
    attributed = 0
    for number, (key, value) in zip(reads, books.reads, strict=True):
        read = history.operations[number]
        if history.source[number] >= INITIAL:
            attributed += 1
            wrote = (key, None) if read.reads_from is None else books.writes[writes[read.reads_from]]
            assert wrote == (key, value), f"{read.place}: attributed to the write of {wrote}, and it was {value!r}"
    return history, decide(history), attributed


def _writes(history: History) -> list[Operation]:
    return [each for each in history.operations if each.kind is Kind.WRITE]
