"""Every test has an Antipode of its own: fresh registry, settings, counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from antipode.propagation import uninstrument
from antipode.testing import isolated
from opentelemetry import propagate
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def own_propagators() -> Iterator[None]:
    """What a test does to the global propagator is undone after it."""
    before = propagate.get_global_textmap()
    yield
    uninstrument()
    propagate.set_global_textmap(before)


@pytest.fixture
def w3c_propagators(own_propagators: None) -> None:
    """As `own_propagators`; and those of W3C are in use."""
    propagate.set_global_textmap(CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()]))


@pytest.fixture
def monkeypatch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As ever; and a variable of ours that is set is read, though a thread of an earlier test has looked meanwhile."""
    plain = monkeypatch.setenv

    def setenv(name: str, value: str, prepend: str | None = None) -> None:
        plain(name, value, prepend)
        if name.startswith("ANTIPODE_"):
            sys.modules["antipode._base.settings"].__dict__["_current"] = None  # what code has configured stays

    vars(monkeypatch)["setenv"] = setenv
    return monkeypatch
