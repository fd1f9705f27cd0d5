"""`wrap` and `register`: a connection that carries lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar, cast

from antipode.errors import ConfigurationError
from antipode.queue_messages import redeliver_seconds
from antipode.settings import Mode
from antipode.store import Store, StoreOptions, join_store
from antipode.tapped import check_tap

from antipode_activemq.connection import addresses_of, plain_of, wrapped
from antipode_activemq.doctor import cure_of, probe
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.shim import ActiveMQShim, Broker
from antipode_activemq.tap import Tap

_C = TypeVar("_C")
Taps = Tap | str | Sequence[Tap | str] | Callable[[], Sequence[Tap | str]] | None
Seconds = float | timedelta | None


def wrap(
    connection: _C,
    store: str,
    *,
    track: bool = False,
    tap: Taps = None,
    stored_topics: bool = False,
    stamped: bool = False,
    lineage_in: bool | None = None,
    lineage_out: bool | None = None,
    redeliver_delay: Seconds = None,
    max_redeliveries: int | None = None,
    timeout: Seconds = None,
    hash_keys: bool | None = None,
    mode: Mode | str | None = None,
    on_unfit: Literal["raise", "unproven"] = "raise",
    on_replica_out: Literal["name", "fail"] | None = None,
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
    delay = redeliver_seconds(redeliver_delay)
    if max_redeliveries is not None and max_redeliveries < 0:
        raise ConfigurationError(
            f"max_redeliveries={max_redeliveries!r}: want a number from 0 on, or None", code="AP501"
        )
    if max_redeliveries is not None and not hasattr(plain, "nack"):
        raise ConfigurationError(
            "max_redeliveries needs NACK, which STOMP 1.0 has not: use stomp.Connection12", code="AP501"
        )
    joined = _join(
        store,
        tap,
        StoreOptions(
            timeout=timeout,
            hash_keys=hash_keys,
            lineage_in=lineage_in is not False,
            lineage_out=lineage_out is not False,
            mode=mode,
            on_unfit=on_unfit,
            on_replica_out=on_replica_out,
        ),
    )
    joined.use_server(Broker(addresses_of(plain)), listed=True)
    options = ConnectionOptions(
        store=joined,
        track=track,
        stamped=stamped,
        stored_topics=stored_topics,
        lineage_in=lineage_in,
        lineage_out=lineage_out,
        own_redeliver_delay=delay,
        max_redeliveries=max_redeliveries,
    )
    return cast("_C", wrapped(plain, options, cast("ActiveMQShim", joined.shim).arrived))


def register(
    store: str,
    *,
    tap: Taps = None,
    timeout: Seconds = None,
    mode: Mode | str | None = None,
    on_unfit: Literal["raise", "unproven"] = "raise",
    on_replica_out: Literal["name", "fail"] | None = None,
) -> Store:
    """Registers a store of messages that this process waits for and neither sends nor consumes.

    tap: the topics of this region, by default those of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
    """
    options = StoreOptions(timeout=timeout, mode=mode, on_unfit=on_unfit, on_replica_out=on_replica_out)
    return _join(store, tap, options)


def _join(store: str, tap: Taps, options: StoreOptions) -> Store:
    taps: Any = tap
    if isinstance(tap, Tap | str):
        taps = [tap]
    if taps is not None and not callable(taps):
        taps = [Tap.of(each) for each in taps]
        for each in taps:
            check_tap(store, each.address, options.on_unfit, partial(probe, each), partial(cure_of, each))
    return join_store(store, ActiveMQShim, replace(options, replicas=taps))
