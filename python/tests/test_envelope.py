"""The envelope of a value and its lineage: its vectors, and its laws for any octets (spec SHIM-34, SHIM-35)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from antipode._store.envelope import BEGIN, close_envelope, open_envelope
from hypothesis import given, settings
from hypothesis import strategies as st

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
unhurried = settings(deadline=None)  # other processes may have the cores
octets = st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda rest: BEGIN + b"1" + rest))


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    assert found["cases"]
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


@pytest.mark.parametrize("case", cases("shim-envelope"))
def test_vectors(case: dict[str, Any]) -> None:
    value, closed = bytes.fromhex(case["value_hex"]), bytes.fromhex(case["octets_hex"])
    assert close_envelope(value, case["text"] or "") == closed
    opened = open_envelope(closed)
    assert opened.value == value
    assert (opened.text or None) == case["text"]
    assert not opened.fault


@pytest.mark.parametrize("case", cases("shim-envelope-broken"))
def test_vectors_of_broken_ones(case: dict[str, Any]) -> None:
    broken = bytes.fromhex(case["octets_hex"])
    opened = open_envelope(broken)
    assert (opened.value, opened.text) == (broken, None)
    assert opened.fault


@unhurried
@given(octets, st.text("1~.abc-_", max_size=500))
def test_what_is_put_in_comes_out(value: bytes, text: str) -> None:
    opened = open_envelope(close_envelope(value, text))
    assert (opened.value, opened.text or "", opened.fault) == (value, text, "")


@unhurried
@given(octets)
def test_no_value_is_ever_lost(found: bytes) -> None:
    opened = open_envelope(found)
    assert opened.value == found or found.endswith(opened.value)
    if opened.fault:
        assert opened.value == found
    elif opened.text is not None:
        assert len(found) == 6 + len(opened.text) + len(opened.value)


def test_what_no_envelope_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        close_envelope(b"", "1" * 0x10000)
    with pytest.raises(ValueError, match="ascii"):
        close_envelope(b"", "é")
