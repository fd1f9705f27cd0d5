"""Every test has an Antipode of its own: fresh registry, settings, counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from antipode.testing import isolated


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def monkeypatch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As ever; and a variable of ours that is set is read, though a thread of an earlier test has looked meanwhile."""
    plain = monkeypatch.setenv

    def setenv(name: str, value: str, prepend: str | None = None) -> None:
        plain(name, value, prepend)
        if name.startswith("ANTIPODE_"):
            sys.modules["antipode.settings"].__dict__["_current"] = None  # what code has configured stays

    vars(monkeypatch)["setenv"] = setenv
    return monkeypatch
