"""Adaptive throttling: as many requests at once as the service does well, and none that a barrier holds up (spec THR).

    limits = Throttle("orders")
    app = antipode.throttle.asgi(app, limits)          # 503 and Retry-After where a request is refused

    @throttle(Throttle("search", reference_delay=0.2))  # raises Throttled(retry_after=...); sync and async functions
    def search(query): ...

    with limits.permit(timeout=0.5): ...                # by hand; limits.limit, .inflight, .queued, .shedding

The limit is found by trying: it grows where more requests at once are served faster, and shrinks where they are not
(Kanaloa's explore and optimize). A queue takes bursts; where its delay stays above `reference_delay`, requests that
would queue are shed (PIE). A request gives its permit back while a barrier waits, so a lagging replica sheds nobody.
"""

from antipode.throttle._asgi import asgi
from antipode.throttle._limit import ExploringLimit, ExploringOptions, FixedLimit, Limit
from antipode.throttle._pie import Pie, PieOptions
from antipode.throttle._throttle import Throttle, Throttled, throttle

__all__ = [
    "ExploringLimit",
    "ExploringOptions",
    "FixedLimit",
    "Limit",
    "Pie",
    "PieOptions",
    "Throttle",
    "Throttled",
    "asgi",
    "throttle",
]
