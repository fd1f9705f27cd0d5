"""The vectors of configuration that every language runs (spec/vectors/configuration*.json)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from antipode._base.settings import reset_settings, settings, store_settings
from antipode._facade.configuration import configure
from antipode._model.errors import ConfigurationError

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


def plain(value: object) -> object:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ANTIPODE_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("case", cases("configuration"))
def test_configuration(
    case: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    for name, text in case["environment"].items():
        monkeypatch.setenv(name, text)
    reset_settings()
    with caplog.at_level(logging.WARNING, "antipode"):
        if "error" in case:
            with pytest.raises(ConfigurationError, match=case["error"]):
                configure(**case["code"])
            return
        configure(**case["code"])
    found = settings()
    assert {word: plain(getattr(found, word)) for word in case["expect"]} == case["expect"]
    warned = case.get("warns")
    assert bool(caplog.records) is bool(warned)
    if warned:
        assert warned in caplog.text


@pytest.mark.parametrize("case", cases("configuration-stores"))
def test_configuration_of_a_store(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(case["variable"], "redis://b1")
    reset_settings()
    assert store_settings(case["store"]).replicas == ("redis://b1",)
