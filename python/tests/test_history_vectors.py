"""The vectors of recorded histories that every language runs (spec/vectors/history-*)."""

from __future__ import annotations

from typing import Any

import pytest
from antipode._diagnostics.history.order import Line, Order, Step, Strand
from antipode._diagnostics.history.recorder import spelled_key, value_digest
from antipode._model.lineage import Lineage
from antipode._propagation.gate import messages_of
from test_vectors import canonical, cases


@pytest.mark.parametrize("case", cases("history-value"))
def test_value(case: Any) -> None:
    """HIST-38."""
    digest = value_digest(case["store"], bytes.fromhex(case["key_hex"]), bytes.fromhex(case["value_hex"]))
    assert digest == case["digest"]


@pytest.mark.parametrize("case", cases("history-key"))
def test_key(case: Any) -> None:
    """HIST-34."""
    assert spelled_key(bytes.fromhex(case["key_hex"])) == case["spelled"]


@pytest.mark.parametrize("case", cases("history-messages"))
def test_messages(case: Any) -> None:
    """HIST-30."""
    rest, messages = messages_of(Lineage.deserialize(case["text"]))
    assert (messages, canonical(rest)) == (case["messages"], case["rest"])


@pytest.mark.parametrize("case", cases("history-order"))
def test_order(case: Any) -> None:
    """HIST-26, HIST-27."""
    lines: list[Line] = []
    order = Order("process", "id", lines.append)
    strands: dict[str, Strand] = {}
    begun: dict[str, Step] = {}

    def strand(name: str) -> Strand:
        return strands.setdefault(name, Strand(name, ""))

    for step in case["steps"]:
        if "begin" in step:
            begun[step["begin"]] = order.begin(strand(step["scope"]), None)
        elif "end" in step:
            told = [(kind, Line()) for kind in step["as"]]
            order.end(begun[step["end"]], told, certain=step.get("certain", True))
        elif "instant" in step:
            order.instant(strand(step["scope"]), step["instant"], None, message=step["message"])
        else:
            order.joined(strand(step["join"]), strand(step["into"]))
    given = {step["message"] for step in case["steps"] if "message" in step}
    assert [list(each) for each in numbered(lines, given)] == case["lines"]


def numbered(lines: list[Line], given: set[str]) -> list[tuple[str, str, str]]:
    """Kind, thread and message of each; the recorder's own messages by when they first appear."""
    names: dict[str, str] = {}
    found = []
    for line in lines:
        message = line.get("message", "")
        if message and message not in given:
            message = names.setdefault(message, f"m{len(names) + 1}")
        found.append((line["kind"], line["scope"], message))
    return found
