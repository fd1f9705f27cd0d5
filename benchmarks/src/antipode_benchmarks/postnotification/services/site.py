"""What every service is built from: its setup, its tracing, and its door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import antipode
import antipode.asgi
import antipode.httpx
import antipode.memory
import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antipode_benchmarks.postnotification.options import Setup
from antipode_benchmarks.postnotification.queues.memory import LaggedQueue
from antipode_benchmarks.postnotification.services.sessions import CALL_TIMEOUT_S
from antipode_benchmarks.postnotification.tracing import Tracing
from antipode_benchmarks.postnotification.traffic import App, Door, Traffic


@dataclass(slots=True)
class Embedded:
    """The stores that live in this process, if any."""

    posts: antipode.memory.Store | None = None
    queue: LaggedQueue | None = None


@dataclass(slots=True)
class Site:
    """One service in one process."""

    name: str
    setup: Setup
    """What is in force; `routed` may replace it between two requests."""
    embedded: Embedded
    tracing: Tracing = field(init=False)
    traffic: Traffic = field(default_factory=Traffic)

    def __post_init__(self) -> None:
        self.tracing = Tracing(self.name)

    @property
    def region(self) -> str:
        """`a` or `b`."""
        return "b" if self.name in {"follower-notify", "post-storage-b"} else "a"

    def app(self, routes: Sequence[Route], control: Sequence[Route] = ()) -> App:
        """The service's application behind its middlewares: Antipode's is one line."""
        app: App = Starlette(routes=list(routes))
        if self.setup.antipode:
            app = antipode.asgi.Middleware(app)
        app = self.tracing.serve(app)
        return Door(app, Starlette(routes=[Route("/-/traffic", self._show_traffic), *control]), self.traffic)

    def client(self) -> httpx.AsyncClient:
        """An HTTP client for calls to other services: Antipode's wrap is one line."""
        client = self.tracing.instrument(httpx.AsyncClient(timeout=CALL_TIMEOUT_S))
        return antipode.httpx.wrap(client) if self.setup.antipode else client

    def url(self, service: str, path: str) -> str:
        """Where another service answers."""
        return self.setup.addresses[service] + path

    async def _show_traffic(self, _: Request) -> Response:
        shown: dict[str, Any] = asdict(self.traffic)
        return JSONResponse(shown)
