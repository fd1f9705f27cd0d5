"""Lines of a broker's activemq.xml, as an administrator types them."""

from __future__ import annotations

from antipode_activemq.tap import PREFIX, REMEMBERED


def copy(queue: str, topic: str) -> str:
    """Copies what arrives in a queue to its tap."""
    return (
        f'<compositeQueue name="{queue}" forwardOnly="false">'
        f'<forwardTo><topic physicalName="{topic}"/></forwardTo></compositeQueue>'
    )


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
