"""Codes behind the words of errors and log lines, and `antipode explain` (OBS-14)."""

from __future__ import annotations

import logging
import pickle

import pytest
from antipode import logs
from antipode.cli import app
from antipode.errors import BarrierTimeout, ConfigurationError, UnfitStoreError
from antipode.result import BarrierResult
from typer.testing import CliRunner


def test_the_code_stands_behind_the_first_line() -> None:
    assert str(UnfitStoreError("fsync is off.\n  Turn it on.")) == "fsync is off. [AP208]\n  Turn it on."
    assert str(ConfigurationError("no such thing", code="AP301")) == "no such thing [AP301]"
    assert str(ConfigurationError("no such thing")) == "no such thing"


def test_a_code_survives_a_process_pool() -> None:
    result = BarrierResult(satisfied=False, waited=0.1)
    again = pickle.loads(pickle.dumps(BarrierTimeout("late", result, code="AP205")))
    assert (str(again), again.code, again.result) == ("late [AP205]", "AP205", result)
    assert str(pickle.loads(pickle.dumps(ConfigurationError("bad", code="AP301")))) == "bad [AP301]"


def test_a_log_line_has_its_code(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "antipode"):
        logs.warn("a kind", "dropped it", code="AP402", count_as="dropped")
    assert caplog.messages == ["dropped it [AP402] dropped=1"]


@pytest.mark.parametrize("code", ["AP104", "ap104", "[AP104]"])
def test_explain_prints_meaning_and_cure(code: str) -> None:
    done = CliRunner().invoke(app, ["explain", code])
    assert done.exit_code == 0
    assert done.output.startswith("AP104  {store}: no server is known yet\n")
    assert "What to do:\n  - Name the servers" in done.output


def test_explain_of_no_code_says_so() -> None:
    done = CliRunner().invoke(app, ["explain", "AP998"])
    assert done.exit_code == 2
    assert "AP998 is no code of a message. Did you mean AP" in done.output
