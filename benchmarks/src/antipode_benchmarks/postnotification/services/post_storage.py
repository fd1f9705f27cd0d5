"""post-storage: writes posts in region A and reads them in region B (paper figure 2, steps 2 and 6)."""

from __future__ import annotations

import time
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.stores import open_posts
from antipode_benchmarks.postnotification.traffic import App

REPLICA_HEADER = "x-replica"
READ_AT_HEADER = "x-read-at-ns"


def build(site: Site) -> App:
    """The service in its region. Times are `CLOCK_MONOTONIC`, which all processes of a machine share."""
    posts = open_posts(site.setup, site.region, site.embedded.posts)

    async def write(request: Request) -> Response:
        body = await request.body()
        post = uuid4().hex
        sent = time.monotonic_ns()
        await posts.write(f"post:{post}", body)
        acknowledged = time.monotonic_ns()
        return JSONResponse(
            {"id": post, "acknowledged_ns": acknowledged, "write_ns": acknowledged - sent}, status_code=201
        )

    async def read(request: Request) -> Response:
        body, replica = await posts.read(f"post:{request.path_params['post']}")
        headers = {REPLICA_HEADER: replica, READ_AT_HEADER: str(time.monotonic_ns())}
        return Response(body or b"", status_code=404 if body is None else 200, headers=headers)

    return site.app(
        [Route("/posts", write, methods=["POST"])]
        if site.region == "a"
        else [Route("/posts/{post}", read, methods=["GET"])]
    )
