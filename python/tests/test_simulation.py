"""The engine on a virtual clock: thousands of drawn runs, in which nothing may be that may never be (spec BAR).

A seed that fails here is played alone, and made smaller, by `make simulation OPTIONS="SEED SEED+1 --shrink"`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import pytest
from antipode._engine import pace
from antipode._engine.discovery import Discovery
from antipode.testing.simulation import Outcome, drawn, play, seams
from antipode.testing.simulation.mutants import MUTANTS, mutated
from antipode.testing.simulation.script import Call, Event, Features, Script
from antipode.testing.simulation.shrinking import shrunk, told

_RUNS: Final = 2_000
_PART: Final = 250
_MANY: Final = 200_000
_MOST: Final = 2_000
"""In so many runs each mutant has to be found."""
_BEGIN: Final = {"overtaken counts": 1100, "counter is no state": 1000, "own fault is silence": 130}
"""Where a mutant is found soon, as the engine is now: a change of it may make this a longer search."""


@pytest.fixture(autouse=True)
def on_seams() -> Iterator[None]:
    with seams():
        yield


def _play(first: int, runs: int) -> None:
    """Play these seeds in a process of their own: no thread or finalizer of another test takes a step."""
    words = (sys.executable, "-m", "antipode.testing.simulation", str(first), str(first + runs), "--most", str(runs))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{runs} runs, 0 found something")


@pytest.mark.timeout(600)  # of processor time it takes seconds, and on a busy machine minutes
@pytest.mark.parametrize("first", range(0, _RUNS, _PART))
def test_nothing_is_that_may_never_be(first: int) -> None:
    """BAR-11, BAR-25 to BAR-41, BAR-60, BAR-61, BAR-63 to BAR-65; one run in twenty takes the same steps again."""
    _play(first, _PART)


@pytest.mark.stores
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(_RUNS, _MANY, _RUNS))
def test_nothing_is_in_many_runs(first: int) -> None:
    _play(first, _RUNS)


@pytest.mark.stores  # minutes
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_taken_out_is_missed(name: str) -> None:
    first = _BEGIN.get(name, 0)
    found = _first_found(name, range(first, first + _MOST))
    assert found is not None, f"{_MOST} runs do not find it"


def _first_found(name: str, seeds: Sequence[int]) -> Outcome | None:
    for seed in seeds:
        with mutated(name):
            outcome = play(drawn(seed))
        if outcome.findings and not play(drawn(seed)).findings:
            return outcome
    return None


_LOSS: Final = Script(
    seed=1,
    features=Features(servers=2, ttl=0.02),
    events=(
        Event(0.0, "freeze", node=1, value=0.5),
        Event(0.001, "write"),
        Event(0.1, "empty", node=2, value=1.0),
    ),
    calls=(Call(0.002, 1.0, ((0, 0),)),),
)
"""A server shows a write and loses it, while a barrier waits for the other one."""


def test_a_write_that_was_lost_while_another_server_was_waited_for_is_not_passed() -> None:
    outcome = play(_LOSS)
    assert not outcome.findings, told(outcome)
    with mutated("settled stays"):
        broken = play(_LOSS)
    assert [each.oracle for each in broken.findings] == ["snapshot"], told(broken)


_CUT: Final = Script(
    seed=6297,
    features=Features(servers=2),
    events=(
        Event(0.0, "freeze", node=1, value=0.683505),
        Event(0.001, "write"),
        Event(0.2382, "restart", node=2, value=0.3, other=2),
    ),
    calls=(Call(0.002, 3.0, ((0, 0),), is_complete=True),),
)
"""A server restarts while nobody asks it: who asks it next finds the connection cut."""


def test_a_connection_that_is_found_cut_costs_the_first_pause_and_no_more() -> None:
    """BAR-38, BAR-66."""
    outcome = play(_CUT)
    assert not outcome.findings, told(outcome)
    with patch.object(pace, "RETRY_S", (0.1, 0.5)):
        assert [each.oracle for each in play(_CUT).findings] == ["delay"]


_IDLE: Final = Script(
    seed=17226,
    features=Features(kinds=("push",), flight=0.15, discovers=True),
    events=(Event(16.5, "write"),),
    calls=(Call(18.0, 0.01, ((0, 0),)),),
)
"""Discovery was asked more than ten seconds ago, and does not answer again before the deadline."""


def test_names_that_are_too_old_are_waited_for_and_asked_for() -> None:
    """BAR-67."""
    outcome = play(_IDLE)
    assert not outcome.findings, told(outcome)
    with patch.object(Discovery, "refresh", lambda _: None):
        assert "kind" in {each.oracle for each in play(_IDLE).findings}


def test_what_a_run_shows_is_made_smaller() -> None:
    noise = [Event(0.05 * turn, "write") for turn in range(1, 9)]
    calls = (*_LOSS.calls, Call(0.3, 0.3, ((0, 1),), repeats=2), Call(0.4, 0.05, ((0, 0),), by_task=True))
    large = replace(_LOSS, features=replace(_LOSS.features, servers=3), events=(*_LOSS.events, *noise), calls=calls)
    with mutated("settled stays"):
        small = shrunk(play(large))
    assert len(small.script.items) <= len(_LOSS.items), told(small)
    assert small.findings
