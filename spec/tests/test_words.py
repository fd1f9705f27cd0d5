"""A type is named by a noun: no participle, preposition or adverb alone, in any language (`spec/README.md`, words)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TYPE: Final = re.compile(
    r"^\s*(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed)\s+)*"
    r"(?:class|interface|record|struct|enum(?: class)?)\s+(?:ANTIPODE_\w+\s+)?_?([A-Z][a-z]+)\b(?!::)(?!;)",
    re.MULTILINE,
)
SOURCES: Final = (
    *((ROOT / "python/src", "*.py"), (ROOT / "cpp/src", "*.*"), (ROOT / "cpp/include", "*.*")),
    *((folder, "*.java") for folder in ROOT.glob("java/antipode-*/src/main")),
    *((folder, "*.*") for folder in ROOT.glob("shims/*/*/src") if folder.parent.name != "java"),
    *((folder, "*.*") for folder in ROOT.glob("shims/*/cpp/include")),
    *((folder, "*.java") for folder in ROOT.glob("shims/*/java/src/main")),
)
NO_NOUN: Final = re.compile(
    r"\w+(?:ed|ing)|All|At|Begun|Beside|Both|Came|Done|Found|For|Given|Gone|Got|Held|How|Inside|Kept|Known|Late|Left|Lost"
    r"|Made|Many|Met|Nowhere|Once|Other|Others|Own|Said|Seen|Sent|Shown|Taken|Told|Whereabouts|Whose|Within|Written"
)
NOUNS: Final = {
    "Binding": "what ties a wrapped client to its store",
    "Drawing": "a picture",
    "Ending": "how something ends",
    "Finding": "one line of a dry-run record, one answer of `antipode doctor`",
    "Forwarded": "the HTTP header of that name",
    "Isolated": "what users of the tests type in every language",
    "Ordered": "what users type in every language: a version with a counter",
    "Reading": "what users type in every language: the block that collects what is read",
    "Setting": "one setting",
    "Speed": "how fast something is",
    "Throttled": "what users catch in every language: a throttle refuses the request",
}
# fmt: off
LEFT: Final = {
    "All", "Approved", "Asking", "Beside", "Came", "Counting", "Driving", "Flushing", "Forced", "Found",
    "Held", "How", "Incoming", "Known", "Late", "Listening", "Outgoing", "Pending", "Recording", "Renamed",
    "Said", "Seen", "Sent", "Serving", "Shown", "Telling", "Told", "Tracing", "Waiting",
}
# fmt: on
"""Those that are still to be renamed: the list only shrinks."""


def names(text: str) -> Iterator[str]:
    """Yield each type of a source whose name is one word and no noun."""
    yield from (name for name in TYPE.findall(text) if NO_NOUN.fullmatch(name) and name not in NOUNS)


def test_types_are_nouns() -> None:
    found = {
        name
        for folder, pattern in SOURCES
        for path in folder.rglob(pattern)
        if path.suffix in {".py", ".java", ".h", ".cpp"}
        for name in names(path.read_text())
    }
    assert found == LEFT


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("class Taken:", ["Taken"]),
        ("    private static final class Waiting {", ["Waiting"]),
        ("struct _Held final {", ["Held"]),
        ("class Finding:", []),
        ("class TakenLineage:", []),
        ("class Taken;", []),
        ("class Waiter::Waiting {", []),
    ],
)
def test_one_that_is_none_is_found(line: str, found: list[str]) -> None:
    assert list(names(line + "\n")) == found
