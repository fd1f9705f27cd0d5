"""notifier: publishes a notification in region A (paper figure 2, step 3). Its handler is blocking code."""

from __future__ import annotations

import threading

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.queues import Notifications, open_notifications
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.traffic import App


class Notifier:
    """The service's state: what it publishes in, opened once for each place where it is told to publish."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._opened: dict[tuple[str | None, ...], Notifications] = {}

    def publish(self, body: bytes) -> None:
        """Publishes where the setup says now."""
        with self._site.tracing.sending() as headers:
            self._queue().publish(headers, body)

    def _queue(self) -> Notifications:
        setup = self._site.setup
        place = (setup.options.notifier, setup.exchange, setup.addresses.get("follower-notify"))
        with self._lock:
            if place not in self._opened:
                self._opened[place] = open_notifications(setup, self._site.embedded.queue)
            return self._opened[place]


def build(site: Site) -> App:
    """The service."""
    notifier = Notifier(site)

    async def notify(request: Request) -> Response:
        await run_in_threadpool(notifier.publish, await request.body())
        return JSONResponse({}, status_code=202)

    return site.app([Route("/notifications", notify, methods=["POST"])])
