"""A service that owns a store, in a process of its own: python delegated_owner.py asgi|wsgi [edge] [silent].

It prints its port. Its paths: /write/KEY answers with the lineage of a write; /freeze, /heal and /promote act on the
store; /asked says how many waits were asked for.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import antipode
import antipode.asgi
import antipode.memory
import antipode.wsgi
from antipode._facade import answering
from web import asgi_server, wsgi_server

STORE = antipode.memory.Store("posts", regions=["a", "b"])
STORE.register("b")
asked = 0
primary = "a"


def written(key: str) -> str:
    with antipode.scope() as scope:
        STORE.client(primary).set(key, "v")
        return scope.lineage.serialize()


def promote() -> None:
    global primary
    STORE.promote("b", lose=1)
    primary = "b"


ACTIONS: dict[str, Callable[[], object]] = {
    "freeze": lambda: STORE.freeze("b"),
    "heal": lambda: STORE.heal("b"),
    "promote": promote,
    "asked": lambda: asked,
}


def answer(path: str) -> bytes | None:
    _, action, *rest = path.split("/")
    if action == "write":
        return written(rest[0]).encode()
    return str(ACTIONS[action]()).encode() if action in ACTIONS else None


def wsgi_application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    body = answer(environ["PATH_INFO"])
    start_response("404 Not Found" if body is None else "200 OK", [])
    return [body or b""]


async def asgi_application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = await asyncio.to_thread(answer, scope["path"])
    await send({"type": "http.response.start", "status": 404 if body is None else 200, "headers": []})
    await send({"type": "http.response.body", "body": body or b""})


def count() -> None:
    plain = answering.Question.__init__

    def counted(self: Any, *arguments: Any, **named: Any) -> None:
        global asked
        asked += 1
        plain(self, *arguments, **named)

    answering.Question.__init__ = counted  # type: ignore[method-assign]


def main(kind: str, *words: str) -> None:
    count()
    options: Any = {"edge": "edge" in words, "answers_waits": "silent" not in words}
    if kind == "asgi":
        serving = asgi_server(antipode.asgi.Middleware(asgi_application, **options))
    else:
        serving = wsgi_server(antipode.wsgi.Middleware(wsgi_application, **options))
    with serving as port:
        print(port, flush=True)
        sys.stdin.read()  # until the test has gone


if __name__ == "__main__":
    main(*sys.argv[1:])
