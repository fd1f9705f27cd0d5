"""Codes behind the words of errors and log lines, and `antipode explain` (OBS-14)."""

from __future__ import annotations

import logging
import pickle

import antipode
import pytest
from antipode import Lineage, UnprovenKind, WriteId
from antipode._base import logs
from antipode._model.errors import ConfigurationError, UnfitStoreError
from antipode._model.result import BarrierError, BarrierResult, BarrierTimeout
from antipode._model.scope_values import Delivery
from antipode._model.verdict import NOT_YET, VISIBLE, Visibility, unproven
from antipode._scope.scope import open_scope
from antipode.cli.app import app
from fakes import Target, always, fake_store
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


LATE, RIGHT, UNFIT = NOT_YET, unproven("no right", UnprovenKind.RIGHT), unproven("fsync", UnprovenKind.UNFIT)


def failed(*answers: Visibility, **options: object) -> BarrierError:
    """The error of a barrier on stores s0, s1, … that answer so, in the scope of a message."""
    for number, answer in enumerate(answers):
        fake_store(f"s{number}", Target(f"t{number}", always(answer)))
    lineage = Lineage(WriteId.position(f"s{number}", "e", 1) for number in range(len(answers)))
    with (
        open_scope(lineage, kind="message", delivery=Delivery(can_redeliver=True)),
        pytest.raises(BarrierError) as raised,
    ):
        antipode.barrier(**({"timeout": 0.2} | options))  # type: ignore[arg-type]
    return raised.value


@pytest.mark.parametrize(
    ("answers", "options", "code"),
    [
        ([VISIBLE, LATE], {}, "AP201"),
        ([LATE, RIGHT], {}, "AP203"),
        ([UNFIT, RIGHT], {}, "AP208"),
        ([LATE, RIGHT], {"on_unproven": "proceed"}, "AP201"),
        ([LATE, UNFIT], {"on_unproven": "as_timeout"}, "AP208"),
        ([UNFIT], {"on_unproven": "as_timeout"}, "AP208"),
        ([LATE], {"on_timeout": "redeliver"}, "AP201"),
        ([RIGHT], {"on_unproven": "redeliver"}, "AP203"),
    ],
)
def test_an_error_has_the_code_of_the_store_that_made_it_fail(
    answers: list[Visibility], options: dict[str, str], code: str
) -> None:
    """OBS-15: of the first unproven store, else of the first that was late; once, behind the first line."""
    error = failed(*answers, **options)
    assert error.code == code
    first, *others = str(error).splitlines()
    assert first.endswith(f" [{code}]")
    assert str(error).count("[AP") == 1
    assert others  # the cures
    told = {name for name, store in error.result.stores.items() if store.code == code}
    assert any(name in first for name in told)


def test_an_error_of_overload_has_its_own_code() -> None:
    """OBS-15, BAR-39."""
    antipode.configure(max_waiters=0)
    assert failed(LATE).code == "AP205"


def test_nothing_to_wait_for_and_nothing_judged_have_codes() -> None:
    """OBS-14: words of a result that are no error, and of a barrier that knows none of the stores."""
    fake_store("s", Target("t", always(VISIBLE)))
    assert antipode.barrier(Lineage()).explain().endswith("nothing to wait for [AP102]")
    elsewhere = Lineage([WriteId.position("x", "e", 1)])
    with pytest.raises(antipode.BarrierIncomplete, match=r"\[AP604\]"):
        antipode.barrier(elsewhere, on_vacuous="raise")
    with pytest.raises(antipode.BarrierIncomplete, match=r"\[AP116\]\n"):
        antipode.barrier(elsewhere, require_complete=True)


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
