"""A container of services: `python -m antipode_benchmarks.postnotification.contained SERVICE…`.

The setup is the text of the variable SETUP, and not lines of standard input; each service listens on port 8080 (PORT:
the first one's), on every address. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, where that is set.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from importlib import import_module

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from antipode_benchmarks.postnotification.host import START_TIMEOUT_S, embed, serve
from antipode_benchmarks.postnotification.options import Setup
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.tracing import Tracing

PORT = 8080


def bind(port: int) -> socket.socket:
    """A listening socket that other containers reach."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((os.environ.get("LISTEN", "0.0.0.0"), port))
    listener.listen(512)
    return listener


def export(tracing: Tracing) -> None:
    """Sends the service's spans to where OpenTelemetry's own variables say."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")  # in the image alone
    tracing.provider.add_span_processor(BatchSpanProcessor(exporter.OTLPSpanExporter()))


def main(services: list[str]) -> None:
    """Serves until the container is stopped."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    setup = Setup.from_json(os.environ["SETUP"])
    embedded = embed(setup.options)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    servers = []
    for place, name in enumerate(services):
        site = Site(name, setup, embedded)
        export(site.tracing)
        servers.append(serve(site, bind(int(os.environ.get("PORT", PORT)) + place)))
    deadline = time.monotonic() + START_TIMEOUT_S
    while not all(server.started for server in servers):
        if time.monotonic() > deadline:
            raise TimeoutError("the services' servers did not start")
        time.sleep(0.005)
    stopped.wait()
    for server in servers:
        server.should_exit = True


if __name__ == "__main__":
    main(sys.argv[1:])
