"""OpenTelemetry as an application uses it: a provider a service, its own instrumentations, W3C headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
from opentelemetry import baggage, trace
from opentelemetry import context as otel
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

W3C: Final = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
"""traceparent and baggage; for messages, which no instrumentation of these services covers."""
REQUEST: Final = "benchmark-request"
"""A baggage entry of the application's own, which has to arrive beside the lineage."""


class Tracing:
    """The spans of one service. None is exported: the benchmark needs the context that travels."""

    def __init__(self, service: str) -> None:
        self.provider = TracerProvider(resource=Resource({"service.name": service}))
        self.tracer = self.provider.get_tracer(service)

    def serve(self, app: Any) -> Any:
        """OpenTelemetry's own instrumentation round an ASGI application."""
        return OpenTelemetryMiddleware(app, tracer_provider=self.provider, exclude_spans=["receive", "send"])

    def instrument(self, client: httpx.AsyncClient) -> httpx.AsyncClient:
        """OpenTelemetry's own instrumentation of an HTTP client."""
        HTTPXClientInstrumentor.instrument_client(client, tracer_provider=self.provider)
        return client

    @contextmanager
    def sending(self) -> Iterator[dict[str, str]]:
        """The span of a message that is sent, and the headers that it shall have."""
        with self.tracer.start_as_current_span("notifications publish", kind=trace.SpanKind.PRODUCER):
            headers: dict[str, str] = {}
            W3C.inject(headers)
            yield headers

    @contextmanager
    def receiving(self, headers: Mapping[str, Any]) -> Iterator[None]:
        """Continues the trace and the baggage of a message that came in."""
        texts = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
        token = otel.attach(W3C.extract(texts, otel.get_current()))
        try:
            with self.tracer.start_as_current_span("notifications process", kind=trace.SpanKind.CONSUMER):
                yield
        finally:
            otel.detach(token)


def trace_id() -> str:
    """The trace that this code runs in."""
    return trace.format_trace_id(trace.get_current_span().get_span_context().trace_id)


def request_baggage() -> str:
    """The application's own baggage entry; empty where it got lost."""
    return str(baggage.get_baggage(REQUEST) or "")
