"""Fuzzing: a few turns of each target in every run, and ten minutes of them in `make fuzz` (SECONDS says how long)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.targets import TARGETS, TOKENS
from hypothesis import given, settings
from hypothesis import strategies as st

SECONDS = int(os.environ.get("SECONDS") or 600)
"""For all targets together."""
INPUTS = st.one_of(
    st.binary(max_size=200),
    st.lists(st.integers(0, len(TOKENS) - 1), max_size=60).map(lambda octets: bytes([len(octets), *octets, 0])),
)


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_turns(name: str) -> None:
    @settings(deadline=None, max_examples=150)
    @given(INPUTS)
    def turn(data: bytes) -> None:
        TARGETS[name](data)

    turn()


def seeds() -> list[str]:
    """Texts of the vectors, right and wrong ones, to begin with."""
    vectors = Path(__file__).parents[3] / "spec" / "vectors"
    kinds = [json.loads((vectors / f"wire-{kind}.json").read_text("utf-8")) for kind in ("decode", "refuse")]
    return [case["text"] for kind in kinds for case in kind["cases"]]


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    seconds = max(SECONDS // len(TARGETS), 1)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, text in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(b"\x01" + text.encode()[:400])
    command = [sys.executable, str(Path(__file__).parent / "run.py"), name]
    done = subprocess.run(
        [*command, "--seconds", str(seconds), "--corpus", str(corpus)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=seconds + 100,
        check=False,
    )
    tried = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    assert tried is not None, done.stderr[-2000:]
    print(f"\n{name}: {int(tried[1]):,} inputs in {seconds} s, nothing found")
    assert int(tried[1]) > 50 * seconds
