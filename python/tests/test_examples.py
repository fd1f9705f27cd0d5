"""The examples print what their first lines say that they print."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def documented(example: Path) -> str:
    """The lines that an example's docstring shows behind `prints`."""
    text = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    shown = text.split("\nprints\n", 1)[1].strip("\n").split("\n\n", 1)[0]
    return textwrap.dedent(shown) + "\n"


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"basic.py", "post_notification.py"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_it_says(example: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPODE_")}
    ran = subprocess.run(
        [sys.executable, str(example)], env=environment, text=True, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == documented(example)
