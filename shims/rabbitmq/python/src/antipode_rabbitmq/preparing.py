"""What a broker needs before tracked messages can be waited for: `antipode init amqp://…` (spec SHIM-3)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import pika
from antipode.shim.administration import InitRequest, Step

from antipode_rabbitmq.tap import Tap, declare_tap

OPTIONS: Final[Mapping[str, str]] = {
    "exchange": "declare the tap beside this exchange (the tap: the URL's part behind #, by default EXCHANGE.tap)",
    "routing_key": "what of the exchange the tap gets (#: everything)",
}
_TIMEOUT_S: Final = 5.0
_NAMELESS: Final = "USER"


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """A tap at the broker of the region that waits, and the right to read it; nothing without `track=True`."""
    broker, _, queue = url.partition("#")
    exchange = wanted.options.get("exchange", "")
    if not queue and not exchange:
        return []
    tap = Tap.of(url if queue else f"{broker}#{exchange}.tap")
    vhost = tap.parameters.virtual_host
    steps = []
    if exchange:
        key = wanted.options.get("routing_key", "#")
        steps.append(
            Step(
                "python",
                f"antipode_rabbitmq.declare_tap(channel, {exchange!r}, {tap.queue!r}, routing_key={key!r})",
                "without a tap nobody sees what has arrived in the region, and tracked messages are unproven there",
                partial(_declare, broker, exchange, tap.queue, key),
            )
        )
    user = wanted.user or _NAMELESS
    # It replaces the user's rights in the virtual host, so that nobody but a person may run it.
    steps.append(
        Step(
            "rabbitmqctl",
            shlex.join(["set_permissions", "-p", vhost, user, "^$", "^$", f"^{re.escape(tap.queue)}$"]),
            "the right to read the tap. It REPLACES what the user may do in this virtual host: where that is more "
            "already, join the last pattern to its own by |",
        )
    )
    return steps


def _declare(url: str, exchange: str, queue: str, routing_key: str) -> str:
    parameters = pika.URLParameters(url)
    parameters.connection_attempts = 1
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = _TIMEOUT_S
    with closing(pika.BlockingConnection(parameters)) as connection:
        declare_tap(connection.channel(), exchange, queue, routing_key=routing_key)
    return "declared"
