"""`wrap` and `register`: a connection that carries lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack, cast

from antipode import ConfigurationError, Store
from antipode.shim import StoreOptions
from antipode.shim.join import QUEUE_DEFAULTS, JoinOptions, QueueWrapOptions, with_options
from antipode.shim.queue_messages import part_options
from antipode.shim.tap import Broker, join_tapped

from antipode_activemq.connection import addresses_of, plain_of, wrapped
from antipode_activemq.doctor import cure_of, probe
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.shim import ActiveMQShim
from antipode_activemq.tap import Tap

_C = TypeVar("_C")
Taps = Tap | str | Sequence[Tap | str] | Callable[[], Sequence[Tap | str]] | None


@with_options(QueueWrapOptions, **QUEUE_DEFAULTS)
def wrap(
    connection: _C,
    store: str,
    *,
    tap: Taps = None,
    stored_topics: bool = False,
    max_redeliveries: int | None = None,
    **options: Unpack[QueueWrapOptions],
) -> _C:
    """A connection of the same class that shares this one's state; the one passed in stays plain.

    What it sends carries the scope's lineage in a copy of the headers. Listeners that are set on it get each message in
    a scope of the message's own; for work in other threads use `scope_of`.

    connection: of stomp.py, connected or not. store: the queue's logical name, the same in every service. track: each
    message is a write that can be waited for where there is a tap. tap: the topics of this region that show what has
    arrived (see `Tap`), or a callable asked again every 5 s. stored_topics: the operator's word that what is published
    to topics crosses the link in a queue; without it a tracked message to a topic is refused. stamped: every publisher
    of these messages stamps them (also an empty lineage), so one that comes without has lost it and is incomplete.
    lineage_in, lineage_out: whether lineages are taken and given, where trust would say otherwise. redeliver_delay:
    seconds that a message waits before it goes back, by default the setting's 1 s. max_redeliveries: how often it does;
    after that it is answered by NACK, and the broker's policy holds (its dead letters); None: for ever. The others are
    those of every store.

    Raises TypeError for what is no stomp.py connection, ConfigurationError for options that cannot be right,
    UnfitStoreError where a tap cannot be read or proves nothing (`on_unfit="unproven"`: it is logged, and messages are
    unproven).
    """
    plain = plain_of(connection)
    messages, own = part_options(options)
    if max_redeliveries is not None and max_redeliveries < 0:
        raise ConfigurationError(
            f"max_redeliveries={max_redeliveries!r}: want a number from 0 on, or None", code="AP501"
        )
    if max_redeliveries is not None and not hasattr(plain, "nack"):
        raise ConfigurationError(
            "max_redeliveries needs NACK, which STOMP 1.0 has not: use stomp.Connection12", code="AP501"
        )
    joined = _join(store, tap, own)
    joined.use_server(Broker(addresses_of(plain)), listed=True)
    given = ConnectionOptions(store=joined, stored_topics=stored_topics, max_redeliveries=max_redeliveries, **messages)
    return cast("_C", wrapped(plain, given, cast("ActiveMQShim", joined.shim).arrived))


@with_options(JoinOptions)
def register(
    store: str,
    *,
    tap: Taps = None,
    **options: Unpack[JoinOptions],
) -> Store:
    """Registers a store of messages that this process waits for and neither sends nor consumes.

    tap: the topics of this region, by default those of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
    """
    return _join(store, tap, StoreOptions(**options))


def _join(store: str, tap: Taps, options: StoreOptions) -> Store:
    taps: Any = [tap] if isinstance(tap, Tap | str) else tap
    return join_tapped(store, ActiveMQShim, taps, options, probe=probe, cure_of=cure_of)
