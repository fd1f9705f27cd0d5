"""The check of the rooms finds what breaks them (`spec/layers.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spec_scripts import script

layers = script("layers")

DOCUMENT: dict[str, Any] = {
    "rooms": [{"name": "model", "holds": ""}, {"name": "base", "holds": ""}],
    "languages": {
        "python": {
            "rooms": {"model": ["wire", "kit/"], "base": ["logs", "kit/late"]},
            "upward": ["wire -> logs"],
            "rings": [["kit/a", "kit/b"]],
        }
    },
}
EDGES = {"wire": {"logs"}, "logs": {"kit/a"}, "kit/a": {"kit/b"}, "kit/b": {"kit/a"}, "kit/late": {"wire"}}


def faults(edges: dict[str, set[str]], document: dict[str, Any] = DOCUMENT) -> list[str]:
    return sorted(layers.Layers.read("python", document).faults(edges))


def test_what_is_listed_is_no_fault() -> None:
    assert faults(EDGES) == []


def test_an_import_of_a_higher_room_is_a_fault() -> None:
    assert faults({**EDGES, "kit/b": {"kit/a", "kit/late"}}) == ["kit/b -> kit/late: runs upward"]


def test_a_list_only_shrinks() -> None:
    edges = {**EDGES, "wire": {"kit/a"}, "kit/b": set()}
    assert faults(edges) == [
        "a ring is listed and not there any more: kit/a kit/b",
        "wire -> logs: is listed and does not run upward any more",
    ]


def test_a_ring_that_is_not_listed_is_a_fault() -> None:
    assert faults({**EDGES, "kit/a": {"kit/b", "wire"}, "wire": {"logs", "kit/b"}}) == [
        "a ring is listed and not there any more: kit/a kit/b",
        "a ring: kit/a kit/b wire",
    ]


def test_each_file_has_a_room_and_each_name_a_file() -> None:
    edges = {**EDGES, "stray": {"wire"}}
    del edges["kit/late"]
    assert faults(edges) == ["kit/late: there is no such file", "stray: no room names it"]


def test_a_name_stands_in_one_room() -> None:
    twice = json.loads(json.dumps(DOCUMENT))
    twice["languages"]["python"]["rooms"]["base"].append("wire")
    with pytest.raises(ValueError, match="wire stands twice"):
        layers.Layers.read("python", twice)


def test_lazy_imports_and_those_for_types_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "housed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "low.py").write_text("def late():\n    from housed import high\n")
    (package / "high.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from housed.low import late\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert layers.python_edges("housed") == {"__init__": set(), "low": {"high"}, "high": {"low"}}


def test_a_shim_imports_no_inner_module(tmp_path: Path) -> None:
    (tmp_path / "shim.py").write_text(
        "import antipode.shim, antipode._engine.plan\n"
        "from antipode import Lineage, __version__\n"
        "def late():\n    from antipode._store import read\n    from antipode.memory._log import Log\n"
    )
    assert list(layers.private_imports([tmp_path / "shim.py"])) == [
        "shim.py:1: imports antipode._engine.plan",
        "shim.py:4: imports antipode._store.read",
        "shim.py:5: imports antipode.memory._log.Log",
    ]


def test_a_header_and_its_source_are_one_file(tmp_path: Path) -> None:
    for name, text in (
        ("include/antipode/a.h", ""),
        ("src/a.cpp", '#include "antipode/a.h"\n#include <b.h>\n  #  include "b.h"\n'),
        ("src/b.h", '#include "deep/c.h"\n'),
        ("src/deep/c.h", ""),
        ("src/deep/d.cpp", '#include "c.h"\n#include "gone.h"\n'),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert layers.cpp_edges(tmp_path) == {
        "include/antipode/a": set(),
        "src/a": {"include/antipode/a", "src/b"},
        "src/b": {"src/deep/c"},
        "src/deep/c": set(),
        "src/deep/d": {"src/deep/c"},
    }
