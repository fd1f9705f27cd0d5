"""Beside OpenTelemetry's own instrumentation of pika, in either order of installing (PROP-24)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import antipode
import antipode_rabbitmq
import pytest
from antipode.messages import HEADER
from opentelemetry import trace
from opentelemetry.instrumentation.pika import PikaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rabbit_regions import Region, wait_for


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(spans: InMemorySpanExporter) -> Iterator[TracerProvider]:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(spans))
    yield made
    made.shutdown()


@pytest.mark.parametrize("order", ["instrumented, then wrapped", "wrapped, then instrumented"])
def test_both_do_their_work(a: Region, order: str, spans: InMemorySpanExporter, provider: TracerProvider) -> None:
    queue = a.queue()
    channel = a.channel()
    if order.startswith("instrumented"):
        PikaInstrumentor.instrument_channel(channel, tracer_provider=provider)
        channel = antipode_rabbitmq.wrap(channel, store="notifications")
    else:
        channel = antipode_rabbitmq.wrap(channel, store="notifications")
        PikaInstrumentor.instrument_channel(channel, tracer_provider=provider)
    seen: list[Any] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        traced = trace.get_current_span().get_span_context().trace_id
        seen.append((antipode.serialize(), received.headers, traced))
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume(queue, callback)
    with antipode.scope():
        antipode.append(antipode.WriteId.position("blog", "0-1", 42))
        channel.basic_publish("", queue, b"body")

    def consumed() -> bool:
        channel.connection.process_data_events(0.01)
        return bool(seen)

    wait_for("the message", consumed)
    ((text, headers, traced),) = seen
    assert text == headers[HEADER] == "1~blog..0-1.42"
    assert headers["traceparent"].split("-")[1] == f"{traced:032x}", "one trace goes through the queue"
    assert len(spans.get_finished_spans()) == 2
    channel.stop_consuming()
    assert a.count(queue) == 0
