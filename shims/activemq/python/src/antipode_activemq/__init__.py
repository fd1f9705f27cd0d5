"""Antipode's ActiveMQ shim: a stomp.py connection that carries the lineage with each message (spec PROP, SHIM).

    connection = antipode_activemq.wrap(stomp.Connection12([("broker", 61613)]), store="notifications")

is still a stomp.py connection. What it sends carries the current scope's lineage in the header `antipode_lineage`; its
listeners' `on_message` runs in a scope of the message's own, filled from that header, and the message may go back to
its queue by `barrier(on_timeout="redeliver")`.
"""

from antipode.shim import skip_packages

from antipode_activemq.listening import scope_of
from antipode_activemq.marks import MARK_HEADER
from antipode_activemq.shim import ActiveMQShim
from antipode_activemq.tap import Tap
from antipode_activemq.wrapping import register, wrap

skip_packages("antipode_activemq", "stomp")

__version__ = "0.1.0"
__all__ = ["MARK_HEADER", "ActiveMQShim", "Tap", "register", "scope_of", "wrap"]
