"""The simulation puts its own clock, threads and chance into the engine: modules must name them as it finds them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import antipode
import pytest

_SEAMS: Final = {"time", "threading", "random", "select"}
_PACKAGE: Final = Path(antipode.__file__).parent
_MODULES: Final = sorted(
    path
    for path in _PACKAGE.rglob("*.py")
    if path.relative_to(_PACKAGE).parts[0] not in {"check", "cli", "grpc", "memory", "testing"}
)


def _taken(source: str) -> list[str]:
    """Return what a module takes out of those that the simulation replaces, where it would not be replaced."""
    return [
        f"line {node.lineno}: from {node.module} import {', '.join(name.name for name in node.names)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module in _SEAMS
    ]


@pytest.mark.parametrize("module", _MODULES, ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_a_module_names_time_threads_and_chance_by_their_modules(module: Path) -> None:
    assert not _taken(module.read_text())


def test_one_that_takes_a_name_out_of_them_is_found() -> None:
    assert _taken("import time\nfrom random import uniform\n") == ["line 2: from random import uniform"]


def test_only_the_poller_sleeps_on_descriptors() -> None:
    assert [path.stem for path in _MODULES if "select" in _imported(path.read_text())] == ["poller"]


def _imported(source: str) -> set[str]:
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import))
    return {name.name for node in nodes for name in node.names}
