"""Post-notification recorded: its history has the violations that the run counted, none with the barrier (HIST-23)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)
REQUESTS = 40


STORES = {
    "memory": (),
    "redis": ("--post-storage", "redis", "--notifier", "http"),
    "dynamodb": ("--post-storage", "dynamodb", "--notifier", "http"),
    "mongodb": ("--post-storage", "mongodb", "--notifier", "http"),
    "redis and rabbitmq": ("--post-storage", "redis", "--notifier", "rabbitmq", "--one-broker"),
}
MARKS = {
    "redis": [pytest.mark.stores],
    "redis and rabbitmq": [pytest.mark.stores],  # `make interop` has it, in which languages do it together
    "dynamodb": [pytest.mark.servers("dynamodb")],
    "mongodb": [pytest.mark.servers("mongodb")],
}
"""What a lean run of the tests leaves out."""
LANGUAGES = {"C++": "cpp", "Java": "java"}
"""Of these the services are that are not in Python. `interop` has their hosts built."""
RUNS = [
    *(pytest.param(options, id=name, marks=MARKS.get(name, [])) for name, options in STORES.items()),
    *(
        pytest.param(
            (*STORES[store], *(word for part in parts for word in (f"--{part}", language))),
            id=f"{store}, {name} {does}",
            marks=[pytest.mark.interop, pytest.mark.timeout(600)],
        )
        for name, language in LANGUAGES.items()
        for store, does, parts in (
            ("redis", "reads", ("reader",)),
            ("redis and rabbitmq", "does all", ("writer", "relay", "reader")),
        )
    ),
]


def run(folder: Path, *options: str) -> tuple[int, list[Path]]:
    """Runs and records the services: the violations that the run counted, and the files of the phase with Antipode."""
    command = [sys.executable, "-m", "antipode_benchmarks.postnotification", "--json", str(folder / "result.json")]
    command += ["--requests", str(REQUESTS), "--warmup", "5", "--rate", "8", *options]
    environment = os.environ | {"ANTIPODE_HISTORY": str(folder / "history")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode in (0, 1, 3), f"{done.stdout}{done.stderr}"  # 3: of the baseline, which is not recorded
    phase = json.loads((folder / "result.json").read_text())["antipode"]
    files = [path for path in sorted((folder / "history").glob("*.jsonl")) if not _off(path)]
    return phase["violations"] + phase["warmup"]["violations"], files


def _off(path: Path) -> bool:
    """Whether it is the baseline's, in which the embedded store is a plain one."""
    return any("its mode is off" in line.get("reason", "") for line in map(json.loads, path.read_text().splitlines()))


def check(files: list[Path]) -> tuple[int, dict[str, Any]]:
    """What the command says of these files as one history."""
    named = [word for path in files for word in ("--history", str(path))]
    done = subprocess.run(
        [sys.executable, "-c", "from antipode.cli.app import app; app()", "check", "--json", *named],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def unattributed(told: dict[str, Any], stores: tuple[str, ...]) -> int:
    """How many reads nobody can attribute: none of Python's alone; other languages' Redis has no digests (HIST-37)."""
    reads: list[str] = told["unattributed"]
    assert [gap["operation"] for gap in told["gaps"]] == reads
    assert not reads or any(language in stores for language in LANGUAGES.values())
    return len(reads)


@pytest.mark.parametrize("stores", RUNS)
def test_without_a_barrier_the_history_has_each_violation_of_the_run(tmp_path: Path, stores: tuple[str, ...]) -> None:
    """HIST-29, HIST-30: follower-notify's reads of posts that were written before, through five services."""
    counted, files = run(tmp_path, "--barrier", "nowhere", "--lag", "900ms,1000ms", *stores)
    code, told = check(files)
    assert counted > REQUESTS / 2
    found = unattributed(told, stores)
    assert (code, told["reads"] + found, len(told["violations"])) == (1, REQUESTS + 5, counted)
    assert {found["pattern"] for found in told["violations"]} == {"WriteCOInitRead"}


@pytest.mark.parametrize("stores", RUNS)
def test_with_the_barrier_it_is_consistent(tmp_path: Path, stores: tuple[str, ...]) -> None:
    counted, files = run(tmp_path, "--barrier", "follower", *stores)
    code, told = check(files)
    assert counted == 0
    found = unattributed(told, stores)
    assert (code, told["reads"] + found, told["violations"]) == (2 if found else 0, REQUESTS + 5, [])
