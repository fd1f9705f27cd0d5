"""The scripts are one text in every language: what a mark means must not depend on who wrote it (EPOCH-16)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from antipode_redis import field, marks

FOLDER = Path(__file__).parents[2]
JAVA = "java/src/main/resources/dev/antipode/redis"


def lines(text: str) -> list[str]:
    """Without comments, indentation and empty lines."""
    bare = (line.partition("--")[0].strip() for line in text.splitlines())
    return [line for line in bare if line]


@pytest.mark.parametrize(
    ("place", "script"),
    [
        (f"{JAVA}/mark.lua", marks.MARK),
        (f"{JAVA}/write-field.lua", field.WRITE_SCRIPT),
        ("cpp/src/marks_script.h", marks.MARK),
    ],
)
def test_a_script_is_the_same_elsewhere(place: str, script: str) -> None:
    text = (FOLDER / place).read_text()
    raw = re.search(r'R"lua\((.*?)\)lua"', text, re.DOTALL)
    assert lines(raw[1] if raw else text) == lines(script)
