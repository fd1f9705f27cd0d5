"""`scripts/repeat-failed`: which failed tests of a run are run again, and what the run then counts as."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "repeat-failed"
Change = dict[str, object]

FLAKY = """
from pathlib import Path
from typing import Any

def test_once():
    file = Path(__file__).with_name("ran")
    file.write_text(file.read_text() + "." if file.exists() else ".")
    assert len(file.read_text()) > {failures}
"""
REPORT = """<testsuite><testcase classname="a.B" name="right"/>
<testcase classname="a.B" name="wrong(String)[2]"><failure/></testcase></testsuite>"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one test that fails at its first run, and the environment that would run it."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "test_flaky.py").write_text(FLAKY.format(failures=0))
    return tmp_path


def repeat(tree: Path, path: str = os.environ["PATH"], **changed: Any) -> tuple[int, str]:
    """Run the script on a run in which all passed but what is `changed`; return its code and what it printed."""
    runs: dict[str, Change] = {
        name: {"run": name, "complete": True, "passed": True, "failed": []} for name in ("python", "interop")
    }
    runs |= {name: {"run": name, "complete": True, "passed": True} for name in ("java", "cpp")}
    for name, change in changed.items():
        runs[name].update({"passed": False, **change})
    lines = [{"begun": int(time.time())}, *runs.values()]
    file = tree / "outcomes"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    environment = {**os.environ, "PATH": path}
    done = subprocess.run([SCRIPT, file], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def test_a_test_that_passes_alone_is_flaky(tree: Path) -> None:
    code, printed = repeat(tree, python={"failed": ["test_flaky.py::test_once"]})
    assert (code, printed.splitlines()[-1]) == (0, "flaky: test_flaky.py::test_once")


def test_a_test_that_fails_again_fails_the_run(tree: Path) -> None:
    (tree / "test_flaky.py").write_text(FLAKY.format(failures=1))
    code, printed = repeat(tree, python={"failed": ["test_flaky.py::test_once"]})
    assert (code, printed.splitlines()[-1]) == (1, "failed again: test_flaky.py::test_once")
    assert (tree / "ran").read_text() == "."  # once


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"python": {"failed": [f"test_flaky.py::test_{n}" for n in range(4)]}}, "4 tests failed, more than 3"),
        ({"python": {"failed": ["shims/a/test_conformance.py::TestKit::test_case"]}}, "look for false passes"),
        ({"interop": {"failed": ["benchmarks/tests/test_random_workload.py::test_it"]}}, "look for false passes"),
        ({"python": {"complete": False, "failed": ["test_flaky.py::test_once"]}}, "something else than a test"),
        ({"java": {"complete": False}}, "something else than a test"),
        ({"java": {}}, "java failed, and nothing says which test"),
    ],
)
def test_what_is_not_repeated(tree: Path, changed: Any, words: str) -> None:
    code, printed = repeat(tree, **changed)
    assert code == 1
    assert words in printed
    assert not (tree / "ran").exists()


def test_a_run_without_all_its_outcomes_is_not_repeated(tree: Path) -> None:
    file = tree / "outcomes"
    file.write_text('{"begun": 1}\n{"run": "python", "complete": true, "passed": true, "failed": []}\n')
    done = subprocess.run([SCRIPT, file], cwd=tree, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "not repeated: no outcome of: cpp, interop, java\n")


def test_java_s_and_c_s_tests_are_run_by_their_own_runners(tree: Path) -> None:
    """The runners are doubles here: what they are asked is what counts."""
    programs = tree / "programs"
    programs.mkdir()
    for name in ("mvn", "ctest"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $@" >>{tree}/asked\n')
        (programs / name).chmod(0o755)
    reports = tree / "java/core/target/surefire-reports"
    reports.mkdir(parents=True)
    pom = '<project xmlns="http://maven.apache.org/POM/4.0.0"><artifactId>antipode-core</artifactId></project>'
    (tree / "java/core/pom.xml").write_text(pom)
    (reports / "TEST-a.B.xml").write_text(REPORT)
    stale = reports / "TEST-a.C.xml"
    stale.write_text(REPORT.replace("a.B", "a.C"))
    os.utime(stale, (1, 1))
    log = tree / "build/cpp/Testing/Temporary"
    log.mkdir(parents=True)
    (log / "LastTestsFailed.log").write_text("7:Barrier.Passes/2\n")
    code, printed = repeat(tree, f"{programs}:{os.environ['PATH']}", java={}, cpp={})
    assert (code, printed.splitlines()) == (0, ["flaky: a.B#wrong", "flaky: Barrier.Passes/2"])
    maven, ctest = (tree / "asked").read_text().splitlines()
    assert "-pl :antipode-core -am" in maven
    assert "-Dtest=a.B#wrong" in maven
    assert "-R ^Barrier\\.Passes/2$" in ctest


def test_a_run_of_pytest_records_its_outcome(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    (tmp_path / "conftest.py").write_text((root / "conftest.py").read_text())
    (tmp_path / "test_two.py").write_text("def test_right(): pass\ndef test_wrong(): assert False\n")
    environment = {**os.environ, "TEST_OUTCOMES": str(tmp_path / "outcomes")}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "test_two.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    expected = {"run": "python", "complete": True, "passed": False, "failed": ["test_two.py::test_wrong"]}
    assert [json.loads(line) for line in (tmp_path / "outcomes").read_text().splitlines()] == [expected]
