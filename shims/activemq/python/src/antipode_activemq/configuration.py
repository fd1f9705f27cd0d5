"""Lines of a broker's activemq.xml, as an administrator types them."""

from __future__ import annotations

from typing import Final

from antipode_activemq.tap import PREFIX, REMEMBERED

LINK: Final = "wan."
"""What the names of queues that cross a link begin with here; any other word does as well."""


def copy(queue: str, topic: str) -> str:
    """What the link brings goes to its queue, and after that to the tap: what the tap shows is in the queue."""
    return (
        f'<compositeQueue name="{LINK}{queue}" forwardOnly="true"><forwardTo>'
        f'<queue physicalName="{queue}"/><topic physicalName="{topic}"/></forwardTo></compositeQueue>'
    )


def sent_on(queue: str) -> str:
    """Where messages are sent: they are put into the queue that crosses the link."""
    return (
        f'<compositeQueue name="{queue}" forwardOnly="true"><forwardTo>'
        f'<queue physicalName="{LINK}{queue}"/></forwardTo></compositeQueue>'
    )


def crossing(queue: str) -> str:
    """The link carries it, whoever subscribes or not."""
    return f'<staticallyIncludedDestinations><queue physicalName="{LINK}{queue}"/></staticallyIncludedDestinations>'


def past(most: int = REMEMBERED) -> str:
    """Taps keep their last messages, in memory."""
    return (
        f'<policyEntry topic="{PREFIX}>"><subscriptionRecoveryPolicy>'
        f'<fixedCountSubscriptionRecoveryPolicy maximumSize="{most}"/>'
        "</subscriptionRecoveryPolicy></policyEntry>"
    )


def exclusion() -> str:
    """No network connector carries taps."""
    return f'<excludedDestinations><topic physicalName="{PREFIX}>"/></excludedDestinations>'


def rights(group: str) -> str:
    """Who reads a tap writes a probe to it as well."""
    return f'<authorizationEntry topic="{PREFIX}>" read="{group}" write="{group}" admin="{group}"/>'
