"""OpenTelemetry's own SDK, as an application installs it, with every metric held against the table of the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from antipode._diagnostics import telemetry
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, Histogram, InMemoryMetricReader, Sum
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

KINDS = {
    "antipode.barrier.duration": ("histogram", "s"),
    "antipode.barrier.count": ("counter", "{barrier}"),
    "antipode.marks.missing": ("gauge", "{store}"),
    "antipode.wait.duration": ("histogram", "s"),
    "antipode.barrier.waiting": ("up-down counter", "{barrier}"),
    "antipode.replica.lag": ("histogram", "s"),
    "antipode.wait.requests": ("counter", "{request}"),
    "antipode.lineage.size": ("histogram", "By"),
    "antipode.lineage.dropped": ("counter", "{lineage}"),
    "antipode.lineage.incomplete": ("counter", "{lineage}"),
    "antipode.write.lost": ("counter", "{write}"),
    "antipode.write.late": ("counter", "{write}"),
    "antipode.fallback.count": ("counter", "{read}"),
    "antipode.finding.count": ("counter", "{finding}"),
    **{f"antipode.throttle.{name}": ("gauge", "{request}") for name in ("limit", "inflight", "queued", "parked")},
    "antipode.throttle.shedding": ("gauge", "1"),
    "antipode.throttle.requests": ("counter", "{request}"),
    "antipode.throttle.wait.duration": ("histogram", "s"),
}
"""The tables of the specification (OBS-2, THR-11): instrument and unit."""

ATTRIBUTES = {
    "antipode.barrier.duration": {"outcome", "site", "dry_run"},
    "antipode.barrier.count": {"outcome"},
    "antipode.marks.missing": {"store", "reason"},
    "antipode.wait.duration": {"store", "store.kind", "verdict", "reach"},
    "antipode.barrier.waiting": {"store"},
    "antipode.replica.lag": {"store", "region"},
    "antipode.wait.requests": {"store", "purpose"},
    "antipode.lineage.size": {"direction"},
    "antipode.lineage.dropped": {"reason", "direction"},
    "antipode.lineage.incomplete": {"reason", "store"},
    "antipode.write.lost": {"store", "site", "reason"},
    "antipode.write.late": {"store", "site"},
    "antipode.fallback.count": {"outcome"},
    "antipode.finding.count": {"kind", "site"},
    **{f"antipode.throttle.{name}": {"throttle"} for name in ("limit", "inflight", "queued", "parked", "shedding")},
    "antipode.throttle.requests": {"throttle", "outcome"},
    "antipode.throttle.wait.duration": {"throttle", "outcome"},
}


class Point(NamedTuple):
    """One time series: attributes without their prefix, and the value (a histogram's count)."""

    attributes: Mapping[str, Any]
    value: float
    total: float


class Collected:
    """What an SDK's reader and exporter have got."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def everything(self) -> dict[str, list[Point]]:
        """Every instrument that has points, after its kind, unit and attributes were held against the table."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[Point]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                assert scope.scope.name == "antipode"
                for metric in scope.metrics:
                    assert (_kind(metric.data), metric.unit) == KINDS[metric.name], metric.name
                    for point in metric.data.data_points:
                        attributes = dict(point.attributes or {})
                        wanted = {f"antipode.{name}" for name in ATTRIBUTES[metric.name]}
                        assert set(attributes) == wanted, metric.name
                        short = {name.removeprefix("antipode."): value for name, value in attributes.items()}
                        value = getattr(point, "value", None)
                        count = point.count if value is None else value  # type: ignore[union-attr]
                        total = getattr(point, "sum", count)
                        found.setdefault(metric.name, []).append(Point(short, count, total))
        return found

    def points(self, name: str) -> list[Point]:
        return self.everything().get(name, [])

    def counts(self, name: str, *attributes: str) -> dict[Any, float]:
        """A counter's values by these attributes."""
        return {
            tuple(point.attributes[each] for each in attributes)
            if len(attributes) > 1
            else point.attributes[attributes[0]]: point.value
            for point in self.points(name)
        }


def _kind(data: object) -> str:
    if isinstance(data, Histogram):
        return "histogram"
    if isinstance(data, Gauge):
        return "gauge"
    assert isinstance(data, Sum)
    return "counter" if data.is_monotonic else "up-down counter"


@contextmanager
def installed_sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """The application has installed an SDK."""
    collected = Collected()
    meters = MeterProvider([collected.reader], shutdown_on_exit=False)
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(collected.exporter))
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", meters)
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", tracers)
    assert metrics.get_meter_provider() is meters
    telemetry.reset()
    yield collected
    telemetry.reset()
    meters.shutdown()
    tracers.shutdown()
