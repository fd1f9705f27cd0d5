"""Every history of spec/histories comes out as its folder and the index say (HIST-1 to HIST-14, HIST-17 to HIST-19).

Those of a store without digests, too (HIST-37).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import History, HistoryError
from antipode.check.history.reading import read_history
from check_history.by_definition import is_consistent

SPEC = Path(__file__).parents[3] / "spec"
FOLDER = SPEC / "histories"
CASES: dict[str, dict[str, Any]] = json.loads((FOLDER / "index.json").read_text("utf-8"))["cases"]
SCHEMA = jsonschema.Draft202012Validator(json.loads((SPEC / "schemas" / "history.schema.json").read_text("utf-8")))
READABLE = sorted(path for path in CASES if not path.startswith("refused/"))
REFUSED = sorted(path for path in CASES if path.startswith("refused/"))


def names(history: History, numbers: list[int]) -> list[str]:
    return sorted(history.operations[number].id for number in numbers)


def test_the_index_has_every_file_and_no_other() -> None:
    assert sorted(CASES) == sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.jsonl"))


def test_every_requirement_that_is_named_is_there() -> None:
    chapter = (SPEC / "history.md").read_text("utf-8")
    assert all(f"**{number}**" in chapter for case in CASES.values() for number in case["req"])


@pytest.mark.parametrize("path", READABLE)
def test_verdict(path: str) -> None:
    history = read_history(FOLDER / path)
    decision = decide(history)
    case = CASES[path]
    verdict, *pattern = path.split("/")[:-1]
    assert decision.verdict == verdict
    assert [str(found.pattern) for found in decision.found] == pattern
    assert is_consistent(history) == (decision.verdict is not Verdict.VIOLATED)
    if pattern:
        [witness] = decision.witnesses
        assert str(witness.pattern) == pattern[0]
        assert names(history, witness.operations) == sorted(case["witness"])
    strict = case.get("strict", 0)
    if strict is None:
        assert decision.strict is None
    else:
        assert decision.strict is not None
        assert len(decision.strict.reads) == strict
        assert names(history, decision.strict.later_writes) == case.get("later", [])
    assert names(history, sorted({gap.operation for gap in history.gaps})) == case.get("gaps", [])


@pytest.mark.parametrize("path", READABLE)
def test_every_line_fits_the_schema(path: str) -> None:
    for line in (FOLDER / path).read_text("utf-8").splitlines():
        SCHEMA.validate(json.loads(line))


@pytest.mark.parametrize("path", REFUSED)
def test_refused(path: str) -> None:
    """HIST-8."""
    case = CASES[path]
    with pytest.raises(HistoryError) as refused:
        read_history(FOLDER / path)
    told = str(refused.value)
    place = f"{FOLDER / path}:" + ("" if case["line"] is None else f"{case['line']}:")
    assert told.startswith(place)
    assert case["word"] in told
    assert "\n" not in told
