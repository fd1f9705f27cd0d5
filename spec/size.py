#!/usr/bin/env python3
"""Print how many lines of source each room, shim and language has; a shim has a limit.

A cell is one store in one language. One above the limit stands in `spec/cells.json` with its lines and the reason; it
may shrink, and then its entry shrinks with it. Lines of tests, and of what is generated, do not count.

usage: size.py [--check]    (the standard library is enough)
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIMIT: Final = 1200
"""The lines that a cell may have without a reason."""
SUFFIXES: Final = {"python": {".py"}, "java": {".java"}, "cpp": {".h", ".cpp"}}
FOLDERS: Final = {"python": ("src",), "java": ("src/main/java",), "cpp": ("include", "src")}


def sources(folder: Path, language: str) -> Iterator[tuple[Path, int]]:
    """Yield the source files below a folder of one language, and their lines."""
    for part in FOLDERS[language]:
        for path in sorted((folder / part).rglob("*")):
            if path.suffix in SUFFIXES[language] and path.is_file():
                yield path, path.read_text().count("\n")


def room_of(name: str, rooms: Mapping[str, list[str]]) -> str:
    """Return the room that names a file, or its folder; the longest name decides."""
    found = [
        (len(each), room)
        for room, names in rooms.items()
        for each in names
        if name == each or (each.endswith("/") and name.startswith(each))
    ]
    return max(found)[1] if found else "(none)"


def roots(own: Mapping[str, Any]) -> list[Path]:
    """Return the folders of a language's core: Java has one a module."""
    return [ROOT / each for each in (own["root"], *own.get("more", ()))]


def rooms(language: str, document: Mapping[str, Any]) -> Counter[str]:
    """Return the lines of each room of a language's core; what a package says of itself is in none."""
    own = document["languages"][language]
    lines: Counter[str] = Counter()
    for root in roots(own):
        for path in sorted(root.rglob("*")):
            in_source = language != "cpp" or path.relative_to(root).parts[0] in FOLDERS[language]
            if in_source and path.suffix in SUFFIXES[language] and path.stem != "package-info":
                name = str(path.relative_to(root).with_suffix(""))
                lines[room_of(name, own["rooms"])] += path.read_text().count("\n")
    return lines


def wheels() -> dict[str, int]:
    """Return the lines of each wheel that is built from the tree of Python's core."""
    lines = {}
    for path in sorted(ROOT.glob("python/*/pyproject.toml")):
        document = tomllib.loads(path.read_text())
        parts = [path.parent / part for part in document["tool"]["hatch"]["build"]["only-include"]]
        files = [file for part in parts for file in ([part] if part.is_file() else part.rglob("*.py"))]
        lines[document["project"]["name"]] = sum(file.read_text().count("\n") for file in files)
    whole = sum(number for _, number in sources(ROOT / "python", "python"))
    return {"antipode-sdk": whole - sum(lines.values()), **lines}


def cells() -> dict[str, int]:
    """Return the lines of each shim, by `store/language`."""
    return {
        f"{folder.parent.name}/{folder.name}": sum(lines for _, lines in sources(folder, folder.name))
        for folder in sorted(ROOT.glob("shims/*/*"))
        if folder.name in SUFFIXES and folder.is_dir()
    }


def faults(found: Mapping[str, int], allowed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the cells that are larger than they may be, and the entries that say too much."""
    for cell, lines in found.items():
        most = allowed.get(cell, {"lines": LIMIT})["lines"]
        if lines > most:
            yield f"{cell}: {lines} lines; it may have {most}. Take some out, or say why in spec/cells.json"
    for cell, entry in allowed.items():
        lines = found.get(cell, 0)
        if lines <= LIMIT or lines < entry["lines"] - LIMIT // 12:
            yield f"{cell}: its entry in spec/cells.json allows {entry['lines']} lines; it has {lines}"


def main(arguments: list[str]) -> int:
    """Return 0 where each shim keeps its limit."""
    found = cells()
    if "--check" not in arguments:
        document = json.loads((ROOT / "spec/layers.json").read_text())
        for language in SUFFIXES:
            lines = rooms(language, document)
            print(f"{language}: {sum(lines.values())} lines in the core")
            for room in [*(each["name"] for each in document["rooms"]), "(none)"]:
                if lines[room]:
                    print(f"    {room:14}{lines[room]:7}")
        print("wheels of Python's core")
        for wheel, number in wheels().items():
            print(f"    {wheel:22}{number:7}")
        print(f"shims: {sum(found.values())} lines in {len(found)} cells")
        for cell, number in sorted(found.items(), key=lambda each: -each[1]):
            print(f"    {cell:22}{number:7}")
    wrong = list(faults(found, json.loads((ROOT / "spec/cells.json").read_text())["cells"]))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
