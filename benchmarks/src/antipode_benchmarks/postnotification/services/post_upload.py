"""post-upload: what users call. It stores the post, then has the followers notified (paper figure 2, steps 1 and 3)."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.tracing import trace_id
from antipode_benchmarks.postnotification.traffic import App

AT_ONCE: Final = 8
"""Uploads that call other services at the same time. httpx looks at all of its connections and calls for each call, so
that with hundreds of them a short stall of the machine would never end."""
AT_ONCE_HTTP: Final = 32
"""The same where an upload lasts as long as the follower's barrier does."""


def build(site: Site) -> App:
    """The service."""
    http = site.client()
    places = asyncio.Semaphore(AT_ONCE_HTTP if site.setup.options.notifier == "http" else AT_ONCE)

    async def upload(request: Request) -> Response:
        body = await request.body()
        async with places:
            stored = await http.post(site.url("post-storage-a", "/posts"), content=body)
            stored.raise_for_status()
        post = stored.json()
        await asyncio.sleep(site.setup.options.delay_ms / 1000)
        async with places:
            notification = {"post": post["id"], "user": "alice", "run": site.setup.run}
            notified = await http.post(site.url("notifier", "/notifications"), json=notification)
            notified.raise_for_status()
        return JSONResponse({**post, "trace": trace_id()}, status_code=201)

    return site.app([Route("/upload", upload, methods=["POST"])])
