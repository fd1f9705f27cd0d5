"""A service of its own process that traces by a Jaeger client or by OpenTelemetry: for test_jaeger.py.

    python jaeger_service.py KIND

KIND is `jaeger` or `opentelemetry` (Jaeger's format) or `opentelemetry-both` (W3C's, too), all with Antipode;
`jaeger-plain`, without; or `jaeger-outside`, whose tracer reads the request before the middleware does. A request has a
`plan`, of which the first step is for this service (`words`: baggage of the application's own; `write`: a lineage to
append), and the others for those that are called next, one by the other (`url`). The answer says what came in, what the
span carried, and the lineage in the end. It prints its port, and ends with its stdin.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import antipode
import antipode.requests
import antipode.wsgi
import requests
from flask import Flask, request
from jaeger_client.reporter import InMemoryReporter
from jaeger_client.sampler import ConstSampler
from jaeger_client.tracer import Tracer
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.jaeger import JaegerPropagator
from opentelemetry.sdk.trace import TracerProvider
from opentracing import Format
from werkzeug.serving import make_server

Span = tuple[str, dict[str, str], dict[str, str]]
"""The id of its trace in hex, its baggage, and the headers of a call in it."""


class OfJaeger:
    """As services on Jaeger's clients do it: the tracer reads the request's headers, and writes those of each call."""

    def __init__(self) -> None:
        self._tracer = Tracer("service", InMemoryReporter(), ConstSampler(True))

    @contextmanager
    def span(self, headers: dict[str, str], words: dict[str, str]) -> Iterator[Span]:
        came = self._tracer.extract(Format.HTTP_HEADERS, headers)
        with self._tracer.start_active_span("handle", child_of=came) as active:
            for key, value in words.items():
                active.span.set_baggage_item(key, value)
            sent: dict[str, str] = {}
            self._tracer.inject(active.span.context, Format.HTTP_HEADERS, sent)
            yield f"{active.span.context.trace_id:x}", dict(active.span.context.baggage), sent


class OfOpenTelemetry:
    """As instrumentations of OpenTelemetry do it, by the global propagator, which here speaks Jaeger's format."""

    def __init__(self, *also: Any) -> None:
        trace.set_tracer_provider(TracerProvider())
        propagate.set_global_textmap(CompositePropagator([JaegerPropagator(), *also]))

    @contextmanager
    def span(self, headers: dict[str, str], words: dict[str, str]) -> Iterator[Span]:
        context = propagate.extract({name.lower(): value for name, value in headers.items()})
        with trace.get_tracer(__name__).start_as_current_span("handle", context) as span:
            context = trace.set_span_in_context(span, context)
            for key, value in words.items():
                context = baggage.set_baggage(key, value, context)
            token = otel.attach(context)
            try:
                sent: dict[str, str] = {}
                propagate.inject(sent)
                held = {key: str(value) for key, value in baggage.get_all().items()}
                yield f"{span.get_span_context().trace_id:x}", held, sent
            finally:
                otel.detach(token)


CARRIERS = ("baggage", "antipode-lineage", "uberctx-antipode")


def application(kind: str) -> Any:
    """The service: it writes, calls the next one, and says what it has seen."""
    carries = kind != "jaeger-plain"
    tracing: OfJaeger | OfOpenTelemetry = OfOpenTelemetry() if kind == "opentelemetry" else OfJaeger()
    if kind == "opentelemetry-both":
        tracing = OfOpenTelemetry(W3CBaggagePropagator())
    elif kind != "opentelemetry":
        propagate.set_global_textmap(CompositePropagator([]))  # OpenTelemetry propagates nothing here
    session = antipode.requests.wrap(requests.Session()) if carries else requests.Session()
    app = Flask("service")

    @app.route("/", methods=["GET"])
    def handle() -> dict[str, Any]:
        scope = antipode.current_scope()
        came = None if scope is None else scope.lineage.serialize()
        as_it_came: dict[str, str] = request.environ["as it came"]
        headers = as_it_came if kind == "jaeger-outside" else dict(request.headers)
        step, *rest = json.loads(request.args["plan"])
        following = None
        with tracing.span(headers, step.get("words", {})) as (trace_id, held, sent):
            if scope is not None:
                scope.append(*antipode.Lineage.deserialize(step.get("write", "1")))
            if rest:
                plan = {"plan": json.dumps(rest)}
                following = session.get(rest[0]["url"], params=plan, headers=sent, timeout=60).json()
        return {
            "came": came,
            "trace": trace_id,
            "baggage": held,
            "raw": {name: as_it_came[name] for name in CARRIERS if name in as_it_came},
            "next": following,
            "lineage": None if scope is None else scope.lineage.serialize(),
        }

    inner = antipode.wsgi.Middleware(app.wsgi_app) if carries else app.wsgi_app

    def outermost(environ: dict[str, Any], start_response: Any) -> Any:
        environ["as it came"] = {
            name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")
        }
        return inner(environ, start_response)

    app.wsgi_app = outermost  # type: ignore[method-assign]
    return app


def main(kind: str) -> None:
    server = make_server("127.0.0.1", 0, application(kind), threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
