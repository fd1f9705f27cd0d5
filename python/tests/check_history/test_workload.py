"""A recorded random workload: with barriers consistent, without them violated where it was (HIST-23 to HIST-32)."""

from __future__ import annotations

from pathlib import Path

import pytest
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import History
from antipode.check.history.reading import read_history
from antipode.memory.node import Versions
from check_history.workload import Workload

SEEDS = range(8)


def gaps(history: History) -> list[str]:
    return [f"{history.operations[gap.operation].place}: {gap.reason}" for gap in history.gaps]


@pytest.mark.parametrize("versions", ["object", "position"])
@pytest.mark.parametrize("seed", SEEDS)
def test_with_barriers_the_history_is_consistent(tmp_path: Path, seed: int, versions: Versions) -> None:
    books = Workload(tmp_path, seed, barriers=True, versions=versions).run()
    assert books.reads > 20
    history = read_history(tmp_path)
    decision = decide(history)
    assert not gaps(history)
    assert decision.verdict is Verdict.CONSISTENT
    assert (decision.judged, books.stale) == (books.reads, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_them_each_stale_read_is_found_and_no_other(tmp_path: Path, seed: int) -> None:
    """Of objects, whose versions stand for themselves alone: what a history says is what really depended."""
    books = Workload(tmp_path, seed, barriers=False, versions="object").run()
    history = read_history(tmp_path)
    decision = decide(history)
    assert not gaps(history)
    assert decision.judged == books.reads
    direct = [found for found in decision.found if found.pattern.startswith("WriteCO")]
    assert len(direct) == books.stale
    assert (decision.verdict is Verdict.VIOLATED) == bool(decision.found)


@pytest.mark.parametrize("seed", [*SEEDS, 107, 136])
def test_of_positions_no_stale_read_is_missed(tmp_path: Path, seed: int) -> None:
    """A position holds more than its own write, so that more may be found than what was stale."""
    books = Workload(tmp_path, seed, barriers=False, versions="position").run()
    history = read_history(tmp_path)
    assert not gaps(history)
    direct = [found for found in decide(history).found if found.pattern.startswith("WriteCO")]
    assert len(direct) >= books.stale


def test_without_barriers_most_runs_are_violated(tmp_path: Path) -> None:
    stale = [Workload(tmp_path / str(seed), seed, barriers=False, versions="object").run().stale for seed in SEEDS]
    violated = [decide(read_history(tmp_path / str(seed))).verdict is Verdict.VIOLATED for seed in SEEDS]
    assert sum(violated) > len(SEEDS) / 2
    assert all(violated[seed] for seed in SEEDS if stale[seed])
