"""worker: does what a plan says, step by step, on several stores of Redis (benchmarks/services.md)."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opentelemetry.instrumentation.requests import RequestsInstrumentor
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.queues.rabbitmq import RabbitNotifications
from antipode_benchmarks.postnotification.services.sessions import CALL_TIMEOUT_S, Sessions
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.services.worker_clients import clients_of
from antipode_benchmarks.postnotification.traffic import App

Visit = Mapping[str, Any]
"""A plan of one worker: `visit`, its name, and `steps`."""


class Worker:
    """The service's state."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions = Sessions(site.setup)
        self._clients = clients_of(site.setup)
        self._visits: list[dict[str, Any]] = []
        self._failure = ""
        self._lock = threading.Lock()
        self._queues: dict[str, RabbitNotifications] = {}
        RequestsInstrumentor().instrument(tracer_provider=site.tracing.provider)

    def start(self) -> None:
        """Starts to take messages."""
        setup = self._site.setup
        RabbitNotifications(setup).consume(self._message, setup.options.consumers, self._failed)

    def _message(self, headers: Mapping[str, Any], body: bytes) -> None:
        with self._site.tracing.receiving(headers):
            self._serve(body)

    async def visited(self, request: Request) -> Response:
        """A visit that comes as a request; its middlewares have opened its scope."""
        body = await request.body()
        try:
            await run_in_threadpool(self._serve, body)
        except Exception as error:
            self._failed(error)
            raise
        return JSONResponse({})

    def _serve(self, body: bytes) -> None:
        visit: Visit = json.loads(body)
        results = [getattr(self, f"_{step['do']}")(step) for step in visit["steps"]]
        with self._lock:
            self._visits.append({"visit": visit["visit"], "results": results})

    def _write(self, step: Mapping[str, str]) -> dict[str, Any]:
        sent = time.monotonic_ns()
        self._clients.set(step["store"], step["server"], step["key"], step["value"])
        return {"sent_ns": sent}

    def _read(self, step: Mapping[str, str]) -> dict[str, Any]:
        sent = time.monotonic_ns()
        found = self._clients.get(step["store"], step["key"])
        return {"value": None if found is None else found.decode(), "sent_ns": sent}

    def _barrier(self, step: Mapping[str, Any]) -> dict[str, Any]:
        policies = {"on_timeout": "proceed", "on_unproven": "proceed"} if "timeout" in step else {}
        result = self._clients.barrier(step.get("timeout", self._site.setup.options.timeout), **policies)
        return {"complete": result.complete, "satisfied": result.satisfied}

    def _call(self, step: Mapping[str, Any]) -> dict[str, Any]:
        url = self._site.url(step["to"], "/visits")
        self._sessions.get().post(url, json=step["visit"], timeout=CALL_TIMEOUT_S).raise_for_status()
        return {}

    def _send(self, step: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            queue = self._queues.setdefault(
                step["to"], RabbitNotifications(replace(self._site.setup, exchange=step["to"]))
            )
        with self._site.tracing.sending() as headers:
            queue.publish(headers, json.dumps(step["visit"]).encode())
        return {}

    def _failed(self, error: BaseException) -> None:
        traceback.print_exception(error)
        self._failure = self._failure or f"{type(error).__name__}: {error}"

    async def show(self, request: Request) -> Response:
        """The visits that are over, beyond the first `after`, and whether one has failed."""
        after = int(request.query_params.get("after", "0"))
        return JSONResponse({"visits": self._visits[after:], "failure": self._failure})


def build(site: Site) -> App:
    """The service; it takes messages from now on."""
    worker = Worker(site)
    worker.start()
    return site.app([Route("/visits", worker.visited, methods=["POST"])], control=[Route("/-/visits", worker.show)])
