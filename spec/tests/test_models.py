"""The models hold together, as far as that shows without TLC: `make models` runs them (spec/tla)."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

SPEC = Path(__file__).resolve().parents[1]
MODELS = SPEC / "tla"
CHECK = MODELS / "check.py"
REQUIREMENT = re.compile(r"^- \*\*([A-Z]+-[1-9][0-9]*)\*\*", re.MULTILINE)
MENTION = re.compile(r"\b[A-Z]+-[1-9][0-9]*(?:(?: to |, | and )[1-9][0-9]*\b)*")


def load() -> Any:
    """Return the program's module; it is in no package."""
    spec = importlib.util.spec_from_file_location("antipode_models_check", CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks there for its own module
    spec.loader.exec_module(module)
    return module


check = load()
MODULES = sorted({case.module for case in check.CASES})


def module(name: str) -> str:
    return (MODELS / f"{name}.tla").read_text("utf-8")


def rules(name: str) -> set[str]:
    """Return the words of the module's AllRules, without what comments quote."""
    body = re.search(r"^AllRules == \{(.*?)^ +\}", module(name), re.MULTILINE | re.DOTALL)
    assert body is not None, name
    return set(re.findall(r'"(\w+)"', re.sub(r"\\\*.*", "", body[1])))


def defined(name: str) -> set[str]:
    return set(re.findall(r"^(\w+) ==", module(name), re.MULTILINE))


def numbers(text: str) -> set[str]:
    """Return the requirements that a text names: EPOCH-1, EPOCH-9 to 12, BRANCH-3, 4 and 7."""
    found: set[str] = set()
    for mention in MENTION.finditer(text):
        chapter, _, rest = mention[0].partition("-")
        for part in re.split(r", | and ", rest):
            first, _, last = part.partition(" to ")
            found |= {f"{chapter}-{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def known() -> set[str]:
    return {name for page in SPEC.glob("*.md") for name in REQUIREMENT.findall(page.read_text("utf-8"))}


def test_each_file_is_run() -> None:
    assert {path.stem for path in MODELS.glob("*.cfg")} == {case.config for case in check.CASES}
    assert {path.stem for path in MODELS.glob("*.tla")} == set(MODULES)
    names = [(case.name, case.outcome) for case in check.CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", check.CASES, ids=lambda case: f"{case.name} {case.outcome}")
def test_a_case_names_what_its_module_has(case: Any) -> None:
    text = case.text()
    invariants = check.words(text, check.INVARIANTS)
    assert invariants
    others = re.findall(r"^(?:SPECIFICATION|SYMMETRY|CONSTRAINT) (\w+)$", text, re.MULTILINE)
    assert {*invariants, *others} <= defined(case.module)
    assert case.outcome in {check.HOLDS, *invariants}
    in_force = {word.strip('"') for word in check.words(text, check.RULES)}
    assert in_force <= rules(case.module)
    assert case.without not in in_force


@pytest.mark.parametrize("name", MODULES)
def test_each_rule_has_a_mutant_and_each_invariant_can_fail(name: str) -> None:
    cases = [case for case in check.CASES if case.module == name]
    assert rules(name) == {case.without for case in cases} - {""}
    sound = [case for case in cases if not case.without and case.outcome == check.HOLDS]
    asked = {each for case in sound for each in check.words(case.text(), check.INVARIANTS)}
    assert asked <= {case.outcome for case in cases}
    # What a mutant is made of is run as it is, too.
    assert {case.config for case in cases} == {case.config for case in cases if not case.without}


def test_a_mutant_wants_a_rule_and_an_invariant_that_are_there() -> None:
    with pytest.raises(ValueError, match=r"no rule nothing"):
        check.Case("Marks_faults", "NeverFalselyVisible", "nothing").text()
    with pytest.raises(ValueError, match=r"no invariant NobodyPasses"):
        check.Case("Marks_faults", "NobodyPasses", "markOwn").text()


def test_the_outcome_is_what_tlc_says() -> None:
    assert check.outcome("Model checking completed. No error has been found.\n") == "holds"
    assert check.outcome("Error: Invariant PassStood is violated.\n") == "PassStood"
    assert check.outcome("Error: Evaluating invariant PassStood failed.\n") == "TLC failed"
    assert check.outcome("") == "TLC failed"


@pytest.mark.parametrize("path", [*sorted(MODELS.glob("*.tla")), MODELS / "README.md"], ids=lambda path: path.name)
def test_requirements_are_there(path: Path) -> None:
    named = numbers(re.sub(r"\s*\*\)\n\(\*\s*", " ", path.read_text("utf-8")))
    assert named
    assert named <= known()


def test_the_table_has_what_the_models_are_for() -> None:
    page = (MODELS / "README.md").read_text("utf-8")
    wanted = {f"BAR-{n}" for n in range(33, 37)} | {f"EPOCH-{n}" for n in range(9, 18)}
    assert wanted | {f"BRANCH-{n}" for n in range(3, 14)} <= numbers(page)
    # Each rule of each model is a row's, and each invariant that a mutant is refuted by.
    words = set(re.findall(r"`(\w+)`", page))
    for name in MODULES:
        assert rules(name) <= words, name
    assert {case.outcome for case in check.CASES if case.without} - {check.HOLDS} <= words
