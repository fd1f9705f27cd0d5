"""`wrap` and `register`: a channel that carries lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack, cast

from antipode import ConfigurationError, Store
from antipode.shim import StoreOptions
from antipode.shim.join import QUEUE_DEFAULTS, JoinOptions, QueueWrapOptions, with_options
from antipode.shim.queue_messages import part_options
from antipode.shim.tap import Broker, join_tapped

from antipode_rabbitmq.channel import plain_of, wrapped
from antipode_rabbitmq.doctor import cure_of, probe
from antipode_rabbitmq.options import ChannelOptions, OnNoRoom
from antipode_rabbitmq.shim import RabbitMQShim
from antipode_rabbitmq.tap import Tap, address_of

_C = TypeVar("_C")
Taps = Tap | str | Sequence[Tap | str] | Callable[[], Sequence[Tap | str]] | None


@with_options(QueueWrapOptions, **QUEUE_DEFAULTS)
def wrap(
    channel: _C,
    store: str,
    *,
    tap: Taps = None,
    on_no_room: OnNoRoom = "send",
    **options: Unpack[QueueWrapOptions],
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
    messages, own = part_options(options)
    joined = _join(store, tap, own)
    parameters = getattr(plain, "_impl", plain).connection.params if aio is None else aio.parameters_of(plain)
    broker = Broker((address_of(parameters),))
    joined.use_server(broker, listed=True)
    shim = cast("RabbitMQShim", joined.shim)
    given = ChannelOptions(store=joined, on_no_room=on_no_room, **messages)
    make = wrapped if aio is None else aio.wrapped
    return cast("_C", make(plain, given, lambda mark: shim.arrived(broker.address, mark)))


def _aio(channel: Any) -> Any:
    """What wraps channels of aio-pika, where this is one: nothing of it is imported before the application has."""
    if "aio_pika" not in sys.modules:
        return None
    from antipode_rabbitmq import aio

    return aio if aio.is_aio(channel) else None


@with_options(JoinOptions)
def register(
    store: str,
    *,
    tap: Taps = None,
    **options: Unpack[JoinOptions],
) -> Store:
    """Registers a store of messages that this process waits for and neither publishes nor consumes.

    tap: the stream queues of this region, by default those of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
    """
    return _join(store, tap, StoreOptions(**options))


def _join(store: str, tap: Taps, options: StoreOptions) -> Store:
    taps: Any = [tap] if isinstance(tap, Tap | str) else tap
    return join_tapped(store, RabbitMQShim, taps, options, probe=probe, cure_of=cure_of)
