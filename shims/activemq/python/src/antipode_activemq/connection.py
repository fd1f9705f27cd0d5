"""The wrapped connection: of the same class as the plain one, with its state, and with messages that carry the lineage.

Both share one `__dict__`, and with it the transport, which does all the work. The plain connection stays plain;
listeners that are set on it get messages without a scope.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from antipode.shim import refuse_making
from stomp.connect import BaseConnection
from stomp.protocol import Protocol10, Protocol11
from stomp.utils import merge_headers

from antipode_activemq.listening import Listening
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.outcomes import Outcomes
from antipode_activemq.publishing import publish
from antipode_activemq.returns import Returns
from antipode_activemq.subscriptions import Subscriptions
from antipode_activemq.tap import address_of


class ConnectionState:
    """What is ours in a wrapped connection."""

    __slots__ = ("_arrived", "options", "outcomes", "plain", "returns", "subscriptions")

    def __init__(self, plain: Any, options: ConnectionOptions, arrived: Callable[[str, str], None]) -> None:
        self.plain = plain
        self.options = options
        self._arrived = arrived
        self.outcomes = Outcomes.of(plain)
        self.returns = Returns(plain, options, self.outcomes)
        self.subscriptions = Subscriptions()

    def arrived(self, mark: str) -> None:
        """A tracked message of this store has come by this connection."""
        where = self.plain.transport.current_host_and_port
        if where is not None:
            self._arrived(address_of(*where), mark)


# What a wrapped connection does itself, by stomp.py's names and signatures


def _send(
    self: Any, destination: Any, body: Any, content_type: Any = None, headers: Any = None, **keyword_headers: Any
) -> Any:
    wrapping: ConnectionState = self._antipode

    def send(stamped: Any) -> Any:
        return wrapping.plain.send(destination, body, content_type, headers=stamped)

    if destination is None or body is None:  # stomp.py says what is wrong
        return wrapping.plain.send(destination, body, content_type, headers, **keyword_headers)
    merged = merge_headers([headers, keyword_headers])
    return publish(wrapping.options, wrapping.outcomes, send, destination, merged)


def _commit(self: Any, transaction: Any = None, headers: Any = None, **keyword_headers: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    if transaction is None:
        return wrapping.plain.commit(transaction, headers, **keyword_headers)
    receipt = merge_headers([headers, keyword_headers]).get("receipt")
    with wrapping.outcomes.committing(transaction, receipt):
        return wrapping.plain.commit(transaction, headers, **keyword_headers)


def _abort(self: Any, transaction: Any, headers: Any = None, **keyword_headers: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    try:
        return wrapping.plain.abort(transaction, headers, **keyword_headers)
    finally:
        wrapping.outcomes.aborted(transaction)


def _subscribe(
    self: Any, destination: Any, id: Any = None, ack: Any = "auto", headers: Any = None, **keyword_headers: Any
) -> Any:
    wrapping: ConnectionState = self._antipode
    merged = merge_headers([headers, keyword_headers])
    wrapping.subscriptions.add(destination, id, ack, merged)
    arguments = {"ack": ack, "headers": headers, **keyword_headers}
    if id is not None or not isinstance(wrapping.plain, Protocol11):
        arguments["id"] = id
    return wrapping.plain.subscribe(destination, **arguments)


def _unsubscribe(self: Any, *arguments: Any, **keywords: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    result = wrapping.plain.unsubscribe(*arguments, **keywords)
    wrapping.subscriptions.remove(*arguments, keywords.get("id"), keywords.get("destination"))
    return result


def _ack(self: Any, id: Any, *arguments: Any, **keywords: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    wrapping.returns.check_acknowledgement(id)
    wrapping.returns.settling(id)
    return wrapping.plain.ack(id, *arguments, **keywords)


def _nack(self: Any, id: Any, *arguments: Any, **keywords: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    wrapping.returns.settling(id)
    return wrapping.plain.nack(id, *arguments, **keywords)


def _set_listener(self: Any, name: Any, listener: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    ours = listener if listener is None or isinstance(listener, Listening) else Listening(wrapping, listener)
    return wrapping.plain.set_listener(name, ours)


def _get_listener(self: Any, name: Any) -> Any:
    wrapping: ConnectionState = self._antipode
    found = wrapping.plain.get_listener(name)
    return found.listener if isinstance(found, Listening) else found


_OURS: Final[dict[str, Callable[..., Any]]] = {
    "abort": _abort,
    "ack": _ack,
    "commit": _commit,
    "get_listener": _get_listener,
    "send": _send,
    "set_listener": _set_listener,
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
}


@cache
def _wrapped_class(cls: Any) -> Any:
    """The class of wrapped connections of this class: a subclass."""
    ours = dict(_OURS)
    if hasattr(cls, "nack"):  # STOMP 1.0 has none
        ours["nack"] = _nack
    for name, function in ours.items():
        function.__doc__ = getattr(cls, name).__doc__
    body = {"__slots__": ("_antipode",), "__module__": __name__, "__init__": refuse_making}
    return type(f"Antipode{cls.__name__}", (cls,), body | ours)


def plain_of(connection: Any) -> Any:
    """The plain connection behind a wrapped one; a plain one itself. Raises TypeError for anything else."""
    wrapping = getattr(connection, "_antipode", None)
    if isinstance(wrapping, ConnectionState):
        return wrapping.plain
    if not (isinstance(connection, BaseConnection) and isinstance(connection, Protocol10 | Protocol11)):
        raise TypeError(
            "wrap() takes a stomp.py connection: wrap(stomp.Connection12([(host, port)]), store=…), "
            f"not {type(connection).__name__}"
        )
    return connection


def addresses_of(plain: Any) -> tuple[str, ...]:
    """The brokers that a connection may connect to."""
    for name, value in vars(plain.transport).items():
        if name.endswith("__host_and_ports"):
            return tuple(dict.fromkeys(address_of(str(host), int(port)) for host, port in value))
    return ()


def wrapped(plain: Any, options: ConnectionOptions, arrived: Callable[[str, str], None]) -> Any:
    """A connection of the same class that shares the plain one's state."""
    connection: Any = object.__new__(_wrapped_class(cast("Any", type(plain))))
    connection.__dict__ = plain.__dict__
    connection._antipode = ConnectionState(plain, options, arrived)
    return connection
