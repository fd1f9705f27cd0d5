"""The limit of a shim's lines: what breaks it, and an entry that says too much (spec/size.py)."""

from __future__ import annotations

import json

import pytest
from spec_scripts import script

size = script("size")


def test_this_project_s_shims_keep_it() -> None:
    allowed = json.loads((size.ROOT / "spec/cells.json").read_text())["cells"]
    assert not list(size.faults(size.cells(), allowed))
    assert all(entry["why"] for entry in allowed.values())


@pytest.mark.parametrize(
    ("lines", "entry", "fault"),
    [
        (1200, None, ""),
        (1201, None, "it may have 1200"),
        (2000, 2000, ""),
        (2001, 2000, "it may have 2000"),
        (1800, 2000, "allows 2000"),
        (1100, 1300, "allows 1300"),
    ],
)
def test_the_limit(lines: int, entry: int | None, fault: str) -> None:
    allowed = {} if entry is None else {"kv/python": {"lines": entry, "why": "it is old"}}
    found = list(size.faults({"kv/python": lines}, allowed))
    assert [fault in each for each in found] == ([True] if fault else [])


def test_each_file_of_the_core_is_in_a_room() -> None:
    document = json.loads((size.ROOT / "spec/layers.json").read_text())
    for language in size.SUFFIXES:
        lines = size.rooms(language, document)
        assert "(none)" not in lines
        assert set(lines) == {room["name"] for room in document["rooms"]}


def test_the_wheels_of_python_s_core_share_out_its_lines() -> None:
    document = json.loads((size.ROOT / "spec/layers.json").read_text())
    found = size.wheels()
    assert set(found) == {"antipode-sdk", "antipode-check", "antipode-testing"}
    assert sum(found.values()) == sum(size.rooms("python", document).values())
    assert found["antipode-testing"] == size.rooms("python", document)["testing"]
