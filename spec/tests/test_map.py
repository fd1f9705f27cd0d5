"""The map is true: each type stands in its room, in every language (spec/map.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from spec_scripts import script

SPEC: Final = Path(__file__).resolve().parents[1]
size = script("size")

ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", re.MULTILINE)
TYPE: Final = {
    "python": r"^class {name}\b",
    "java": r"^\s*(?:@\w+\s+)*(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed)\s+)*"
    r"(?:class|interface|enum|record)\s+{name}\b",
    "cpp": r"^\s*(?:class|struct|enum class)\s+(?:[A-Z_]+\s+)?{name}\b\s*(?:final\s*)?(?:[:{{]|$)",
}
"""How a language defines a type; a mere declaration ends with a semicolon."""


def rooms_of(language: str, name: str) -> set[str]:
    """Return the rooms in which a language's core defines a type of this name."""
    document = json.loads((SPEC / "layers.json").read_text())
    own = document["languages"][language]
    pattern = re.compile(TYPE[language].format(name=name), re.MULTILINE)
    return {
        size.room_of(str(path.relative_to(root).with_suffix("")), own["rooms"])
        for root in size.roots(own)
        for path in root.rglob("*")
        if path.suffix in size.SUFFIXES[language] and pattern.search(path.read_text())
    }


ROWS: Final[list[tuple[str, str, str]]] = ROW.findall((SPEC / "map.md").read_text())


def test_it_has_fifty_concepts_at_least_each_once() -> None:
    names = [name for name, _, _ in ROWS]
    assert len(names) == len(set(names)) >= 50
    assert (SPEC / "map.md").read_text().count("\n| `") == len(ROWS)


@pytest.mark.parametrize("language", TYPE)
def test_each_type_is_in_its_room(language: str) -> None:
    wrong = {name: rooms for name, room, _ in ROWS if room not in (rooms := rooms_of(language, name))}
    assert not wrong


def test_a_type_of_another_room_is_found() -> None:
    assert rooms_of("python", "PendingWait") == {"engine"}
    assert not rooms_of("java", "NoSuchType")
