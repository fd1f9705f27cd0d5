"""follower-notify: takes a notification in region B and fetches its post (paper figure 2, steps 4 and 5).

With Antipode it calls `barrier()` before it fetches the post: figure 4's one line. It has no access to the posts'
store but through post-storage, another process.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import antipode
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.queues import open_incoming
from antipode_benchmarks.postnotification.services.post_storage import READ_AT_HEADER, REPLICA_HEADER
from antipode_benchmarks.postnotification.services.sessions import CALL_TIMEOUT_S, Sessions
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.stores import register_posts
from antipode_benchmarks.postnotification.tracing import request_baggage, trace_id
from antipode_benchmarks.postnotification.traffic import OCTETS, App, message_size


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification as it was handled; times are `CLOCK_MONOTONIC` in ns."""

    post: str
    received_ns: int
    ready_ns: int
    """When the post could be asked for: the barrier had returned (without one: the message had come)."""
    done_ns: int
    read_at_ns: int
    """When the store's client in post-storage had returned, a wait on read included."""
    digest: str | None
    """SHA-256 of the post that was read; None where it was not found."""
    replica: str
    complete: bool
    """Whether the barrier says that nothing was left unjudged; true without one."""
    trace: str
    baggage: str
    message_bytes: int
    message_lineage_bytes: int


class Follower:
    """The service's state."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions = Sessions(site.setup)
        self._deliveries: list[Delivery] = []
        self._failure = ""
        RequestsInstrumentor().instrument(tracer_provider=site.tracing.provider)
        if site.setup.barrier_in_follower:
            register_posts(site.setup, site.embedded.posts)
        self._queue = open_incoming(site.setup, site.embedded.queue)

    def start(self) -> None:
        """Starts to take messages."""
        self._queue.consume(self._handle, self._site.setup.options.consumers, self._failed)

    def _handle(self, headers: Mapping[str, Any], body: bytes) -> None:
        with self._site.tracing.receiving(headers):
            self._deliver(body, message_size(headers))

    def _deliver(self, body: bytes, octets: tuple[int, int]) -> None:
        received = time.monotonic_ns()
        told = json.loads(body)
        if told.get("run", self._site.setup.run) != self._site.setup.run:  # Java and C++ name none
            return  # brokers repeat messages; what a run before has left is none of this one's
        complete = True
        if self._site.setup.barrier_in_follower:
            complete = antipode.barrier(timeout=self._site.setup.options.timeout).complete
        ready = time.monotonic_ns()
        post = told["post"]
        url = self._site.url("post-storage-b", f"/posts/{post}")
        found = self._sessions.get().get(url, timeout=CALL_TIMEOUT_S)
        done = time.monotonic_ns()
        if found.status_code != 404:
            found.raise_for_status()
        self._deliveries.append(
            Delivery(
                post,
                received,
                ready,
                done,
                int(found.headers[READ_AT_HEADER]),
                hashlib.sha256(found.content).hexdigest() if found.status_code == 200 else None,
                found.headers[REPLICA_HEADER],
                complete,
                trace_id(),
                request_baggage(),
                *octets,
            )
        )

    async def notified(self, request: Request) -> Response:
        """A notification that comes as a request; its middlewares have opened its scope and continued its trace."""
        body = await request.body()
        try:
            await run_in_threadpool(self._deliver, body, request.scope[OCTETS])
        except Exception as error:
            self._failed(error)
            raise
        return JSONResponse({}, status_code=202)

    def _failed(self, error: BaseException) -> None:
        """A consumer has ended, or a request could not be handled: the run is to fail."""
        traceback.print_exception(error)
        self._failure = self._failure or f"{type(error).__name__}: {error}"

    async def show(self, request: Request) -> Response:
        """What was delivered beyond the first `after`, and whether a consumer has failed."""
        after = int(request.query_params.get("after", "0"))
        shown = [asdict(delivery) for delivery in self._deliveries[after:]]
        return JSONResponse({"deliveries": shown, "failure": self._failure})


def build(site: Site) -> App:
    """The service; it takes messages from now on."""
    follower = Follower(site)
    follower.start()
    return site.app(
        [Route("/notifications", follower.notified, methods=["POST"])], control=[Route("/-/deliveries", follower.show)]
    )
