"""The decider against the definition by search (HIST-9 to HIST-14), on every small history and on random ones."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest
from antipode.check.history.building import build
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import UNATTRIBUTED, History, Kind, Operation
from antipode.check.history.paths import Step
from antipode.check.history.patterns import Pattern
from antipode.check.history.witness import Witness
from check_history.by_definition import closed, is_consistent
from check_history.every import every_history
from check_history.random_histories import random_history, random_reader
from hypothesis import given, settings
from hypothesis import strategies as st


def agrees(history: History) -> Verdict:
    decision = decide(history, shown=0)
    assert (decision.verdict is Verdict.VIOLATED) != is_consistent(history), [
        dataclasses.asdict(o) for o in history.operations
    ]
    return decision.verdict


@pytest.mark.parametrize(("operations", "count"), [(1, 2), (2, 17), (3, 155), (4, 1702), (5, 20430)])
def test_every_history(operations: int, count: int) -> None:
    """Up to 5 operations in 3 threads and 3 keys; each once, up to names. That none is left out is the count."""
    verdicts = Counter(agrees(history) for history in every_history(operations))
    assert verdicts.total() == count
    assert verdicts[Verdict.VIOLATED] or operations == 1


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
def test_every_history_of_six() -> None:
    verdicts = Counter(agrees(history) for history in every_history(6))
    assert verdicts == {Verdict.CONSISTENT: 103330, Verdict.VIOLATED: 162352}


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_random_histories_with_messages_and_lineages(seed: int) -> None:
    history = random_history(seed)
    decision = decide(history)
    assert (decision.verdict is Verdict.VIOLATED) != is_consistent(history)
    if history.gaps:
        assert decision.verdict is not Verdict.CONSISTENT
    for witness in decision.witnesses:
        shows(history, witness)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_random_readers(seed: int) -> None:
    """Of these about a quarter are CyclicHB."""
    history = random_reader(seed)
    decision = decide(history)
    assert (decision.verdict is Verdict.VIOLATED) != is_consistent(history)
    for witness in decision.witnesses:
        shows(history, witness)


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
def test_many_random_histories() -> None:
    found: Counter[Pattern] = Counter()
    for seed in range(20_000):
        history = random_history(seed, most=13) if seed % 4 else random_reader(seed)
        decision = decide(history)
        assert (decision.verdict is Verdict.VIOLATED) != is_consistent(history), seed
        for witness in decision.witnesses:
            shows(history, witness)
            found[witness.pattern] += 1
    assert set(found) >= {Pattern.CYCLIC_CO, Pattern.WRITE_CO_INIT_READ, Pattern.WRITE_CO_READ, Pattern.CYCLIC_HB}


def shows(history: History, witness: Witness) -> None:
    """The witness is a violation by itself, and none without any one of its operations (HIST-15)."""
    kept = witness.operations
    assert not is_consistent(alone(history, kept))
    order = closed(history)
    for step in witness.chain:
        assert isinstance(step, Step)
        assert order[step.earlier][step.later]
    read = history.operations[witness.read].id
    for left_out in kept:
        rest = alone(history, [number for number in kept if number != left_out])
        # A read on the way may be wrong by itself; this one is no longer.
        assert (witness.pattern, read) not in {(w.pattern, rest.operations[w.read].id) for w in decide(rest).witnesses}


def alone(history: History, kept: list[int]) -> History:
    """Only these operations, with the direct causes between them."""
    ids = {history.operations[number].id for number in kept}
    made: list[Operation] = []
    for number in kept:
        each = dataclasses.replace(history.operations[number], lineage=None)
        if each.kind is Kind.READ and each.reads_from is not None and each.reads_from not in ids:
            known = any(other.id == each.reads_from for other in history.operations)
            each.reads_from = UNATTRIBUTED if known else each.reads_from
        if each.kind is Kind.SEND and number not in history.sent.values():
            each.lineage = ()
        carried = tuple(history.operations[write].id for write in history.carried.get(number, ()))
        if each.kind is not Kind.SEND:
            each.lineage = tuple(name for name in carried if name in ids)
        made.append(each)
    return build(made)


def test_a_write_forced_before_another_reaches_back() -> None:
    """WriteHBInitRead needs eight operations in this form: more than the enumeration has."""
    for shuffle in range(20):
        chance = random.Random(shuffle)
        names = [["x", "k1", "z"], ["k2"], ["r1", "r2", "r3", "r4"]]
        key = {"x": "x", "k1": "k", "z": "z", "k2": "k", "r1": "k", "r2": "x", "r3": "z", "r4": "k"}
        source = {"r1": "k2", "r2": None, "r3": "z", "r4": "k2"}
        made: list[Operation] = []
        while any(names):
            thread = chance.choice([place for place, left in enumerate(names) if left])
            name = names[thread].pop(0)
            kind = Kind.READ if name in source else Kind.WRITE
            made.append(Operation(name, kind, "p", str(thread), store="s", key=key[name], reads_from=source.get(name)))
        history = build(made)
        assert agrees(history) is Verdict.VIOLATED
        assert decide(history).witnesses[0].pattern is Pattern.WRITE_HB_INIT_READ
