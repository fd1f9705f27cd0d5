#!/usr/bin/env python3
"""Which requirements each language's tests cite, and which none does: `make spec-coverage` (spec/README.md).

A test cites a requirement by its number in a comment, a text or a name (`WIRE-9`, `EPOCH-1 to EPOCH-4`, in names
`WIRE_9`). What a vector cites counts for a language whose tests name the vector's kind in quotes, because they run the
whole file. Citing is not testing: this finds what nobody thought of, not what is tested badly.

What a language leaves uncited on purpose is in `spec/uncited.json`, with the reason: it does
not apply there, or it is not there yet. An entry that is cited by now, or names nothing, is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
REQUIREMENT: Final = re.compile(r"- \*\*([A-Z]+)-([1-9][0-9]*)\*\* (.*)")
WITHDRAWN: Final = "(withdrawn)"


@dataclass(frozen=True)
class Language:
    """Where a language's tests lie, below the project's folder, and how their files end."""

    name: str
    tests: Sequence[str]
    suffixes: frozenset[str]

    def files(self, root: Path) -> Iterator[Path]:
        """Every file of tests, in order of name."""
        folders = {folder for pattern in self.tests for folder in root.glob(pattern)}
        found = {path for folder in folders for path in folder.rglob("*") if path.suffix in self.suffixes}
        yield from sorted(path for path in found if path.is_file())


LANGUAGES: Final = (
    Language(
        "python",
        # The conformance kit is part of the SDK, so that the users' own shims can run it.
        ("python/tests", "python/src/antipode/testing", "shims/*/python/tests"),
        frozenset({".py"}),
    ),
    Language(
        "java",
        ("java/**/src/test", "java/antipode-testing/src/main/java/dev/antipode/testing", "shims/*/java/**/src/test"),
        frozenset({".java", ".kt"}),
    ),
    Language(
        "cpp",
        ("cpp/**/tests", "cpp/include/antipode/testing", "cpp/src/testing", "shims/*/cpp/**/tests"),
        frozenset({".cpp", ".cc", ".h", ".hpp"}),
    ),
)


@dataclass(frozen=True)
class Requirement:
    """One numbered sentence of the contract."""

    name: str
    text: str
    file: str
    line: int

    @property
    def chapter(self) -> str:
        """The letters of its number."""
        return self.name.partition("-")[0]

    @property
    def withdrawn(self) -> bool:
        """Whether it only keeps its number from being used again."""
        return self.text.startswith(WITHDRAWN)


@dataclass
class Cited:
    """What one language's tests cite."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    """By requirement: `file:line`, in order."""
    vectors: dict[str, list[str]] = field(default_factory=dict)
    """By requirement: `kind/case`, of the kinds that the language's tests run."""
    kinds_missing: list[str] = field(default_factory=list)
    """Kinds of vectors that no test names, and that pin anything that is not excused."""
    unknown: dict[str, list[str]] = field(default_factory=dict)
    """Citations of numbers that do not exist or were withdrawn."""
    excused: dict[str, str] = field(default_factory=dict)
    """By requirement: why it is uncited on purpose."""

    def uncited(self, known: dict[str, Requirement]) -> list[Requirement]:
        """The requirements that are neither cited nor excused."""
        living = (each for each in known.values() if not each.withdrawn)
        return [each for each in living if each.name not in self and each.name not in self.excused]

    def stale(self, known: dict[str, Requirement]) -> list[str]:
        """The excuses for what is cited by now, or is no requirement."""
        return [name for name in self.excused if name in self or name not in known or known[name].withdrawn]

    def __contains__(self, name: str) -> bool:
        return name in self.tests or name in self.vectors


def requirements(root: Path) -> dict[str, Requirement]:
    """All of the contract's requirements, in the order of its files and lines."""
    found: dict[str, Requirement] = {}
    for path in sorted((root / "spec").glob("*.md")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = REQUIREMENT.match(line)
            if match is not None:
                name = f"{match[1]}-{match[2]}"
                found[name] = Requirement(name, match[3], path.name, number)
    return found


class Reader:
    """Finds citations in texts."""

    def __init__(self, known: dict[str, Requirement]) -> None:
        chapters = "|".join(sorted({each.chapter for each in known.values()}))
        # In a name of a test the hyphen is an underscore: test_a_gap_is_refused_WIRE_9.
        self._one = re.compile(rf"(?<![A-Za-z0-9])({chapters})[-_]([1-9][0-9]*)(?![0-9])")
        self._range = re.compile(rf"\b({chapters})-([1-9][0-9]*)\s+to\s+\1-([1-9][0-9]*)\b")

    def names(self, text: str) -> set[str]:
        """The requirements that a text cites; `LIN-1 to LIN-4` are four."""
        names = {f"{chapter}-{number}" for chapter, number in self._one.findall(text)}
        for chapter, first, last in self._range.findall(text):
            names |= {f"{chapter}-{number}" for number in range(int(first), int(last) + 1)}
        return names


def vectors(root: Path) -> dict[str, dict[str, list[str]]]:
    """By kind: the requirements that its cases cite, each with its `kind/case`."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted((root / "spec" / "vectors").glob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        cited = found.setdefault(content["kind"], {})
        for case in content["cases"]:
            for name in case["req"]:
                cited.setdefault(name, []).append(f"{content['kind']}/{case['id']}")
    return found


def excuses(root: Path) -> dict[str, dict[str, str]]:
    """By language and requirement: why it is uncited on purpose."""
    path = root / "spec" / "uncited.json"
    found: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def cited_by(language: Language, root: Path, known: dict[str, Requirement]) -> Cited | None:
    """What a language's tests cite; None where it has none yet."""
    reader, cited, ran = Reader(known), Cited(), set()
    kinds = vectors(root)
    quoted = {kind: re.compile(rf"""["']{re.escape(kind)}(\.json)?["']""") for kind in kinds}
    files = list(language.files(root))
    for path in files:
        text = path.read_text("utf-8")
        ran |= {kind for kind, pattern in quoted.items() if pattern.search(text)}
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{path.relative_to(root).as_posix()}:{number}"
            for name in reader.names(line):
                there = name in known and not known[name].withdrawn
                (cited.tests if there else cited.unknown).setdefault(name, []).append(place)
    for kind in sorted(ran):
        for name, cases in kinds[kind].items():
            cited.vectors.setdefault(name, []).extend(cases)
    cited.excused = excuses(root).get(language.name, {})
    cited.kinds_missing = sorted(kind for kind in set(kinds) - ran if not kinds[kind].keys() <= cited.excused.keys())
    return cited if files else None


def as_json(known: dict[str, Requirement], by_language: dict[str, Cited]) -> dict[str, Any]:
    """Everything that was found, for programs."""
    living = [each for each in known.values() if not each.withdrawn]
    return {
        "languages": {
            language: {
                "requirements": len(living),
                "cited": sum(each.name in cited for each in living),
                "uncited": [each.name for each in cited.uncited(known)],
                "excused": cited.excused,
                "stale": cited.stale(known),
                "vectors_not_run": cited.kinds_missing,
                "unknown": cited.unknown,
            }
            for language, cited in by_language.items()
        },
        "uncited_anywhere": [each.name for each in living if not any(each.name in one for one in by_language.values())],
        "requirements": [
            {
                "name": each.name,
                "file": f"spec/{each.file}",
                "line": each.line,
                "text": each.text,
                "withdrawn": each.withdrawn,
                "cited": {
                    language: {"tests": cited.tests.get(each.name, []), "vectors": cited.vectors.get(each.name, [])}
                    for language, cited in by_language.items()
                    if each.name in cited
                },
            }
            for each in known.values()
        ],
    }


def show(known: dict[str, Requirement], by_language: dict[str, Cited]) -> None:
    """The table, and what is uncited, for people."""
    living = [each for each in known.values() if not each.withdrawn]
    for language, cited in by_language.items():
        rows: list[tuple[str, ...]] = [("chapter", "requirements", "cited by tests", "by vectors only", "uncited")]
        chapters = list(dict.fromkeys(each.chapter for each in living))
        for name, members in [(c, [each for each in living if each.chapter == c]) for c in chapters] + [
            ("all", living)
        ]:
            tests = sum(each.name in cited.tests for each in members)
            either = sum(each.name in cited for each in members)
            rows.append((name, *map(str, (len(members), tests, either - tests, len(members) - either))))
        print(f"{language}\n")
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            print(f"  {'  '.join(cells)}")
        for kind in cited.kinds_missing:
            print(f"\n  no test names the vectors {kind}")
        for name, places in sorted(cited.unknown.items()):
            print(f"\n  {places[0]} cites {name}, which is not there")
        for name, why in cited.excused.items():
            print(f"\n  {name} is uncited on purpose: {why}")
        for name in cited.stale(known):
            print(f"\n  spec/uncited.json excuses {name}, which is cited or not there: take it out")
        uncited = cited.uncited(known)
        if uncited:
            print("\n  uncited:")
        for each in uncited:
            words = each.text.replace("**", "")
            print(f"    {each.name:9} {words if len(words) <= 100 else words[:99] + '…'}")
        print()
    missing = [language.name for language in LANGUAGES if language.name not in by_language]
    if missing:
        print(f"no tests yet: {', '.join(missing)}")


def main(words: Sequence[str] | None = None) -> int:
    """0: told; 1: something is uncited or unknown, with --fail-uncited; 2: asked for what is not there."""
    parser = argparse.ArgumentParser(prog="spec/citations.py", description=(__doc__ or "").splitlines()[0])
    names = [language.name for language in LANGUAGES]
    parser.add_argument("--language", choices=names, action="append", help="only this one (repeat for several)")
    parser.add_argument("--json", action="store_true", help="print JSON, with the place of every citation")
    parser.add_argument(
        "--fail-uncited",
        action="store_true",
        help="exit code 1 where a language's tests leave a requirement uncited that spec/uncited.json does not excuse, "
        "a kind of vectors unread, or cite a number that is not there; or where an excuse is stale",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    known = requirements(given.root)
    by_language: dict[str, Cited] = {}
    for language in LANGUAGES:
        if given.language is None or language.name in given.language:
            cited = cited_by(language, given.root, known)
            if cited is not None:
                by_language[language.name] = cited
            elif given.language is not None:
                print(f"there are no tests of {language.name} in {', '.join(language.tests)}", file=sys.stderr)
                return 2
    if given.json:
        print(json.dumps(as_json(known, by_language), indent=2))
    else:
        show(known, by_language)
    short = any(
        cited.unknown or cited.kinds_missing or cited.uncited(known) or cited.stale(known)
        for cited in by_language.values()
    )
    return 1 if given.fail_uncited and short else 0


if __name__ == "__main__":
    sys.exit(main())
