"""A process in which the n-th call of a function of the system fails, as `test_nth_failure.py` starts it (BAR-61).

Each round freezes what the replica applies, writes, has a call fail while barriers are asked, and thaws. It prints a
line of JSON a row of rounds; what may not be ends it with a traceback.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import antipode
import antipode_redis
import redis
from antipode._engine.pending_wait import judged_server
from antipode._store.store import registry
from antipode_lab.call_faults import PREFIX

STORE: Final = "posts"
OUT_AFTER_S: Final = 0.4
"""A fault that goes on does so for longer, and is no silence of the server all the same."""
WHOLE_S: Final = 5.0
SLACK_S: Final = 5.0
"""Another process may have the machine."""
_IN_A_ROW_S: Final = 2.0
_PR_SET_NAME: Final = 15
_APPLICATIONS: Final = frozenset({"poll", "memory"})
"""What the application's own command, on a connection that is open, calls itself."""


def say(words: str) -> tuple[int, int]:
    """Tell the library something; return how many calls it has counted, and how many of them failed."""
    with open(PREFIX + words, encoding="ascii") as file:
        counted, failed, _ = map(int, file.read().split())
    return counted, failed


@contextmanager
def counted() -> Iterator[None]:
    """Count the calls of this thread: what it does is Antipode's."""
    say("count")
    try:
        yield
    finally:
        say("spare")


def until(condition: Callable[[], object], what: str, seconds: float) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.005)


class Rounds:
    """The rounds of one process."""

    def __init__(self, primary: str, replica: str) -> None:
        antipode.configure(free_path_ttl=0, replica_out_after=OUT_AFTER_S, reconnect=0.1)
        self.replica = _plain(replica)
        self.replica.execute_command("CLIENT", "UNPAUSE")  # whatever ended in a round before
        self.posts = antipode_redis.wrap(redis.Redis.from_url(primary), STORE, replicas=[replica])
        self.keys = (f"key {os.getpid()} {number}" for number in itertools.count())
        self.loop = asyncio.new_event_loop()
        self.signals = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        self.key = next(self.keys)
        lineage = self.write(self.key)
        assert self.judge(lineage, 20.0, "thread").complete
        until(lambda: self.replica.exists(antipode_redis.marks.DEFAULT_KEY), "a mark, by a thread that goes on", 30.0)
        self.cool()
        self.threads, self.files = _threads(), _files()

    def write(self, key: str) -> antipode.Lineage:
        """Write by the application's own command."""
        with antipode.scope() as scope:
            self.posts.set(key, "v")
            return scope.lineage

    def judge(self, lineage: antipode.Lineage, timeout: float, form: str) -> antipode.BarrierResult:
        """Return what a barrier says, by its deadline; a pass is true."""
        began = time.monotonic()
        options: dict[str, Any] = {"timeout": timeout, "on_timeout": "proceed", "on_unproven": "proceed"}
        if form == "thread":
            result = antipode.barrier(lineage, **options)
        else:
            result = self.loop.run_until_complete(antipode.barrier_async(lineage, **options))
        took = time.monotonic() - began
        assert took < timeout + SLACK_S, f"it took {took:.1f} s: {result.explain()}"
        if result.satisfied:
            assert self.shows(self.key), f"A FALSE PASS: {result.explain()}"
        assert not result.stores[STORE].left_out, result.explain()
        return result

    def shows(self, key: str) -> bool:
        """Return whether the replica shows a write."""
        say("spare")
        return self.replica.get(key) is not None

    def cool(self) -> None:
        """End the threads that ask."""
        for server in registry().need(STORE).servers():
            judged_server(server).retire()

    def play(self, function: str, number: int, kind: str, form: str, start: str) -> int:
        """Play one round; return how many calls failed."""
        if start == "cold":
            self.cool()
        else:
            assert self.judge(self.write(self.key), 20.0, form).satisfied
        self.key = next(self.keys)
        self.replica.execute_command("CLIENT", "PAUSE", "600000", "WRITE")
        try:
            say(f"arm {function} {number} {kind}")
            if function in _APPLICATIONS:
                lineage = self.write(self.key)
            else:
                with counted():
                    lineage = self.write(self.key)
            assert lineage.of_store(STORE), "the write is lost"
            assert not self.shows(self.key)
            over = time.monotonic() + (1.5 * OUT_AFTER_S if kind == "on" else 0.0)
            while True:
                result = self._judge_counted(function, lineage, form)
                assert not result.satisfied, f"A FALSE PASS: {result.explain()}"
                if time.monotonic() >= over:
                    break
        finally:
            self.replica.execute_command("CLIENT", "UNPAUSE")
        if kind == "once":
            self._judge_counted(function, lineage, form)  # a pass is true
        _, failed = say("disarm")
        until(lambda: self.judge(lineage, 1.0, form).complete, "barriers pass", WHOLE_S + SLACK_S)
        until(lambda: self._takes(form) < _IN_A_ROW_S, "a new barrier wakes the thread", WHOLE_S + SLACK_S)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == self.signals
        return failed

    def _takes(self, form: str) -> float:
        """Return how long some barriers in a row take: each that wakes nobody would wait for most of a second."""
        began = time.monotonic()
        for key in itertools.islice(self.keys, 5):
            self.key = key
            assert self.judge(self.write(self.key), 20.0, form).complete
        return time.monotonic() - began

    def _judge_counted(self, function: str, lineage: antipode.Lineage, form: str) -> antipode.BarrierResult:
        if function in _APPLICATIONS:  # the engine's own thread alone
            return self.judge(lineage, 0.15, form)
        with counted():
            return self.judge(lineage, 0.15, form)

    def check_marks(self) -> None:
        """Check that the thread that marks goes on."""
        [write_id] = self.write(next(self.keys)).of_store(STORE)
        assert isinstance(write_id.version, antipode.Ordered)
        epoch, counter = write_id.version

        def is_marked() -> bool:
            value: Any = self.replica.hget(antipode_redis.marks.DEFAULT_KEY, epoch)
            return (antipode_redis.marks.position_of(value) or 0) >= counter

        until(is_marked, "a mark", 30.0)

    def check_leaks(self) -> None:
        """Check that nothing is open that was not at the beginning."""
        self.cool()
        until(
            lambda: _threads() <= self.threads and _files() <= self.files,
            f"as few threads and files as before ({self.threads}, {self.files})",
            30.0,
        )


def _plain(url: str) -> Any:
    return redis.Redis.from_url(url)


def _threads() -> int:
    """Return how many there are: `threading` goes on counting one that ended, where that had no memory to be told."""
    return len(os.listdir("/proc/self/task"))


def _files() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> None:
    """Play what the arguments say: the servers' URLs, and a JSON list of [function, kind, form, start, numbers]."""
    primary, replica, wanted = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"antipode-main", 0, 0, 0)  # threads inherit it: their calls count
    say("spare")
    rounds = Rounds(primary, replica)
    for function, kind, form, start, numbers in json.loads(wanted):
        failed = 0
        for number in numbers:
            began = time.monotonic()
            try:
                found = rounds.play(function, number, kind, form, start)
            except BaseException:
                print(f"round: {function} {number} {kind} {form} {start}", file=sys.stderr)
                raise
            if not found:
                break
            failed += 1
            if os.environ.get("ROUNDS"):
                print(function, number, kind, form, start, found, f"{time.monotonic() - began:.2f}", flush=True)
        print(json.dumps([function, kind, form, start, failed]), flush=True)
    rounds.check_marks()
    rounds.check_leaks()
    print(json.dumps("whole"), flush=True)


if __name__ == "__main__":
    main()
