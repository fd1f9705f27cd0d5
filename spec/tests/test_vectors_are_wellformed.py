"""The contract holds together: numbered requirements, and vectors that fit their schemas and cite them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

SPEC = Path(__file__).resolve().parents[1]
SCHEMAS = SPEC / "schemas"
VECTORS = sorted((SPEC / "vectors").glob("*.json"))
PROSE = sorted(path for path in SPEC.glob("*.md") if path.name not in {"README.md", "map.md"})
PREFIXES = {
    "branches": "BRANCH",
    "barrier": "BAR",
    "check": "CHECK",
    "configuration": "CONF",
    "delegated": "DELEG",
    "epochs": "EPOCH",
    "history": "HIST",
    "monkey": "MONKEY",
    "lineage": "LIN",
    "observability": "OBS",
    "propagation": "PROP",
    "records": "REC",
    "scopes": "SCOPE",
    "sessions": "SESS",
    "shims": "SHIM",
    "throttle": "THR",
    "trust": "TRUST",
    "wire": "WIRE",
}
REQUIREMENT = re.compile(r"^- \*\*([A-Z]+)-([1-9][0-9]*)\*\* (.*)$", re.MULTILINE)
MENTION = re.compile(r"\b(" + "|".join(PREFIXES.values()) + r")-([1-9][0-9]*)\b")


def load(path: Path) -> Any:
    """A JSON file, refusing a name that stands twice in one object (json would keep the last)."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        twice = [name for name, count in names.items() if count > 1]
        assert not twice, f"{path.name}: {twice} twice in one object"
        return dict(pairs)

    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


def requirements(path: Path) -> list[tuple[str, int, str]]:
    return [(prefix, int(number), text) for prefix, number, text in REQUIREMENT.findall(path.read_text("utf-8"))]


def known() -> set[str]:
    return {f"{prefix}-{number}" for path in PROSE for prefix, number, _ in requirements(path)}


def test_every_subject_has_its_prose() -> None:
    assert [path.stem for path in PROSE] == sorted(PREFIXES)


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_requirements_are_numbered_without_gap_or_repeat(path: Path) -> None:
    """A withdrawn requirement keeps its line, so a gap means that one was lost."""
    found = requirements(path)
    assert {prefix for prefix, _, _ in found} == {PREFIXES[path.stem]}
    assert sorted(number for _, number, _ in found) == list(range(1, len(found) + 1))


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_requirements_oblige(path: Path) -> None:
    vague = [
        f"{prefix}-{number}"
        for prefix, number, text in requirements(path)
        if not re.search(r"\b(MUST|SHOULD|MAY)\b|^\(withdrawn\)", text)
    ]
    assert not vague


@pytest.mark.parametrize("path", [*PROSE, SPEC / "README.md", SPEC / "vectors" / "README.md"], ids=str)
def test_prose_mentions_requirements_that_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    mentioned = {f"{prefix}-{number}" for prefix, number in MENTION.findall(text)}
    assert mentioned <= known()


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 26


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_schemas_are_schemas(path: Path) -> None:
    Draft202012Validator.check_schema(load(path))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vectors_fit_their_schema(path: Path) -> None:
    document = load(path)
    assert document["kind"] == path.stem
    whole = load(SCHEMAS / "vectors.schema.json")
    # Case by case against the kind's own definition: the message then names the case.
    schema = {"$schema": whole["$schema"], "$defs": whole["$defs"], "$ref": f"#/$defs/case-{path.stem}"}
    validator = Draft202012Validator(schema)
    for case in document["cases"]:
        error = best_match(validator.iter_errors(case))
        assert error is None, f"{case.get('id')}: {error.message} at {error.json_path}"
    Draft202012Validator(whole).validate(document)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vectors_have_ids_of_their_own_and_cite_requirements(path: Path) -> None:
    cases = load(path)["cases"]
    repeated = [name for name, count in Counter(case["id"] for case in cases).items() if count > 1]
    assert not repeated
    cited = {number for case in cases for number in case["req"]}
    assert cited <= known()


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vectors_are_described(path: Path) -> None:
    """A runner in a new language is written from the README alone."""
    assert f"`{path.stem}`" in (SPEC / "vectors" / "README.md").read_text("utf-8")


def test_texts_need_no_escaping() -> None:
    """PROP-6: no propagator's encoder changes an accepted text, nor reads it as another one."""
    texts = [case["text"] for case in load(SPEC / "vectors" / "wire-decode.json")["cases"]]
    assert all(quote_plus(text) == text == unquote_plus(text) for text in texts)


def test_a_typo_is_found() -> None:
    """The schemas refuse unknown fields: a misspelt one would silently test nothing."""
    whole = load(SCHEMAS / "vectors.schema.json")
    document = load(SPEC / "vectors" / "wire-decode.json")
    document["cases"][0]["canonicl"] = "1"
    assert not Draft202012Validator(whole).is_valid(document)


RECORD_HEAD = {"record": 1, "time": 1800000000.25, "service": "", "region": "b", "process": "host:1:1"}
BEHIND = RECORD_HEAD | {
    "kind": "behind",
    "site": "app.py:31",
    "origin": {"scope": "message", "store": "notifications"},
    "store": "blog-posts",
    "store_kind": "redis",
    "server": "redis://b2",
    "wanted": {"epoch": "8371ab90c2d4e6f1", "counter": "18446744073709551615"},
    "visible_after": 0.084,
}


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"visible_after": None}, True),
        ({"a-field-of-later": 1}, True),
        ({"visible_after": -0.1}, False),
        ({"site": "app.py"}, False),
        ({"kind": "stale"}, False),
        ({"wanted": {"epoch": "e", "counter": 18446744073709551615}}, False),
        ({"origin": {"scope": "thread"}}, False),
        ({"record": 2}, False),
    ],
    ids=str,
)
def test_record_schema(change: dict[str, Any], fits: bool) -> None:
    """REC-1 to REC-7: a `stale` record says how it was confirmed; counters are strings; later fields pass."""
    validator = Draft202012Validator(load(SCHEMAS / "record.schema.json"))
    assert validator.is_valid(BEHIND | change) is fits


PLACEHOLDERS = {
    "site": "app.py:31",
    "written_at": "app.py:7",
    "barrier": "app.py:8",
    "visible_after": 0.084,
    "wanted": {"epoch": "e", "counter": "2"},
    "seen": {"epoch": "e", "counter": "1"},
}


def filled(line: dict[str, Any]) -> dict[str, Any]:
    """A line of the vectors with what its runners take out or name by placeholders."""
    made: dict[str, Any] = line | {name: word for name, word in PLACEHOLDERS.items() if line.get(name) is not None}
    if "trace_id" in line:
        made["span_id"] = "b7ad6b7169203331"
    if line["kind"] == "summary":
        made["since"] = 1800000000.0
    for name in {"stores", "counts"} & line.keys():
        made[name] = [filled({"kind": ""} | each) for each in line[name]]
    return made


@pytest.mark.parametrize("case", load(SPEC / "vectors" / "records.json")["cases"], ids=lambda case: case["id"])
def test_lines_of_the_vectors_fit_the_schema(case: dict[str, Any]) -> None:
    """REC-1: so does whatever a runner finds equal to them."""
    schema = load(SCHEMAS / "record.schema.json")
    for line in case["lines"]:
        whole: dict[str, Any] = RECORD_HEAD | filled(line)
        error = best_match(Draft202012Validator(schema).iter_errors(whole))
        assert error is None, error.message
        assert whole.keys() <= schema["properties"].keys()
        for store in whole.get("stores", ()):
            assert store.keys() - {"kind"} <= schema["$defs"]["store"]["properties"].keys()
