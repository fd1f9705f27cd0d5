"""The hybrid logical clock: its vectors, and its laws for any times and any counters (spec SHIM-24 to SHIM-29)."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from antipode._store.hybrid_clock import MAX_AHEAD_S, NODE_BITS, HybridClock, place_number, seconds_of, tick_of
from hypothesis import given, settings
from hypothesis import strategies as st

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
START = 1_700_000_000_000_000_000
unhurried = settings(deadline=None)  # other processes may have the cores


class Hands:
    """A time that a test sets."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    assert found["cases"]
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


@pytest.mark.parametrize("case", cases("hybrid-clock"))
def test_vectors(case: dict[str, Any]) -> None:
    hands = Hands()
    clock = HybridClock(node=case["node"], time_ns=hands)
    for step in case["steps"]:
        hands.now = int(step.get("now", hands.now))
        if "next" in step:
            assert clock.next() == int(step["next"])
        elif "observe" in step:
            assert clock.observe(int(step["observe"])) is step["adopted"]
        else:
            gives = clock.above(int(step["above"]))
            assert gives == (None if step["gives"] is None else int(step["gives"]))


@pytest.mark.parametrize("case", cases("hybrid-clock-place"))
def test_place_vectors(case: dict[str, Any]) -> None:
    assert place_number(case["region"]) == case["place"]


class Writer:
    def __init__(self, node: int) -> None:
        self.hands = Hands()
        self.clock = HybridClock(node=node, time_ns=self.hands)


writers = st.integers(0, 2)
jumps = st.tuples(st.just("time"), writers, st.integers(-(10**12), 10**12))
issues = st.tuples(st.just("next"), writers, st.just(0))
meetings = st.tuples(st.just("observe"), writers, st.integers(0, 30))
forgeries = st.tuples(st.just("forge"), writers, st.integers(0, 2**64 - 1))


@given(st.lists(st.one_of(jumps, issues, meetings, forgeries), max_size=60))
@unhurried
def test_counters_grow_and_pass_what_was_adopted(steps: list[tuple[str, int, int]]) -> None:
    """SHIM-25, 27, 29: whatever the clocks of three machines do, and whatever is forged."""
    all_writers = [Writer(1), Writer(2), Writer(16383)]
    passed = [0, 0, 0]  # the greatest counter that each has issued or adopted
    issued: list[int] = []
    for kind, who, value in steps:
        writer = all_writers[who]
        if kind == "time":
            writer.hands.now = max(0, writer.hands.now + value)
        elif kind == "next":
            counter = writer.clock.next()
            assert counter > passed[who]
            assert counter & 0x3FFF == writer.clock.node
            assert counter >> NODE_BITS >= tick_of(writer.hands.now)
            passed[who] = counter
            issued.append(counter)
        else:
            seen = value if kind == "forge" else issued[value % len(issued)] if issued else 0
            before = writer.clock.refused
            if writer.clock.observe(seen):
                assert writer.clock.refused == before
                passed[who] = max(passed[who], seen)
            else:
                assert writer.clock.refused == before + 1
                assert seconds_of(seen) > writer.hands.now / 1e9 + MAX_AHEAD_S - 0.001
    assert len(set(issued)) == len(issued)


@given(st.integers(0, 2**64 - 1), st.integers(0, 16383))
@unhurried
def test_above_is_greater_and_leaves_the_clock(counter: int, node: int) -> None:
    clock = HybridClock(node=node, time_ns=Hands())
    before = clock.next()
    above = clock.above(counter)
    assert above is None or counter < above < 2**64
    assert (above is None) == (counter >> NODE_BITS == 2**50 - 1)
    assert clock.next() == before + (1 << NODE_BITS)


@given(st.integers(0, 2**64 - 1))
@unhurried
def test_never_runs_further_ahead_than_allowed(counter: int) -> None:
    clock = HybridClock(node=0, time_ns=Hands())
    clock.observe(counter)
    assert seconds_of(clock.next()) <= START / 1e9 + MAX_AHEAD_S + 0.001


def test_threads_never_share_a_counter() -> None:
    clock = HybridClock(time_ns=Hands())  # a time that stands still: the logical part alone tells them apart
    found: list[list[int]] = [[] for _ in range(8)]

    def issue(mine: list[int]) -> None:
        for _ in range(500):
            mine.append(clock.next())

    threads = [threading.Thread(target=issue, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in found)
    assert len({counter for mine in found for counter in mine}) == 8 * 500


def test_places_tell_regions_apart() -> None:
    a, b = HybridClock(place=7), HybridClock(place=8)
    assert (a.node >> 6, b.node >> 6) == (7, 8)


@pytest.mark.parametrize(
    "wrong", [{"place": 256}, {"place": -1}, {"node": 16384}, {"node": -1}, {"place": 1, "node": 1}]
)
def test_a_place_or_node_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"place|node"):
        HybridClock(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_a_counter_out_of_range_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="unsigned"):
        HybridClock().observe(wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_is_another_writer() -> None:
    """SHIM-29: its node is drawn anew, and a lock that the parent held does not stop it."""
    clock = HybridClock(time_ns=Hands())
    before = clock.next()
    nodes = {clock.node}
    for _ in range(3):  # by chance a child may draw the parent's node, one time in 16,384
        reading, writing = os.pipe()
        with clock._lock:
            child = os.fork()
            if child == 0:  # pragma: no cover
                signal.alarm(30)
                os.write(writing, str(clock.next()).encode())
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        counter = int(os.read(reading, 64))
        os.close(reading)
        os.close(writing)
        assert counter > before
        nodes.add(counter & 0x3FFF)
    assert len(nodes) > 1
