"""The lines of the log: what is in force, once, and nothing that somebody else could write (spec OBS-8, OBS-12)."""

from __future__ import annotations

import logging

import antipode
import antipode.memory
import pytest
from antipode._base import logs
from antipode.propagation import Inbound


def test_what_is_in_force_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "antipode")
    antipode.configure(region="b")
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0)
    for region in "ab":
        store.client(region)
    with antipode.scope():
        antipode.barrier()
        antipode.barrier()
    Inbound()
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("mode=")]
    assert lines == ["mode=enforce region=b stores=blog-posts(memory, 2 replicas) trust=private"]


def test_what_is_in_force_is_said_by_the_first_request_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "antipode")
    antipode.configure(mode="dry-run", edge=True)
    Inbound()
    assert "mode=dry-run region=- stores=- trust=private edge=true records=antipode-records/" in caplog.messages


def test_the_kinds_of_lines_that_are_remembered_are_bounded() -> None:
    """OBS-12: the one said longest ago goes first."""
    for number in range(logs.MOST_KINDS + 10):
        logs.info(f"kind {number}", "words")
        logs.info(f"kind {number}", "words")
    kinds = logs._throttle._kinds
    assert len(kinds) == logs.MOST_KINDS
    assert "kind 0" not in kinds


def test_a_result_s_words_hold_no_line_of_somebody_else() -> None:
    """OBS-12."""
    antipode.memory.Store("posts").client("a")
    text = "1~a_0A2026_20ERROR..e.1" + "".join(f"~x{number}..e.1" for number in range(9))
    with antipode.message_scope(text):
        result = antipode.barrier()
    assert "\n2026" not in result.explain()
    assert "and 5 more elsewhere" in str(result)
