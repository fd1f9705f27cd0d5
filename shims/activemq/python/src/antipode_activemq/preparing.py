"""What a broker needs before tracked messages can be waited for: `antipode init … --at stomp://…` (spec SHIM-3).

Nothing of it can be done by a client of messages: all are lines of the broker's own configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from antipode.shim.administration import InitRequest, Step

from antipode_activemq import configuration
from antipode_activemq.tap import PREFIX

OPTIONS: Final[Mapping[str, str]] = {
    "queue": "the queue whose messages are to be waited for in the region of this broker",
    "group": "the group of the users who wait (GROUP)",
}


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """The lines of activemq.xml at the broker of the region that waits; nothing without `track=True`."""
    queue = wanted.options.get("queue", "")
    if not queue:
        return []
    topic = url.partition("#")[2] or f"{PREFIX}{queue}"
    inside = "in <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>"
    return [
        Step(
            "activemq.xml",
            configuration.copy(queue, topic),
            f"{inside}: without it nobody sees what has arrived in the region: tracked messages are unproven there",
        ),
        Step(
            "activemq.xml",
            configuration.sent_on(queue),
            f"{inside} of the brokers where messages are sent, which then cross the link under that name",
        ),
        Step(
            "activemq.xml",
            configuration.crossing(queue),
            "in the <networkConnector> from there to here: without it the link carries only what is subscribed to",
        ),
        Step(
            "activemq.xml",
            configuration.past(),
            "in <destinationPolicy><policyMap><policyEntries>: without it a tap shows only what comes while it is "
            "read, and is refused",
        ),
        Step(
            "activemq.xml",
            configuration.exclusion(),
            "in every <networkConnector>, of all brokers: what another broker's tap sends here has not arrived here",
        ),
        Step(
            "activemq.xml",
            configuration.rights(wanted.options.get("group", "GROUP")),
            "in <authorizationPlugin>, where there is one: without these rights a tap cannot be read",
        ),
    ]
