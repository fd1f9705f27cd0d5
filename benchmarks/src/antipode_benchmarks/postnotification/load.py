"""Sends uploads at a steady rate, open-loop, and gathers what follower-notify did with each notification."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import urllib3
from opentelemetry import baggage
from opentelemetry.trace import SpanKind

from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.options import SERVICES, Options
from antipode_benchmarks.postnotification.services.follower_notify import Delivery
from antipode_benchmarks.postnotification.services.sessions import CALL_TIMEOUT_S
from antipode_benchmarks.postnotification.tracing import REQUEST, W3C, Tracing, trace_id

USERS = 64
"""Uploads that can be under way at once, a thread each."""
POLL_S = 0.25
"""How often follower-notify is asked what it has handled."""
STILL_S = 30.0
"""With no upload answered and no notification handled for so long, the run has failed."""


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload as its user saw it."""

    request: str
    post: str
    digest: str
    trace: str
    acknowledged_ns: int
    """When post-storage had the store's acknowledgement, `CLOCK_MONOTONIC`."""
    write_ns: int
    latency_ns: int
    answered_ns: int


@dataclass(slots=True)
class Batch:
    """What came of a number of uploads."""

    uploads: list[Upload] = field(default_factory=list)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    duplicates: int = 0
    started_ns: int = 0

    def violates(self, upload: Upload) -> bool:
        """Whether the follower did not get this very post: not found, or another content."""
        return self.deliveries[upload.post].digest != upload.digest

    @property
    def violations(self) -> list[Upload]:
        """The uploads whose followers read something else, or nothing."""
        return [upload for upload in self.uploads if self.violates(upload)]


Progress = Callable[[int, Batch], None]
"""Told the uploads that are answered and the batch, several times a second."""


class Application(Protocol):
    """The services that are loaded."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where each answers."""

    def check(self) -> None:
        """Raises RunFailed where a process of theirs has ended."""


class Load:
    """One user of the application and its followers, for one phase."""

    def __init__(self, options: Options, application: Application, poll: float = POLL_S) -> None:
        self._options = options
        self._application = application
        self._poll_s = poll
        self._tracing = Tracing("user")
        self._taken = 0
        self._posts: set[str] = set()
        # As little work as can be: the load must not take the processors from what it measures.
        self._http = urllib3.PoolManager(maxsize=USERS, timeout=CALL_TIMEOUT_S, retries=False)
        self._threads = ThreadPoolExecutor(USERS, thread_name_prefix="user")

    def close(self) -> None:
        """Gives up what is still under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._http.clear()

    async def _call(self, method: str, service: str, path: str, **arguments: Any) -> urllib3.BaseHTTPResponse:
        """Calls a service; raises RunFailed where it cannot be reached."""
        call = partial(self._http.request, method, self._application.addresses[service] + path, **arguments)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except urllib3.exceptions.HTTPError as error:
            raise RunFailed(f"{service} does not answer: {error!r}") from error

    async def traffic(self) -> dict[str, dict[str, int]]:
        """What each service counted at its door."""
        return {service: (await self._call("GET", service, "/-/traffic")).json() for service in SERVICES}

    async def run(self, name: str, count: int, progress: Progress) -> Batch:
        """Sends `count` uploads, and returns when each was answered and its notification handled.

        Raises RunFailed for any error in any service, and for notifications that do not come.
        """
        batch = Batch(started_ns=time.monotonic_ns())
        sending = asyncio.create_task(self._send(name, count, batch))
        try:
            await self._gather(count, batch, sending, progress)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return batch

    async def _send(self, name: str, count: int, batch: Batch) -> None:
        start = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                await asyncio.sleep(start + number / self._options.rate - time.monotonic())
                tasks.create_task(self._upload(f"{name}-{number}", batch))

    async def _upload(self, request: str, batch: Batch) -> None:
        body = os.urandom(self._options.size)
        with self._tracing.tracer.start_as_current_span("upload", kind=SpanKind.CLIENT):
            headers: dict[str, str] = {}
            W3C.inject(headers, baggage.set_baggage(REQUEST, request))
            sent = time.monotonic_ns()
            answer = await self._call("POST", "post-upload", "/upload", body=body, headers=headers)
            answered = time.monotonic_ns()
            if answer.status != 201:
                raise RunFailed(f"an upload was answered {answer.status}: {answer.data[:500]!r}")
            post = answer.json()
            if post["trace"] != trace_id():
                raise RunFailed("post-upload was not in the trace of its user")
            batch.uploads.append(
                Upload(
                    request,
                    post["id"],
                    hashlib.sha256(body).hexdigest(),
                    post["trace"],
                    post["acknowledged_ns"],
                    post["write_ns"],
                    answered - sent,
                    answered,
                )
            )

    async def _gather(self, count: int, batch: Batch, sending: asyncio.Task[None], progress: Progress) -> None:
        """Asks follower-notify for what it has handled until everything is there."""
        last, moved_at = (0, 0), time.monotonic()
        while len(batch.uploads) < count or len(batch.deliveries) < count:
            if sending.done():
                await asyncio.sleep(self._poll_s)
            else:
                await asyncio.wait({sending}, timeout=self._poll_s)
            self._application.check()
            if sending.done() and (error := sending.exception()) is not None:
                raise first(error)
            await self._poll(batch)
            progress(len(batch.uploads), batch)
            now = (len(batch.uploads), len(batch.deliveries))
            if now != last:
                last, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STILL_S:
                raise RunFailed(
                    f"{count - now[0]} uploads were not answered and {count - now[1]} notifications not handled "
                    f"within {STILL_S:.0f} s"
                )
        _check(batch)

    async def _poll(self, batch: Batch) -> None:
        answer = await self._call("GET", "follower-notify", f"/-/deliveries?after={self._taken}")
        if answer.status != 200:
            raise RunFailed(f"follower-notify answered {answer.status}: {answer.data[:500]!r}")
        found: dict[str, Any] = answer.json()
        self._taken += len(found["deliveries"])
        for values in found["deliveries"]:
            delivery = Delivery(**values)
            if delivery.post in self._posts:  # brokers may repeat a message; the first one counts
                batch.duplicates += 1
            else:
                self._posts.add(delivery.post)
                batch.deliveries[delivery.post] = delivery
        if found["failure"]:
            raise RunFailed(f"follower-notify failed: {found['failure']}")


def first(error: BaseException) -> BaseException:
    """The first error of a group, for its message."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _check(batch: Batch) -> None:
    """Every notification belongs to an upload, and OpenTelemetry's context arrived with it."""
    for upload in batch.uploads:
        delivery = batch.deliveries.get(upload.post)
        if delivery is None:
            raise RunFailed("a notification came for a post that nobody has uploaded")
        if delivery.trace != upload.trace or delivery.baggage != upload.request:
            raise RunFailed(
                f"the trace or the baggage of upload {upload.request} did not arrive in follower-notify: "
                f"{delivery.trace} (want {upload.trace}), {delivery.baggage!r}"
            )
