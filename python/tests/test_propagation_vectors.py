"""The vectors of propagation that every language runs (spec/vectors/propagation-*.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from antipode._base import logs
from antipode._base.observers import events
from antipode._model.lineage import Lineage
from antipode._propagation.carriers import (
    BAGGAGE_KEY,
    JAEGER_HEADER,
    JMS_PROPERTY,
    LINEAGE_HEADER,
    Formats,
    read,
    rewrite,
    without_member,
)
from antipode._propagation.gate import give, take
from antipode._propagation.shared_caches import is_shared
from antipode._trust.trust import Decision, Direction, TrustSettings
from antipode.propagation import extract_request

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


@pytest.mark.parametrize("case", cases("propagation-extract"))
def test_extract(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    logs.reset()
    counted: list[str] = []
    monkeypatch.setattr(events, "on_lineage_dropped", lambda reason, direction: counted.append(reason))
    headers = [(name, value) for name, value in case["headers"]]
    with extract_request(headers, "127.0.0.1") as scope:
        assert scope.lineage.serialize() == (case["text"] or "1")
    counted.clear()
    take(read(headers).texts, lambda text: Decision(True, text), Direction.REQUEST_IN, "")
    assert counted.count("malformed") == case["malformed"]
    lines = [without_member(value) for name, value in headers if name.lower() == "baggage"]
    assert [member.strip() for line in lines for member in line.split(",") if member.strip()] == case["rest"]


@pytest.mark.parametrize("case", cases("propagation-cache"))
def test_cache(case: dict[str, Any]) -> None:
    headers = [(name, value) for name, value in case["headers"]]
    assert is_shared(headers, case.get("method", "GET"), case.get("status", 200)) is case["shared"]


@pytest.mark.parametrize("case", cases("propagation-names"))
def test_name(case: dict[str, Any]) -> None:
    names = {
        "http-header": LINEAGE_HEADER,
        "baggage-key": BAGGAGE_KEY,
        "grpc-metadata": LINEAGE_HEADER,
        "message-header": LINEAGE_HEADER,
        "jms-property": JMS_PROPERTY,
        "jaeger-header": JAEGER_HEADER,
    }
    assert names[case["carrier"]] == case["name"]


@pytest.mark.parametrize("case", cases("propagation-place"))
def test_place(case: dict[str, Any]) -> None:
    headers: dict[str, str | None] = {
        "baggage": case["baggage"],
        "uber-trace-id": case.get("uber_trace_id"),
        "uberctx-antipode": case.get("uberctx_antipode"),
    }
    text = give(Lineage.deserialize(case["text"]), TrustSettings(), Direction.REQUEST_OUT)
    headers |= rewrite(headers.get, text, Formats(case["baggage_propagator"], case.get("jaeger_propagator", False)))
    assert headers.get("baggage") == case["out"]["baggage"]
    assert headers.get("antipode-lineage") == case["out"]["antipode_lineage"]
    assert headers.get("uberctx-antipode") == case["out"].get("uberctx_antipode")
