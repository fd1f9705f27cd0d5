"""Random histories with planted violations, and how large they may be (HIST-20, HIST-21, HIST-17)."""

from __future__ import annotations

import io
import time
import tracemalloc

import pytest
from antipode.check.history.building import build
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import Kind, Operation
from antipode.check.history.patterns import Pattern
from antipode.check.history.reading import read_operations
from check_history import generating
from check_history.by_definition import is_consistent
from check_history.generating import Shape, generate
from hypothesis import given, settings
from hypothesis import strategies as st

LONG_SESSIONS = Shape(operations=3000, requests_at_once=6, length=2000, keys=5)
BUSY = Shape(operations=3000, requests_at_once=200, keys=3, lag=20)


@pytest.mark.parametrize("shape", [Shape(operations=3000), LONG_SESSIONS, BUSY])
@pytest.mark.parametrize("seed", range(3))
def test_consistent_where_nothing_is_planted(seed: int, shape: Shape) -> None:
    decision = decide(build(generate(seed, shape)))
    assert decision.verdict is Verdict.CONSISTENT
    assert decision.judged > 1000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_small_ones_by_definition(seed: int, operations: int) -> None:
    history = build(generate(seed, Shape(operations=operations, requests_at_once=3, keys=2, lag=3)))
    assert is_consistent(history)
    assert decide(history).verdict is Verdict.CONSISTENT


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from([p for p in Pattern if p is not Pattern.CYCLIC_CO]), max_size=8))
def test_every_planted_violation_is_found_and_no_other(seed: int, plant: list[Pattern]) -> None:
    history = build(generate(seed, Shape(operations=200, requests_at_once=8), plant))
    decision = decide(history)
    names = [history.operations[witness.read].id.rpartition(".")[0] for witness in decision.witnesses]
    assert dict(zip(names, (w.pattern for w in decision.witnesses), strict=True)) == {
        f"planted-{number}": pattern for number, pattern in enumerate(plant)
    }


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_planted_cycles_are_found(seed: int) -> None:
    history = build(generate(seed, Shape(operations=100), [Pattern.CYCLIC_CO, Pattern.CYCLIC_CO]))
    decision = decide(history)
    assert [(found.pattern, len(found.members)) for found in decision.found] == [(Pattern.CYCLIC_CO, 4)] * 2
    assert decision.judged == 0


def test_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--operations", "50", "--seed", "9", "--plant", "CyclicHB", "--plant", "WriteCORead=2"]
    assert generating.main(words) == 0
    first = capsys.readouterr().out
    assert generating.main(words) == 0
    assert capsys.readouterr().out == first
    read = list(read_operations(io.BytesIO(first.encode()), "x"))
    assert len(read) == 50 + 5 + 2 * 5
    assert len(decide(build(read)).found) == 3


def test_out_of_time_is_unknown_and_what_was_found_stands() -> None:
    history = build(generate(1, Shape(operations=3000)))
    decision = decide(history, 0.0)
    assert decision.verdict is Verdict.UNKNOWN
    assert "not decided within" in decision.unfinished
    assert decide(build(generate(1, Shape(operations=50), [Pattern.THIN_AIR_READ])), 0.0).verdict is Verdict.VIOLATED


def test_out_of_memory_is_unknown() -> None:
    decision = decide(build(generate(1, Shape(operations=3000))), memory=10_000)
    assert decision.verdict is Verdict.UNKNOWN
    assert "MiB of memory" in decision.unfinished


def test_sets_are_dropped_once_they_are_not_needed() -> None:
    history = build(generate(1, Shape(operations=10_000)))
    tracemalloc.start()
    try:
        assert decide(history).verdict is Verdict.CONSISTENT
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_strictly_the_difference_is_the_later_write() -> None:
    """HIST-17: R2 read R1's y before R1 wrote x; strictly it had to see x."""
    operations = [
        Operation("y", Kind.WRITE, "a", "1", "R1", "s", "y"),
        Operation("ry", Kind.READ, "a", "2", "R2", "s", "y", "y"),
        Operation("x", Kind.WRITE, "b", "3", "R1", "s", "x"),
        Operation("rx", Kind.READ, "a", "2", "R2", "s", "x", None),
    ]
    history = build(operations)
    decision = decide(history)
    assert decision.verdict is Verdict.CONSISTENT
    assert decision.strict is not None
    [later] = decision.strict.reads
    assert (later.read, later.missed, later.later) == (3, 2, 2)
    assert decision.strict.later_writes == [2]


def test_strictly_requests_that_read_one_another_are_a_circle() -> None:
    operations = [
        Operation("w1", Kind.WRITE, "a", "1", store="s", key="x"),
        Operation("r2", Kind.READ, "b", "2", store="s", key="x", reads_from="w1"),
        Operation("w2", Kind.WRITE, "b", "2", store="s", key="y"),
        Operation("r1", Kind.READ, "a", "1", store="s", key="y", reads_from="w2"),
        Operation("w3", Kind.WRITE, "a", "1", store="s", key="z"),
    ]
    decision = decide(build(operations))
    assert decision.verdict is Verdict.CONSISTENT
    assert decision.strict is not None
    assert (decision.strict.circles, decision.strict.reads) == (1, [])


@pytest.mark.fuzz
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "shape", [Shape(100_000), Shape(100_000, requests_at_once=10, length=20_000), Shape(100_000, keys=1)]
)
def test_a_hundred_thousand_operations(shape: Shape) -> None:
    plant = [pattern for pattern in Pattern if pattern is not Pattern.CYCLIC_CO]
    history = build(generate(1, shape, plant))
    begun = time.monotonic()
    decision = decide(history, memory=2**30)
    assert time.monotonic() - begun < 30
    assert len(decision.found) == len(plant)
    assert not decision.unexplained
