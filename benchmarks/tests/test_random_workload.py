"""Random workloads over workers of every language, recorded and judged: benchmarks/workload.md (HIST-23 to HIST-33)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from antipode_benchmarks.postnotification.hosts import command
from antipode_benchmarks.postnotification.options import Language
from antipode_benchmarks.workload.driver import Run
from antipode_benchmarks.workload.judging import Judged
from antipode_benchmarks.workload.stage import Stage, stage

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

LANGUAGES = cast("list[Language]", os.environ.get("INTEROP_LANGUAGES", "python java cpp").split())
SEEDS = range(4)
LOSING = range(2)


class Played:
    """Each run once, when it is first asked for."""

    def __init__(self, servers: Stage, folder: Path) -> None:
        self._servers = servers
        self._folder = folder
        self._runs: dict[tuple[int, bool, bool], Judged] = {}

    def of(self, seed: int, *, barriers: bool, losses: bool = False) -> Judged:
        """A run, and the answer about its history."""
        named = seed, barriers, losses
        if named not in self._runs:
            folder = self._folder / "-".join(str(word) for word in named)
            run = Run(self._servers, seed, LANGUAGES, folder, barriers=barriers, losses=losses)
            self._runs[named] = asyncio.run(run.play())
        return self._runs[named]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """All runs, on the same servers."""
    for language in LANGUAGES:
        command(language)  # built, or an error that says how
    with stage() as servers:
        yield Played(servers, tmp_path_factory.mktemp("histories"))


@pytest.mark.parametrize("seed", SEEDS)
def test_with_barriers_the_history_is_consistent(played: Played, seed: int) -> None:
    """HIST-13: whatever failed meanwhile, and nothing of it is unknown."""
    run = played.of(seed, barriers=True)
    assert list(run.disagreements()) == []
    assert run.found.books.reads > 20


@pytest.mark.parametrize("seed", SEEDS)
def test_without_them_what_was_stale_is_found_and_what_is_found_was_overtaken(played: Played, seed: int) -> None:
    run = played.of(seed, barriers=False)
    assert list(run.disagreements()) == []
    assert run.found.books.reads > 20


def test_without_barriers_some_runs_are_violated(played: Played) -> None:
    assert any(played.of(seed, barriers=False).found.stale for seed in SEEDS)


@pytest.mark.parametrize("seed", LOSING)
def test_no_barrier_passes_over_a_lost_write(played: Played, seed: int) -> None:
    """EPOCH-11, EPOCH-12: nor is a read stale behind one that passes; what is read behind the others is judged."""
    run = played.of(seed, barriers=True, losses=True)
    assert list(run.disagreements()) == []
    assert len(run.found.lost) > 5
    assert run.found.barriers[True, False] > 10
    assert run.found.barriers[False, True] > 5


@pytest.mark.parametrize("seed", LOSING)
def test_without_them_reads_of_what_was_lost_are_found(played: Played, seed: int) -> None:
    """HIST-13, HIST-14."""
    run = played.of(seed, barriers=False, losses=True)
    assert list(run.disagreements()) == []
    assert run.found.lost
    assert run.found.stale
