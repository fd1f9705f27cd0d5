"""Measures one run of the command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

_LIMIT_S: Final = 600.0
_TESTS: Final = Path(__file__).parents[4] / "python/tests"


@dataclass(frozen=True)
class Measured:
    """A form of the command, the sizes of its input, and what the greatest may take."""

    sizes: Sequence[int]
    generator: Sequence[str]
    """A script of the tests, and its words before the size."""
    command: Sequence[str]
    """Its words, before the file."""
    wall: float
    """Seconds."""
    mib: float


KINDS: Final = {
    "records": Measured(
        (1_000, 10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000),
        ("check_records/generating.py", "--records"),
        ("check", "--json"),
        20.0,
        2048.0,
    ),
    "history": Measured(
        (1_000, 5_000, 10_000, 25_000, 50_000, 100_000),
        ("check_history/generating.py", "--plant", "WriteCORead", "--operations"),
        ("check", "--json", "--history"),
        30.0,
        2048.0,
    ),
}


class Point(NamedTuple):
    """What one run took."""

    kind: str
    size: int
    """Records, or operations."""
    octets: int
    wall: float
    """Seconds from start to end, the interpreter's own start in it."""
    cpu: float
    """Seconds of all processors."""
    mib: float
    """The greatest resident size."""
    code: int
    """The exit code."""


def environment(folder: Path) -> dict[str, str]:
    """Where the command keeps its bytecode as an installed one does, whatever the caller's has it do, and in no other
    place: compiling hundreds of modules at each start is nothing that its users pay."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def measure(kind: str, size: int, folder: Path) -> Point:
    """Generates an input and checks it; where `folder` has no bytecode yet, a run before that is not measured makes it.

    Raises:
        subprocess.CalledProcessError: the generator failed.
        RuntimeError: the command did not answer as one that finds what is planted.
    """
    measured = KINDS[kind]
    compiled = folder / f"{kind}.compiled"
    if not compiled.exists():
        compiled.touch()
        measure(kind, min(size, 1000), folder)
    path = folder / f"{kind}.jsonl"
    with path.open("wb") as stream:
        script, *given = measured.generator
        generating = [sys.executable, str(_TESTS / script), *given, str(size)]
        subprocess.run(generating, stdout=stream, check=True, timeout=_LIMIT_S)
    program = "from antipode.cli import main; main()"
    words = [sys.executable, "-c", program, *measured.command, str(path)]
    with (folder / "answer").open("wb") as answer:
        began = time.monotonic()
        running = subprocess.Popen(words, stdout=answer, env=environment(folder))
        _, status, used = os.wait4(running.pid, 0)
        wall = time.monotonic() - began
    running.returncode = code = os.waitstatus_to_exitcode(status)
    if code != 1:
        raise RuntimeError(f"antipode check of {size} {kind} ended with {code}, not 1")
    made = Point(
        kind,
        size,
        path.stat().st_size,
        round(wall, 3),
        round(used.ru_utime + used.ru_stime, 3),
        round(used.ru_maxrss / 1024, 1),
        code,
    )
    path.unlink()
    return made
