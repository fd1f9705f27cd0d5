"""post-upload: what users call. It stores the post, then has the followers notified (paper figure 2, steps 1 and 3)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.tracing import trace_id
from antipode_benchmarks.postnotification.traffic import App


def build(site: Site) -> App:
    """The service."""
    http = site.client()

    async def upload(request: Request) -> Response:
        stored = await http.post(site.url("post-storage-a", "/posts"), content=await request.body())
        stored.raise_for_status()
        post = stored.json()
        notified = await http.post(site.url("notifier", "/notifications"), json={"post": post["id"], "user": "alice"})
        notified.raise_for_status()
        return JSONResponse({**post, "trace": trace_id()}, status_code=201)

    return site.app([Route("/upload", upload, methods=["POST"])])
