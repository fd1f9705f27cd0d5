"""Antipode's RabbitMQ shim: a pika channel that carries the lineage with each message (DESIGN 7, spec PROP, SHIM).

    channel = antipode_rabbitmq.wrap(connection.channel(), store="notifications")

is still a pika channel. What it publishes carries the current scope's lineage in the header `antipode-lineage`; what
it consumes runs in a scope of its own, filled from that header, and may go back to the queue by
`barrier(on_timeout="redeliver")`.
"""

from antipode.shim import skip_packages

from antipode_rabbitmq.consuming import scope_of
from antipode_rabbitmq.marks import MARK_HEADER
from antipode_rabbitmq.shim import RabbitMQShim
from antipode_rabbitmq.tap import Tap, declare_tap
from antipode_rabbitmq.wrapping import register, wrap

skip_packages("antipode_rabbitmq", "pika")

__version__ = "0.1.0"
__all__ = ["MARK_HEADER", "RabbitMQShim", "Tap", "declare_tap", "register", "scope_of", "wrap"]
