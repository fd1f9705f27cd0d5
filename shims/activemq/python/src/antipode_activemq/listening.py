"""Listeners: one scope a message, filled from the message's own header (spec SCOPE-6, PROP-17, BAR-45)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Mode, Redeliver, Scope, message_scope
from antipode.shim.queue_messages import delivered, note_unstamped, say_redelivery

from antipode_activemq.delivery import BrokerDelivery
from antipode_activemq.marks import mark_of
from antipode_activemq.outcomes import OWN_RECEIPTS

if TYPE_CHECKING:
    from antipode_activemq.connection import ConnectionState


def scope_of(frame: Any, *, connection: Any = None) -> AbstractContextManager[Scope]:
    """Opens the scope of one message for a block: for work that a listener has handed to another thread.

    frame: as stomp.py gives it. connection: the wrapped connection that the message came by; its options hold, and
    `barrier(on_timeout="redeliver")` inside ends the block, gives the message back after the delay, and goes on behind
    the block.

    Raises ConfigurationError for a connection that was not wrapped.
    """
    if connection is None:
        return _foreign(frame)
    wrapping: ConnectionState | None = getattr(connection, "_antipode", None)
    if wrapping is None:
        raise ConfigurationError(
            "scope_of(connection=…) takes a connection that antipode_activemq.wrap() has returned", code="AP501"
        )
    return message(wrapping, frame)


@contextmanager
def _foreign(frame: Any) -> Iterator[Scope]:
    detail = "scope_of() was not given the connection: scope_of(frame, connection=…)"
    headers = dict(frame.headers)
    with message_scope(headers, delivery=BrokerDelivery(False, detail, headers)) as scope:
        yield scope


class Listening:
    """Stands for one of the application's listeners at the transport; what it does not know goes to that one."""

    def __init__(self, wrapping: ConnectionState, listener: Any) -> None:
        self.listener = listener
        self._wrapping = wrapping

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)

    def on_message(self, frame: Any) -> None:
        """Runs the listener's own in a scope of the message's."""
        theirs = getattr(self.listener, "on_message", None)
        if theirs is None:
            return
        if frame.headers.get("browser") == "end":  # no message: a browser has seen all
            theirs(frame)
            return
        with message(self._wrapping, frame):
            theirs(frame)

    def on_receipt(self, frame: Any) -> None:
        """First the write is recorded, so that whoever is told finds it in its lineage."""
        self._wrapping.outcomes.on_receipt(frame)
        self._pass_on("on_receipt", frame)

    def on_error(self, frame: Any) -> None:
        """An ERROR frame."""
        self._wrapping.outcomes.on_error(frame)
        self._pass_on("on_error", frame)

    def _pass_on(self, name: str, frame: Any) -> None:
        if str(frame.headers.get("receipt-id", "")).startswith(OWN_RECEIPTS):
            return
        theirs = getattr(self.listener, name, None)
        if theirs is not None:
            theirs(frame)


@contextmanager
def message(wrapping: ConnectionState, frame: Any) -> Iterator[Scope]:
    """The scope of one message of a wrapped connection. Redeliver out of the block gives the message back."""
    options, returns = wrapping.options, wrapping.returns
    headers = dict(frame.headers)
    obstacle = wrapping.subscriptions.obstacle(headers, frame.body)
    delivery = BrokerDelivery(not obstacle, obstacle, headers, frame.body or b"")
    if delivery.can_redeliver:
        returns.opened(delivery)

    def give_back(error: Redeliver) -> None:
        say_redelivery(options, error, options.redeliver_delay)
        returns.give_back(delivery, options.redeliver_delay)

    with delivered(options, delivery, ended=lambda: returns.closed(delivery), give_back=give_back) as scope:
        _note(wrapping, scope, headers)
        yield scope


def _note(wrapping: ConnectionState, scope: Scope, headers: Mapping[str, Any]) -> None:
    """What the message's coming itself proves, and what its lack of a header says."""
    options = wrapping.options
    store = options.store
    if store.mode is Mode.OFF:
        return
    note_unstamped(options, scope, headers)
    if scope.recorded_lineage.section_text(store.name) is not None:
        mark = mark_of(headers)
        if mark is not None:
            wrapping.arrived(mark)
