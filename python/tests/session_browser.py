"""A user of an application with sessions (spec SESS)."""

from __future__ import annotations

from typing import Any

import antipode
import antipode.asgi
import antipode.session
import antipode.wsgi
from antipode import Lineage, WriteId
from antipode._base.seal_keys import Keys
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from werkzeug.test import Client

EPOCH = "8371ab90c2d4e6f1"
KEYS = Keys({"one": b"k" * 32})


def block(number: int) -> WriteId:
    return WriteId.position("user-acl", EPOCH, number)


class Browser:
    """One user of an application, with the cookies that it got: the same over ASGI and WSGI."""

    def __init__(self, kind: str, cookie: antipode.session.Session, *, edge: bool = True) -> None:
        self.seen: list[Lineage] = []
        if kind == "asgi":
            routes = [Route("/{number:int}", self._asgi), Route("/fail/{number:int}", self._asgi_fails)]
            self.app: Any = antipode.asgi.Middleware(Starlette(routes=routes), edge=edge, session=cookie)
        else:
            flask = Flask(__name__)
            flask.add_url_rule("/<int:number>", view_func=self._wsgi)
            flask.add_url_rule("/fail/<int:number>", endpoint="fail", view_func=self._wsgi_fails)
            flask.config["PROPAGATE_EXCEPTIONS"] = True
            self.app = antipode.wsgi.Middleware(flask.wsgi_app, edge=edge, session=cookie)
        self._kind = kind
        self._client = self._new_client()

    def _new_client(self) -> Any:
        return TestClient(self.app, raise_server_exceptions=False) if self._kind == "asgi" else Client(self.app)

    def get(self, path: str, cookie: str | None = None) -> Any:
        """As the browser does it; or with this line of cookies in place of its own."""
        try:
            if cookie is None:
                return self._client.get(path)
            client = self._new_client() if self._kind == "asgi" else Client(self.app, use_cookies=False)
            return client.get(path, headers={"cookie": cookie})
        except ValueError:  # werkzeug's client hands on what the application raised, as a server logs it
            return None

    def write(self, number: int) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        self.seen.append(scope.lineage)
        if number:
            antipode.append(block(number))

    async def _asgi(self, request: Request) -> Response:
        self.write(request.path_params["number"])
        return PlainTextResponse("done", headers=dict(request.query_params))

    async def _asgi_fails(self, request: Request) -> Response:
        self.write(request.path_params["number"])
        raise ValueError("broken")

    def _wsgi(self, number: int) -> Any:
        self.write(number)
        return "done", 200, dict(request.args)

    def _wsgi_fails(self, number: int) -> str:
        self.write(number)
        raise ValueError("broken")
