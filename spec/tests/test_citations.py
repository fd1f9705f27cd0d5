"""The tool that lists which requirements a language's tests cite (spec/citations.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TOOL = Path(__file__).resolve().parents[1] / "citations.py"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(root: Path, *words: str) -> Ran:
    ran = subprocess.run(
        [sys.executable, TOOL, "--root", root, *words], capture_output=True, text=True, timeout=60, check=False
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def as_json(root: Path, *words: str) -> Any:
    return json.loads(run(root, "--json", *words).out)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of five requirements in two chapters, one of them withdrawn, and one kind of vectors."""
    write(
        tmp_path,
        "spec/wire.md",
        "# Wire\n- **WIRE-1** One MUST.\n- **WIRE-2** Two MUST.\n- **WIRE-3** (withdrawn) said too much\n"
        "- **WIRE-10** Ten MUST, as WIRE-2 does.\n",
    )
    write(tmp_path, "spec/shims.md", "- **SHIM-1** A shim MUST.\n")
    cases = [{"id": "ten", "req": ["WIRE-10"]}, {"id": "both", "req": ["WIRE-10", "WIRE-2"]}]
    write(tmp_path, "spec/vectors/wire-read.json", json.dumps({"vectors": 1, "kind": "wire-read", "cases": cases}))
    return tmp_path


def test_each_language_by_itself(root: Path) -> None:
    write(root, "python/tests/test_wire.py", "# WIRE-1\ndef test_two_WIRE_2() -> None: ...\n")
    write(root, "shims/redis/python/tests/deep/test_redis.py", '"""(SHIM-1)"""\n')
    write(root, "shims/redis/java/src/test/java/RedisTest.java", "// SHIM-1\n")
    write(root, "shims/redis/java/src/main/java/Redis.java", "// WIRE-1, in what is no test\n")
    told = as_json(root)
    assert told["languages"]["python"] == {
        "requirements": 4,
        "cited": 3,
        "uncited": ["WIRE-10"],
        "excused": {},
        "stale": [],
        "vectors_not_run": ["wire-read"],
        "unknown": {},
    }
    assert told["languages"]["java"]["uncited"] == ["WIRE-1", "WIRE-2", "WIRE-10"]
    assert "cpp" not in told["languages"]
    assert told["uncited_anywhere"] == ["WIRE-10"]
    by_name = {each["name"]: each for each in told["requirements"]}
    assert by_name["WIRE-2"]["cited"] == {"python": {"tests": ["python/tests/test_wire.py:2"], "vectors": []}}
    assert sorted(by_name["SHIM-1"]["cited"]) == ["java", "python"]
    assert by_name["WIRE-3"]["withdrawn"]


def test_a_number_is_no_part_of_a_longer_one(root: Path) -> None:
    write(root, "python/tests/test_wire.py", "# WIRE-10, HARDWIRE-1, WIRE-20\n")
    told = as_json(root)["languages"]["python"]
    assert told["uncited"] == ["SHIM-1", "WIRE-1", "WIRE-2"]
    assert told["unknown"] == {"WIRE-20": ["python/tests/test_wire.py:1"]}


def test_a_range_cites_all_that_it_holds(root: Path) -> None:
    write(root, "python/tests/test_wire.py", "# WIRE-1 to WIRE-2\n")
    assert as_json(root)["languages"]["python"]["uncited"] == ["SHIM-1", "WIRE-10"]


def test_vectors_count_for_the_language_whose_tests_run_them(root: Path) -> None:
    write(root, "python/tests/test_wire.py", 'cases("wire-read")\n')
    write(root, "cpp/core/tests/wire.cpp", "// the file of wire-read is not read here\n")
    told = as_json(root)
    assert told["languages"]["python"]["uncited"] == ["SHIM-1", "WIRE-1"]
    assert told["languages"]["python"]["vectors_not_run"] == []
    assert told["languages"]["cpp"]["cited"] == 0
    [two] = [each for each in told["requirements"] if each["name"] == "WIRE-2"]
    assert two["cited"]["python"] == {"tests": [], "vectors": ["wire-read/both"]}


def test_the_table(root: Path) -> None:
    write(root, "python/tests/test_wire.py", 'cases("wire-read")  # WIRE-10\n')
    ran = run(root)
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines() if line.startswith("  WIRE ")] == [
        ["WIRE", "3", "1", "1", "1"]
    ]
    assert "    WIRE-1    One MUST." in ran.out
    assert "no tests yet: java, cpp" in ran.out


def test_exit_code_for_checks(root: Path) -> None:
    write(root, "python/tests/test_wire.py", 'cases("wire-read")  # WIRE-1\n')
    assert run(root).code == 0
    assert run(root, "--fail-uncited").code == 1
    write(root, "python/tests/test_shim.py", "# SHIM-1\n")
    assert run(root, "--fail-uncited").code == 0
    write(root, "python/tests/test_more.py", "# WIRE-3\n")  # it was withdrawn
    ran = run(root, "--fail-uncited")
    assert (ran.code, "cites WIRE-3, which is not there" in ran.out) == (1, True)
    write(root, "python/tests/test_more.py", "")
    write(root, "java/core/src/test/WireTest.java", "// WIRE-1\n")
    assert run(root, "--fail-uncited").code == 1
    assert run(root, "--fail-uncited", "--language", "python").code == 0
    missing = run(root, "--language", "cpp")
    assert (missing.code, "there are no tests of cpp" in missing.err) == (2, True)


def test_the_project_itself_is_read() -> None:
    """Every kind of vectors is run by Python's tests, and no test there cites a number that is not there."""
    told = as_json(TOOL.parents[1], "--language", "python")["languages"]["python"]
    assert told["cited"] > 200
    assert told["vectors_not_run"] == []
    assert told["unknown"] == {}


def test_what_is_uncited_on_purpose(root: Path) -> None:
    write(root, "python/tests/test_wire.py", 'cases("wire-read")  # WIRE-1\n')
    write(root, "spec/uncited.json", json.dumps({"python": {"SHIM-1": "there are no shims"}}))
    ran = run(root, "--fail-uncited")
    assert (ran.code, "SHIM-1 is uncited on purpose: there are no shims" in ran.out) == (0, True)
    for stale in ("WIRE-1", "WIRE-3", "WIRE-99"):  # cited, withdrawn, never there
        write(root, "spec/uncited.json", json.dumps({"python": {"SHIM-1": "there are no shims", stale: "because"}}))
        ran = run(root, "--fail-uncited")
        assert (ran.code, f"excuses {stale}, which is cited or not there" in ran.out) == (1, True)


def test_vectors_of_what_is_uncited_on_purpose_need_no_test(root: Path) -> None:
    write(root, "python/tests/test_wire.py", "# WIRE-1, WIRE-10, SHIM-1\n")
    write(root, "spec/uncited.json", json.dumps({"python": {"WIRE-2": "not there yet"}}))
    assert as_json(root)["languages"]["python"]["vectors_not_run"] == ["wire-read"]  # WIRE-10 is theirs, too
    write(root, "python/tests/test_wire.py", "# WIRE-1, SHIM-1\n")
    write(root, "spec/uncited.json", json.dumps({"python": dict.fromkeys(["WIRE-2", "WIRE-10"], "not there yet")}))
    assert as_json(root)["languages"]["python"]["vectors_not_run"] == []
    assert run(root, "--fail-uncited").code == 0


@pytest.mark.parametrize("language", ["python", "java", "cpp"])
def test_this_project_s_languages_are_whole(language: str) -> None:
    ran = run(TOOL.parents[1], "--language", language, "--fail-uncited")
    assert ran.code == 0, ran.out
