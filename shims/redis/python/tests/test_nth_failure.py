"""The n-th call of a function of the system fails, on real servers: no false pass, no hang, whole behind it (BAR-61).

Our own connections call `connect` and `socket`, each of their answers `poll`; `thread` and `pipe` are called when a
server is first asked. `memory` fails in threads of ours, also before they begin (python/cpython#140746). The pids limit
is a `thread` that goes on failing; the one on descriptors is the kit's `no_descriptors`. We open no file and make no
eventfd or epoll.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from antipode_lab.call_faults import library
from antipode_lab.stores.redis import RedisStore

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")
_PROGRAM = Path(__file__).with_name("lacking_process.py")
_FEW = (1, 2, 3, 4, 5, 8, 12, 20, 35, 60, 120, 200)
_RARE = ("cold",)
_COMMON = ("cold", "warm")
_KINDS = {
    "socket": (("once", "burst", "on"), _COMMON),
    "connect": (("once", "burst", "on"), _COMMON),
    "pipe": (("once", "on"), _RARE),
    "thread": (("once", "on"), _RARE),
    "poll": (("once", "burst", "on"), _COMMON),
    "memory": (("once", "burst"), _COMMON),
}


def play(lab: RedisStore, function: str, rounds: Sequence[tuple[str, str, str, Sequence[int]]]) -> None:
    """Play rounds in a process of their own; in each row of them the call failed at least once."""
    wanted = json.dumps([[function, *row] for row in rounds])
    command = [sys.executable, str(_PROGRAM), lab.url("a"), lab.url("b1"), wanted]
    added = {"LD_PRELOAD": str(library()), "PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        command, env={**os.environ, **added}, capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    *rows, last = map(json.loads, done.stdout.splitlines())
    assert last == "whole"
    played: list[Any] = [row[1:4] for row in rows]
    assert played == [list(row[:3]) for row in rounds]
    assert all(failed for *_, failed in rows), rows


@pytest.mark.parametrize("function", _KINDS)
def test_a_few_calls(redis_lab: RedisStore, function: str) -> None:
    kinds, starts = _KINDS[function]
    forms = ("thread", "async")
    rows = [(kind, forms[at % 2], starts[at % len(starts)]) for at, kind in enumerate(kinds)]
    play(redis_lab, function, [(*row, _FEW[:5] if row[0] == "on" else _FEW) for row in rows])


@pytest.mark.stores
@pytest.mark.timeout(1600)
@pytest.mark.parametrize("function", _KINDS)
def test_every_call(redis_lab: RedisStore, function: str) -> None:
    kinds, starts = _KINDS[function]
    every, some = range(1, 201), [*range(1, 12), *range(20, 201, 20)]
    play(
        redis_lab,
        function,
        [
            (kind, form, start, list(some if kind == "on" else every))
            for kind in kinds
            for form in ("thread", "async")
            for start in starts
        ],
    )
