"""The conformance kit is able to fail: each broken shim is caught, by the case that is there for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CAUGHT_BY = {
    "PassesAlways": "partitioned_replica",
    "ComparesKeysOnly": "old_version",
    "IgnoresEpochs": "promotion_with_lost_writes",
    "ForgetsPending": "unknown_outcome",
    "RepeatsVersions": "recreate",
    "CoversNothingRead": "reading_covers_the_value_read",
    "StaysConnected": "address_that_moves",
    "JudgesWhatIsListed": "reader_in_nobodys_list",
    "ReadsAtOnce": "unsure_reads",
    "ReadsForever": "read_at_a_frozen_server",
    "HidesItsDoubts": "barrier_behind_an_unknown_outcome",
    "RefusesUnasked": "reopened_need",
    "LeavesOutForItsOwnFaults": "own_fault",
    "PassesInTrouble": "own_fault",
    "HasStaleExceptions": "write",
}


@pytest.fixture(scope="module")
def failed() -> set[tuple[str, str]]:
    """The cases that fail, by the class of the broken shim; each runs that has to, and all on the sound one."""
    chosen = " or ".join(f"(TestSound or Test{broken}) and test_{case}" for broken, case in CAUGHT_BY.items())
    chosen += " or test_exceptions_are_cases"
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-k", chosen]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("broken_shims.py"))], capture_output=True, text=True, check=False
    )
    assert " passed" in done.stdout, done.stdout + done.stderr
    assert "ERROR" not in done.stdout, done.stdout
    return set(re.findall(r"^FAILED \S+::Test(\w+)::test_(\w+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize(("broken", "case"), CAUGHT_BY.items())
def test_a_broken_shim_is_caught(failed: set[tuple[str, str]], broken: str, case: str) -> None:
    assert (broken, case) in failed


def test_a_sound_shim_passes_and_an_unknown_exception_fails(failed: set[tuple[str, str]]) -> None:
    assert not {case for broken, case in failed if broken == "Sound"}
    assert ("HasStaleExceptions", "exceptions_are_cases") in failed
