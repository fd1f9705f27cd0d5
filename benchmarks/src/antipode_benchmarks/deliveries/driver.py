"""One run: couriers that are killed, and what came out at the end."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from antipode import Lineage, MalformedLineageError, WriteId

from antipode_benchmarks.deliveries.brokers import Broker
from antipode_benchmarks.deliveries.couriers import ORIGIN, RELAY

PRODUCERS: Final = 2
RELAYS: Final = 3
KILLS: Final = 50
"""About so many in a run, between arrivals: on a slow machine couriers would be killed before they begin."""
PATIENCE_S: Final = 60.0
"""A message that does not come while nothing new comes for so long is lost."""


class Courier:
    """A process that is started anew when it is killed."""

    may_end = False

    def __init__(self, command: Sequence[str], words: Sequence[str]) -> None:
        self.command = [*command, *words]
        self.begin()

    def begin(self) -> None:
        """Start the process."""
        words = ["setpriv", "--pdeathsig", "KILL", *self.command]  # it does not outlive the driver
        output = subprocess.PIPE if self.may_end else subprocess.DEVNULL
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, text=True)

    def end(self) -> None:
        """Kill the process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def check(self) -> None:
        """Raise where it ended by itself before it had done all."""
        if self.process.poll() not in {None, -signal.SIGKILL, *([0] if self.may_end else [])}:
            raise RuntimeError(f"a courier ended with {self.process.returncode}: {' '.join(self.command)}")


class Producer(Courier):
    """A producer of the messages from `first` to before `last`; `confirmed`: those that the broker has for certain."""

    may_end = True

    def __init__(self, command: Sequence[str], url: str, queue: str, first: int, last: int) -> None:
        self._parts = [*command, "produce", url, queue]
        self._last = last
        self.confirmed: set[int] = set()
        self._numbers = range(first, last)
        super().__init__(self._parts, [str(first), str(last)])

    def begin(self) -> None:
        """Start the process with what is not confirmed yet."""
        first = next((number for number in self._numbers if number not in self.confirmed), self._last)
        self.command = [*self._parts, str(first), str(self._last)]
        super().begin()
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Kill the process; what it said until then counts."""
        super().end()
        self._reader.join()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                self.confirmed.add(int(line))

    @property
    def is_done(self) -> bool:
        """Return whether all is confirmed."""
        return len(self.confirmed) == len(self._numbers)


@dataclass
class Outcome:
    """What came of a run.

    `unsent`: messages that no producer got through; `lost`: confirmed ones that never came; `bare`: deliveries without
    a whole lineage.
    """

    messages: int
    deliveries: int = 0
    kills: int = 0
    seconds: float = 0.0
    unsent: int = 0
    lost: list[int] = field(default_factory=list)
    bare: list[tuple[int, str]] = field(default_factory=list)
    again: int = 0

    @property
    def is_good(self) -> bool:
        """Return whether nothing was lost."""
        return not self.unsent and not self.lost and not self.bare

    def __str__(self) -> str:
        """Tell it in a line."""
        return (
            f"{self.messages} messages, {self.deliveries} deliveries ({self.again} again), {self.kills} kills, "
            f"{self.seconds:.0f} s: {self.unsent} unsent, {len(self.lost)} lost {self.lost[:5]}, "
            f"{len(self.bare)} without their lineage {self.bare[:5]}"
        )


def is_whole(number: int, text: str) -> bool:
    """Return whether a lineage speaks of both writes that a message depends on, and says that it is complete."""
    try:
        lineage = Lineage.deserialize(text)
    except MalformedLineageError:
        return False
    wanted = {WriteId.position(ORIGIN, "e", number), WriteId.position(RELAY, "e", number)}
    return wanted <= set(lineage) and not lineage.incomplete


def play(broker: Broker, command: Sequence[str], messages: int, seed: int, *, patience: float = PATIENCE_S) -> Outcome:
    """Have couriers send messages on while some are killed, until all came or nothing new comes for `patience` s."""
    chance, begun = random.Random(seed), time.monotonic()
    outcome, seen = Outcome(messages), Counter[int]()
    first, second = broker.queues
    edges = [messages * part // PRODUCERS for part in range(PRODUCERS + 1)]
    producers: list[Producer] = []
    relays: list[Courier] = []
    next_kill, last_news = chance.uniform(0, 2 * messages / KILLS), begun
    try:
        for part in range(PRODUCERS):
            producers.append(Producer(command, broker.url, first, *edges[part : part + 2]))
        for _ in range(RELAYS):
            relays.append(Courier(command, ["relay", broker.url, first, second]))
        while len(seen) < messages and time.monotonic() - last_news < patience:
            for number, text in broker.collect():
                last_news = time.monotonic() if number not in seen else last_news
                seen[number] += 1
                if not is_whole(number, text):
                    outcome.bare.append((number, text))
            for courier in (*producers, *relays):
                courier.check()
            if len(seen) >= next_kill:
                victim = chance.choice([*(each for each in producers if not each.is_done), *relays])
                victim.end()
                victim.begin()
                outcome.kills += 1
                next_kill = len(seen) + chance.uniform(0, 2 * messages / KILLS)
    finally:
        for courier in (*producers, *relays):
            courier.end()
    confirmed = set().union(*(each.confirmed for each in producers))
    outcome.unsent = messages - len(confirmed | seen.keys())
    outcome.lost = sorted(confirmed - seen.keys())
    outcome.deliveries, outcome.again = seen.total(), seen.total() - len(seen)
    outcome.seconds = time.monotonic() - begun
    return outcome
