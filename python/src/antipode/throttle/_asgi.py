"""ASGI: a permit for each HTTP request; 503 with `Retry-After` where it is refused (spec THR-1)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from antipode.throttle._throttle import Throttle, Throttled

_Scope = MutableMapping[str, Any]
_App = Callable[[_Scope, Any, Any], Awaitable[None]]
_BODY: Final = b"Service Unavailable"


def asgi(app: _App, limits: Throttle) -> _App:
    """Return the application behind a throttle. `protect` of the throttle gets the ASGI scope of each request.

    Put it around `antipode.asgi.Middleware`: then a refused request costs nothing. WebSockets pass: they last.
    """

    async def throttled(scope: _Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        try:
            async with limits.permit_async(request=scope):
                await app(scope, receive, send)
        except Throttled as refusal:
            if refusal.throttle is not limits:
                raise  # another throttle's, inside the application
            await _refuse(send, refusal)

    return throttled


async def _refuse(send: Any, refusal: Throttled) -> None:
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(_BODY)).encode()),
        (b"retry-after", str(math.ceil(refusal.retry_after)).encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})
