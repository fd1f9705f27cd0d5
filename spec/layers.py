#!/usr/bin/env python3
"""Check that no file imports one of a higher room, and that Python's modules form no ring (`spec/layers.json`).

The rooms are the same in every language, lowest first. A file belongs to the room that names it, or its folder; the
longest name decides. Python's imports count where they stand in a function or under `TYPE_CHECKING`, too. Java's are
checked by `LayersTest`, on the compiled classes, against the same file.

A shim imports only the public modules of Python's core.

The edges that run upward today, and the rings, are listed. The lists only shrink: an edge that is not listed is a
fault, and so is a listed one that is not there any more.

usage: layers.py    (in the project's Python environment)
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[1]
INNER: Final = re.compile(r"antipode(\.\w+)*\._(?!_)")
INCLUDE: Final = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)

Edges = dict[str, set[str]]
"""The files that each file imports, by their names without suffix below the language's root."""


@dataclass(frozen=True)
class Layers:
    """The rooms of one language, and what is still wrong with them."""

    rooms: Mapping[str, int]
    """The height of the room of each named file or folder; a folder's name ends with a slash."""
    upward: frozenset[str]
    rings: frozenset[frozenset[str]]

    @classmethod
    def read(cls, language: str, document: Mapping[str, Any]) -> Layers:
        """Return the layers of a language.

        Raises:
            ValueError: a room is not one of the document's, or a name stands in two rooms.
        """
        heights = {room["name"]: height for height, room in enumerate(document["rooms"])}
        own = document["languages"][language]
        if unknown := own["rooms"].keys() ^ heights.keys():
            raise ValueError(f"{language}: rooms that only one of the two lists has: {', '.join(sorted(unknown))}")
        rooms: dict[str, int] = {}
        for room, names in own["rooms"].items():
            for name in names:
                if rooms.setdefault(name, heights[room]) != heights[room] or names.count(name) > 1:
                    raise ValueError(f"{language}: {name} stands twice")
        return cls(rooms, frozenset(own["upward"]), frozenset(frozenset(ring) for ring in own.get("rings", ())))

    def height(self, name: str) -> int | None:
        """Return the height of the room that a file belongs to, or None where no room names it."""
        folders = [name[: place + 1] for place, sign in enumerate(name) if sign == "/"]
        return next((self.rooms[each] for each in (name, *reversed(folders)) if each in self.rooms), None)

    def faults(self, edges: Edges) -> Iterator[str]:
        """Yield what is wrong: files without a room, edges and rings that are not listed, and lists that are stale."""
        files = set(edges).union(*edges.values())
        homeless = {name for name in files if self.height(name) is None}
        yield from (f"{name}: no room names it" for name in sorted(homeless))
        for name in sorted(self.rooms):
            if not any(file == name or (name.endswith("/") and file.startswith(name)) for file in files):
                yield f"{name}: there is no such file"
        upward = {
            f"{lower} -> {upper}"
            for lower, uppers in edges.items()
            for upper in uppers
            if (self.height(lower) or 0) < (self.height(upper) or 0) and not homeless & {lower, upper}
        }
        yield from (f"{edge}: runs upward" for edge in sorted(upward - self.upward))
        yield from (f"{edge}: is listed and does not run upward any more" for edge in sorted(self.upward - upward))
        found = set(rings(edges, upward))
        yield from (f"a ring: {' '.join(sorted(ring))}" for ring in found - self.rings)
        yield from (f"a ring is listed and not there any more: {' '.join(sorted(ring))}" for ring in self.rings - found)


def rings(edges: Edges, upward: Iterable[str]) -> Iterator[frozenset[str]]:
    """Yield each largest set of files that import one another in a ring, upward edges left out."""
    down = {file: {each for each in edges[file] if f"{file} -> {each}" not in upward} for file in edges}
    reach = {file: reachable(file, down) for file in down}
    yielded: set[str] = set()
    for file in sorted(reach):
        if file in reach[file] and file not in yielded:
            ring = frozenset(each for each in reach[file] if file in reach.get(each, ()))
            yielded |= ring
            yield ring


def reachable(file: str, edges: Edges) -> set[str]:
    """Return all files that a file imports, and what these import."""
    found: set[str] = set()
    rest = list(edges[file])
    while rest:
        if (each := rest.pop()) not in found:
            found.add(each)
            rest += edges.get(each, ())
    return found


def python_edges(package: str = "antipode") -> Edges:
    """Return the imports of a package's modules, by their paths below it; `__init__` is the package itself."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)

    def path(module: str) -> str:
        inner = module.split(".")[1:]
        return "/".join([*inner, "__init__"] if graph.find_children(module) else inner)

    return {
        path(module): {path(each) for each in graph.find_modules_directly_imported_by(module)}
        for module in graph.modules
    }


def private_imports(sources: Iterable[Path]) -> Iterator[str]:
    """Yield each import of an inner module of the Python core by a shim: it may import only what has no underscore."""
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            else:
                continue
            yield from (f"{path.name}:{node.lineno}: imports {name}" for name in names if INNER.match(name))


def cpp_edges(root: Path) -> Edges:
    """Return the includes of the C++ core; a header and its source are one file."""
    sources = [
        path for folder in ("include", "src") for path in (root / folder).rglob("*") if path.suffix in {".h", ".cpp"}
    ]
    stems = {str(path.relative_to(root).with_suffix("")): None for path in sources}

    def stem(name: str, includer: Path) -> str | None:
        bare = name.rsplit(".", 1)[0]
        beside = (includer.parent / bare).relative_to(root)
        return next((each for each in (f"include/{bare}", f"src/{bare}", str(beside)) if each in stems), None)

    edges: Edges = {each: set() for each in stems}
    for path in sources:
        own = str(path.relative_to(root).with_suffix(""))
        edges[own] |= {
            other for name in INCLUDE.findall(path.read_text()) if (other := stem(name, path)) and other != own
        }
    return edges


def main() -> int:
    """Return 0 where the rooms of Python and C++ hold."""
    document = json.loads((ROOT / "spec/layers.json").read_text())
    faults = 0
    for language, edges in (
        ("python", python_edges()),
        ("cpp", cpp_edges(ROOT / document["languages"]["cpp"]["root"])),
    ):
        layers = Layers.read(language, document)
        for fault in layers.faults(edges):
            faults += 1
            print(f"{language}: {fault}")
        number = sum(map(len, edges.values()))
        print(f"{language}: {len(layers.upward)} of {number} imports run upward, {len(layers.rings)} rings")
    for fault in private_imports(sorted(ROOT.glob("shims/*/python/src/**/*.py"))):
        faults += 1
        print(f"shims: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
