"""notifier: publishes a notification in region A (paper figure 2, step 3). Its handler is blocking code."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.queues import open_notifications
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.traffic import App


def build(site: Site) -> App:
    """The service."""
    queue = open_notifications(site.setup, site.embedded.queue)

    def publish(body: bytes) -> None:
        with site.tracing.sending() as headers:
            queue.publish(headers, body)

    async def notify(request: Request) -> Response:
        await run_in_threadpool(publish, await request.body())
        return JSONResponse({}, status_code=202)

    return site.app([Route("/notifications", notify, methods=["POST"])])
