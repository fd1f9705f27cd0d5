"""What the tests of scopes share: a store of positions, and what is counted."""

from __future__ import annotations

import antipode
import pytest
from antipode import WriteId
from antipode._diagnostics import telemetry
from antipode._model.verdict import VISIBLE
from antipode._store.store import Store
from antipode.shim import Capabilities
from fakes import FakeShim, Target, always, fake_store
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint


class PositionsShim(FakeShim):
    kind = "positions"
    capabilities = Capabilities(versions="position")


def positions(name: str = "posts") -> Store:
    return fake_store(name, Target("b", always(VISIBLE)), shim=PositionsShim)


def at(counter: int, store: str = "posts", epoch: str = "e") -> WriteId:
    return WriteId.position(store, epoch, counter)


def text() -> str:
    scope = antipode.current_scope()
    assert scope is not None
    return scope.lineage.serialize()


class Counts:
    """The counters of this test, by instrument and one attribute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader = InMemoryMetricReader()
        provider = MeterProvider([self.reader])
        monkeypatch.setattr("antipode._diagnostics.telemetry.metrics.get_meter", provider.get_meter)
        telemetry.reset()

    def of(self, instrument: str, **attributes: str) -> int:
        data = self.reader.get_metrics_data()
        if data is None:
            return 0
        wanted = {f"antipode.{name}": value for name, value in attributes.items()}
        return sum(
            int(point.value)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == instrument
            for point in metric.data.data_points
            if isinstance(point, NumberDataPoint) and wanted.items() <= dict(point.attributes or {}).items()
        )
