"""`wrap` and `register`: a channel that carries lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

import sys
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

from antipode_rabbitmq.channel import plain_of, wrapped
from antipode_rabbitmq.doctor import cure_of, probe
from antipode_rabbitmq.options import ChannelOptions, OnNoRoom
from antipode_rabbitmq.shim import Broker, RabbitMQShim
from antipode_rabbitmq.tap import Tap, address_of

_C = TypeVar("_C")
Taps = Tap | str | Sequence[Tap | str] | Callable[[], Sequence[Tap | str]] | None
Seconds = float | timedelta | None


def wrap(
    channel: _C,
    store: str,
    *,
    track: bool = False,
    tap: Taps = None,
    stamped: bool = False,
    on_no_room: OnNoRoom = "send",
    lineage_in: bool | None = None,
    lineage_out: bool | None = None,
    redeliver_delay: Seconds = None,
    timeout: Seconds = None,
    hash_keys: bool | None = None,
    mode: Mode | str | None = None,
    on_unfit: Literal["raise", "unproven"] = "raise",
    on_replica_out: Literal["name", "fail"] | None = None,
) -> _C:
    """A channel of the same class that shares this one's state; the one passed in stays plain.

    What it publishes carries the scope's lineage in a copy of the message's headers. Callbacks of what it consumes
    run in a scope of their message, and get the wrapped channel; for `basic_get` and `consume()` use `scope_of`.

    channel: of a BlockingConnection, pika.channel.Channel of an asynchronous one, or aio-pika's. store: the queue's
    logical name, the same in every service. track: each message is a write that can be waited for where there is a
    tap. tap: the stream queues of this region (see `Tap`), or a callable asked again every 5 s. stamped: every
    publisher of these messages stamps them (also an empty lineage), so one that comes without has lost it and is
    incomplete. on_no_room: `send` without the lineage or `raise` where the headers would fill a frame. lineage_in,
    lineage_out: whether lineages are taken and given, where trust would say otherwise. redeliver_delay: seconds that a
    message waits before it goes back, by default the setting's 1 s. The others are those of every store.

    Raises TypeError for what is no pika channel, ConfigurationError for options that cannot be right, UnfitStoreError
    where a tap cannot be read (`on_unfit="unproven"`: it is logged, and messages are unproven).
    """
    aio = _aio(channel)
    plain = plain_of(channel) if aio is None else aio.plain_of(channel)
    if on_no_room not in {"send", "raise"}:
        raise ConfigurationError(f"on_no_room={on_no_room!r}: want send, raise", code="AP501")
    delay = redeliver_seconds(redeliver_delay)
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
    parameters = getattr(plain, "_impl", plain).connection.params if aio is None else aio.parameters_of(plain)
    broker = Broker(address_of(parameters))
    joined.use_server(broker, listed=True)
    shim = cast("RabbitMQShim", joined.shim)
    options = ChannelOptions(
        store=joined,
        track=track,
        stamped=stamped,
        on_no_room=on_no_room,
        lineage_in=lineage_in,
        lineage_out=lineage_out,
        own_redeliver_delay=delay,
    )
    make = wrapped if aio is None else aio.wrapped
    return cast("_C", make(plain, options, lambda mark: shim.arrived(broker.address, mark)))


def _aio(channel: Any) -> Any:
    """What wraps channels of aio-pika, where this is one: nothing of it is imported before the application has."""
    if "aio_pika" not in sys.modules:
        return None
    from antipode_rabbitmq import aio

    return aio if aio.is_aio(channel) else None


def register(
    store: str,
    *,
    tap: Taps = None,
    timeout: Seconds = None,
    mode: Mode | str | None = None,
    on_unfit: Literal["raise", "unproven"] = "raise",
    on_replica_out: Literal["name", "fail"] | None = None,
) -> Store:
    """Registers a store of messages that this process waits for and neither publishes nor consumes.

    tap: the stream queues of this region, by default those of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
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
    return join_store(store, RabbitMQShim, replace(options, replicas=taps))
