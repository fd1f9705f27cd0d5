"""The failover fuzzer: random failovers on a store's real servers, every write judged (spec EPOCH-27).

Each run takes a primary and two replicas or more, writes through the wrapped client, slows and cuts links, kills and
restarts servers, and promotes again and again: with and without lost writes, and twice with no write between. Writes
are judged at every server in the middle of the run, across promotions by parked barriers, and all of them at the end.

A store gives a `FailoverDriver` and a function that makes one for a seed:

    def fuzz(runs: int, seed: int, say=None) -> Tally:
        return run(lambda seed: MyDriver(…), runs, seed, say=say)   # MyDriver(…) is a context manager: one lab

`check(tally)` asserts what has to hold; `command_line(fuzz)` makes a script of it.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, Final

from antipode._facade.configuration import configure
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.verdict import Verdict
from antipode._scope.operations import scope
from antipode.shim import Server, stores
from antipode.testing import isolated

__all__ = ["FailoverDriver", "Tally", "check", "command_line", "run"]

SLACK_S: Final = 3.0
"""How much longer than its deadline a wait may take on a loaded machine before it counts as a hang."""


class FailoverDriver(ABC):
    """One run's servers of a store, in the words of the fuzzer. A context manager: its end ends the servers.

    It is entered in a registry of its own, and wraps a client at every server then, under `name`, with `replicas=` all
    servers. What is done to servers may return before it has taken effect, unless it says otherwise: the fuzzer wants
    the states in between.
    """

    name: ClassVar[str] = "fuzz"
    """The store's logical name."""
    may_crash_primary: ClassVar[bool] = False
    """Whether `crash_primary` is there."""

    def __enter__(self) -> FailoverDriver:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Ends the servers."""

    @property
    @abstractmethod
    def servers(self) -> Sequence[str]:
        """All servers, three at least."""

    @property
    @abstractmethod
    def primary(self) -> str:
        """The server that takes writes now."""

    @property
    @abstractmethod
    def replicas(self) -> Sequence[str]:
        """The servers that follow it now; an old primary does not until `rejoin`."""

    @abstractmethod
    def address(self, server: str) -> str:
        """The server's address as the shim gives it, or a part of it that no other server's has."""

    # Data

    @abstractmethod
    def write(self, server: str, key: str, value: str) -> None:
        """Writes by the wrapped client of a server, in the current scope."""

    @abstractmethod
    def shows(self, server: str, key: str, value: str) -> bool | None:
        """Whether a server has the value now, asked without Antipode; None where it cannot be asked.

        Called by several threads at once.
        """

    @abstractmethod
    def history(self, server: str) -> Hashable | None:
        """Names which data a server has: its process and the history that it follows.

        A pass is false only where this was the same before the wait and after the look: what is replaced in between is
        an exposure that the page states (BAR-24). None while the data are being replaced.
        """

    @abstractmethod
    def settle_marks(self) -> None:
        """Gives marks the time that they have in real life: what is written so far is proved beyond its epoch.

        Nothing to do where the store has none.
        """

    # Faults

    @abstractmethod
    def lag(self, replica: str, milliseconds: int) -> None:
        """The replica's link is so slow from now on."""

    @abstractmethod
    def cut(self, replica: str, chance: random.Random) -> None:
        """The replica's link carries nothing, in one of the ways in which links fail, until `heal`."""

    @abstractmethod
    def heal(self, replica: str, *, wait: bool) -> None:
        """It carries again; `wait`: returns when data flow."""

    @abstractmethod
    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        """Kills a replica and starts it again. `write` may be called in between, so that it is behind then."""

    @abstractmethod
    def promote(self, replica: str, lost: Callable[[], None] | None) -> None:
        """The replica becomes the primary and the other replicas follow it; returns when it takes writes.

        Without `lost` what is on its way arrives first. With it: once nothing of the old primary's leaves any more
        `lost` is called, which writes there, and what it wrote never arrives anywhere.
        """

    @abstractmethod
    def rejoin(self, server: str, *, wait: bool) -> None:
        """A server that follows nobody, or the wrong one, follows the primary, giving up what that has not got."""

    def crash_primary(self, write: Callable[[], None]) -> None:
        """The primary ends and starts again with less than it had: what `write` writes in between is lost there."""
        raise NotImplementedError

    @abstractmethod
    def calm(self) -> None:
        """The end: links carry without lag, every server follows the primary."""

    @abstractmethod
    def wait_caught_up(self) -> None:
        """Returns when every server has what the primary has, marks included."""


@dataclass
class FailoverWrite:
    """One write: its key and value, and the lineage that it left."""

    key: str
    value: str
    lineage: Lineage


@dataclass
class Tally:
    """What was found; `faults` must stay empty."""

    runs: int = 0
    writes: int = 0
    positionless: int = 0
    """Writes that left an incomplete lineage instead of a version."""
    lost: int = 0
    present: int = 0
    present_unproven: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    lost_passed: list[str] = field(default_factory=list)
    """False passes."""
    hangs: list[str] = field(default_factory=list)
    rash: list[str] = field(default_factory=list)
    """Answered unproven in the middle of a run, and visible within the deadline."""
    looked_empty: list[str] = field(default_factory=list)
    """Lineages of writes that look as if nothing had been written."""

    @property
    def faults(self) -> list[str]:
        return [*self.lost_passed, *self.hangs, *self.rash, *self.looked_empty]

    @property
    def unproven_share(self) -> float:
        """Of the writes that a server has at the end, the share that cannot be proved there."""
        return self.present_unproven / max(self.present, 1)

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {self.writes} writes ({self.positionless} without a version), {self.lost} lost\n"
            f"  false passes {len(self.lost_passed)}, hangs {len(self.hangs)}, unproven though visible in time "
            f"{len(self.rash)}, lost and looking empty {len(self.looked_empty)}\n"
            f"  present at a server {self.present}, of these unproven at the end {self.present_unproven} "
            f"({100 * self.unproven_share:.2f} %)\n"
            f"  judged in the middle: {dict(sorted(self.judged.items()))}"
        )


class _Run:
    """One run of the fuzzer on servers of its own."""

    def __init__(self, driver: FailoverDriver, seed: int, tally: Tally) -> None:
        self.driver = driver
        self.chance = random.Random(seed)
        self.seed = seed
        self.tally = tally
        self.written: list[FailoverWrite] = []
        found = next(store for store in stores() if store.name == driver.name).servers()
        self.servers: dict[str, Server] = {}
        for name in driver.servers:
            [self.servers[name]] = [server for server in found if driver.address(name) in server.address]

    # What happens

    def play(self) -> None:
        self.write(self.chance.randint(3, 8))
        for _ in range(self.chance.randint(2, 4)):
            for _ in range(self.chance.randint(1, 3)):
                self.chance.choice([self.slow_link, self.pause_link, self.restart_replica, self.judge_some])()
                self.write(self.chance.randint(1, 6))
            self.settle_marks()
            failovers = [self.lose_and_promote, self.lose_and_promote, self.promote, self.twice]
            if self.driver.may_crash_primary:
                failovers.append(self.crash_primary)
            self.chance.choice(failovers)()
            self.write(self.chance.randint(0, 4))
            self.judge_some()
        self.finish()

    def write(self, count: int) -> None:
        for _ in range(count):
            self.write_at(self.driver.primary)

    def write_at(self, server: str) -> None:
        number = len(self.written)
        one = FailoverWrite(f"w-{number}", f"{self.seed}-{number}", EMPTY)
        with scope() as opened:
            self.driver.write(server, one.key, one.value)
            one.lineage = opened.lineage
        self.tally.writes += 1
        if not one.lineage.of_store(self.driver.name):
            self.tally.positionless += 1
            if one.lineage.is_complete():
                self.tally.looked_empty.append(f"seed {self.seed}: {one.key}")
        self.written.append(one)

    def settle_marks(self) -> None:
        """Mostly the marks of this epoch get the time that they have in real life, sometimes not."""
        if self.chance.random() < 0.85:
            self.driver.settle_marks()

    def a_replica(self) -> str:
        return self.chance.choice(list(self.driver.replicas))

    def slow_link(self) -> None:
        self.driver.lag(self.a_replica(), self.chance.choice([0, 5, 30]))

    def pause_link(self) -> None:
        replica = self.a_replica()
        self.driver.cut(replica, self.chance)
        self.write(self.chance.randint(0, 3))
        self.judge_some()
        self.driver.heal(replica, wait=self.chance.random() < 0.5)

    def restart_replica(self) -> None:
        count = self.chance.randint(0, 4)
        self.driver.restart_replica(self.a_replica(), lambda: self.write(count), wait=self.chance.random() < 0.5)

    def promote(self) -> None:
        """Nothing is lost on purpose: what is on its way arrives first."""
        with self.across(lose=False):
            self.driver.promote(self.a_replica(), None)
        self.rejoin()

    def lose_and_promote(self) -> None:
        old, target = self.driver.primary, self.a_replica()
        if self.chance.random() < 0.5:
            self.judge_until_there(target)
        count = self.chance.randint(6, 12)

        def lost() -> None:
            for _ in range(count):
                self.write_at(old)

        with self.across(lose=True):
            self.driver.promote(target, lost)
        self.rejoin()

    def twice(self) -> None:
        """The adversary: a second promotion with no write between."""
        self.chance.choice([self.promote, self.lose_and_promote])()
        self.settle_marks()
        self.driver.promote(self.a_replica(), None)
        self.rejoin()

    def crash_primary(self) -> None:
        """The primary starts again from an older copy: what it wrote since is lost, its replicas are ahead."""
        count = self.chance.randint(1, 5)
        self.driver.crash_primary(lambda: self.write(count))

    def rejoin(self) -> None:
        """The old primary becomes a replica of the new one, now or after some writes."""
        if self.chance.random() < 0.5:
            self.write(self.chance.randint(1, 3))
        for name in self.driver.servers:
            if name != self.driver.primary and name not in self.driver.replicas:
                self.driver.rejoin(name, wait=self.chance.random() < 0.5)

    def judge_until_there(self, name: str) -> None:
        """The last write is there, or a while has passed."""
        if self.written and self.written[-1].lineage.of_store(self.driver.name):
            self.judge(self.written[-1], name, 2.0)

    # Judging

    def across(self, *, lose: bool) -> _ParkedBarriers:
        """Barriers parked across a promotion, on what was written last."""
        return _ParkedBarriers(self, self.written[-3:], 2.0 if lose else 3.0)

    def judge_some(self) -> None:
        if not self.written:
            return
        chosen = {id(one): one for one in [*self.written[-4:], self.chance.choice(self.written)]}
        name = self.chance.choice(list(self.driver.servers))
        for one in chosen.values():
            self.judge(one, name, self.chance.choice([0.05, 0.2]))

    def judge(self, one: FailoverWrite, name: str, timeout: float) -> Verdict | None:
        """Judges one write at one server, and looks at once whether it is there."""
        if not one.lineage.of_store(self.driver.name):
            return None
        before = self.driver.history(name)
        began = time.monotonic()
        verdict = self.servers[name].wait_for(one.lineage, timeout).verdict
        took = time.monotonic() - began
        about = f"seed {self.seed}: {one.key} ({one.lineage}) at {name}: {verdict} after {took:.3f} s"
        self.tally.judged[verdict.value] += 1
        if took > timeout + SLACK_S:
            self.tally.hangs.append(about)
        if verdict is Verdict.VISIBLE and self.driver.shows(name, one.key, one.value) is False:
            after = self.driver.history(name)
            if before is not None and before == after:
                self.tally.lost_passed.append(f"{about}; it is at {after}")
            else:
                self.tally.judged["replaced while looking"] += 1
        return verdict

    # The end

    def finish(self) -> None:
        self.driver.calm()
        self.write(self.chance.randint(1, 20))  # the last history may grow past what earlier ones lost
        self.driver.settle_marks()
        self.driver.wait_caught_up()
        for one in self.written:
            there = [name for name in self.driver.servers if self.driver.shows(name, one.key, one.value)]
            self.tally.lost += not there
            for name in self.driver.servers:
                verdict = self.judge(one, name, 0.5)
                if verdict is None or name not in there:
                    continue
                self.tally.present += 1
                if verdict is not Verdict.VISIBLE:
                    self.tally.present_unproven += 1
        self.tally.runs += 1


class _ParkedBarriers:
    """Barriers that wait while something is done to the servers: at each server, for each of some writes."""

    def __init__(self, played: _Run, written: Sequence[FailoverWrite], timeout: float) -> None:
        self.played, self.timeout = played, timeout
        self.threads = [
            threading.Thread(target=self._wait, args=(one, name), daemon=True)
            for one in written
            for name in played.driver.servers
            if one.lineage.of_store(played.driver.name)
        ]

    def _wait(self, one: FailoverWrite, name: str) -> None:
        began = time.monotonic()
        verdict = self.played.servers[name].wait_for(one.lineage, self.timeout).verdict
        took = time.monotonic() - began
        about = f"seed {self.played.seed}: {one.key} ({one.lineage}) parked at {name}: {verdict} after {took:.3f} s"
        tally = self.played.tally
        tally.judged[f"parked {verdict.value}"] += 1
        if took > self.timeout + SLACK_S:
            tally.hangs.append(about)
        if verdict is Verdict.UNPROVEN:
            # What becomes visible within the deadline must not have been called unproven before.
            while time.monotonic() - began < self.timeout:
                if self.played.driver.shows(name, one.key, one.value):
                    tally.rash.append(about)
                    return
                time.sleep(0.01)

    def __enter__(self) -> _ParkedBarriers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self.threads:
            thread.join(self.timeout + 2 * SLACK_S)
            if thread.is_alive():
                self.played.tally.hangs.append(f"seed {self.played.seed}: a parked barrier did not end")


def run(
    make: Callable[[int], AbstractContextManager[FailoverDriver]],
    runs: int,
    seed: int,
    *,
    say: Callable[[str], object] | None = None,
) -> Tally:
    """Plays so many runs, each on servers of its own (`make(seed)`), and tells after each what was found."""
    tally, told = Tally(), 0
    for number in range(runs):
        with isolated(), make(seed + number) as driver:
            # No exposure: whatever passes was asked for now. And no server is left out of a pass while it is restarted:
            # that is an answer about the server (BAR-26), which would hide the one about the write.
            configure(free_path_ttl=0, replica_out_after=30)
            _Run(driver, seed + number, tally).play()
        if say is not None:
            say(f"run {number + 1} of {runs} (seed {seed + number}): {tally.lost} lost, {len(tally.faults)} faults")
            for fault in tally.faults[told:]:
                say(f"  {fault}")
            told = len(tally.faults)
    return tally


def check(tally: Tally, *, most_unproven: float | None = None, most_rash: float = 0.0) -> None:
    """Asserts that nothing passed falsely, hung or was called unproven rashly, and that the runs were worth something.

    `most_unproven`: the share of the present writes that may be unproven at the end. `most_rash`: the share of the
    answers that may be unproven for what is seen within the deadline: where a position lies behind its write, a
    history may fork between the two.
    """
    faults = [*tally.lost_passed, *tally.hangs, *tally.looked_empty]
    if len(tally.rash) > most_rash * tally.judged.total():
        faults += tally.rash
    assert not faults, "\n".join([str(tally), *faults[:20]])
    assert tally.lost > 0, f"no write was lost: {tally}"
    assert tally.judged["visible"] > 0, f"nothing was proved: {tally}"
    assert most_unproven is None or tally.unproven_share <= most_unproven, str(tally)


def command_line(fuzz: Callable[..., Tally], description: str) -> int:
    """A script's main: `--runs N --seed N`; returns the exit status, 1 where there were faults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tally = fuzz(options.runs, options.seed, say=print)
    print(tally, *tally.faults, sep="\n")
    return 1 if tally.faults else 0
