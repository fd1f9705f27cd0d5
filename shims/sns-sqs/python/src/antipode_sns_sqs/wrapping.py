"""`wrap` and `register`: clients that carry lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal, TypeVar, cast

from antipode.errors import ConfigurationError
from antipode.queue_messages import redeliver_seconds
from antipode.settings import Mode
from antipode.store import Store, StoreOptions, join_store
from antipode.tapped import check_tap
from botocore.exceptions import BotoCoreError

from antipode_sns_sqs.client import carrying
from antipode_sns_sqs.doctor import PROBE_S
from antipode_sns_sqs.errors import TapRefusedError
from antipode_sns_sqs.options import Binding, OnNoRoom
from antipode_sns_sqs.probing import probe, words_of
from antipode_sns_sqs.shim import Region, SnsSqsShim
from antipode_sns_sqs.tap import Tap, client_of

_LONGEST_INVISIBLE_S: Final = 43_200
_C = TypeVar("_C")
Taps = Any
"""A tap's URL, `Tap`, (client, queue URL) or Queue resource; a list of them, or a callable asked again every 5 s."""
Seconds = float | timedelta | None


def wrap(
    client: _C,
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
    """A copy of a boto3 client or resource of SNS or SQS; it shares the connections, and the one passed in stays plain.

    What it publishes or sends carries the scope's lineage in the attribute `antipode-lineage`. What it receives comes
    with that attribute, for `scope_of(message)`.

    client: also a Topic, Queue or other resource. store: the queue's logical name, the same in every service. track:
    each message is a write that can be waited for where there is a tap. tap: the tap of this process in this region,
    see `Tap`. stamped: every sender of these messages stamps them (also an empty lineage), so one without has lost it
    and is incomplete. on_no_room: `send` without the lineage or `raise` where the message has ten attributes or
    would become too long. lineage_in, lineage_out: whether lineages are taken and given, where trust would say
    otherwise. redeliver_delay: seconds that a message waits before it comes again, rounded up to whole ones, by default
    the setting's 1 s. The others are those of every store.

    Raises TypeError for what is no client of SNS or SQS, ConfigurationError for options that cannot be right,
    UnfitStoreError where a tap cannot be read (`on_unfit="unproven"`: it is logged, and messages are unproven).
    """
    given = client_of(client, "sns") or client_of(client, "sqs")
    if given is None:
        raise TypeError(f"wrap() takes a boto3 client or resource of SNS or SQS, not {type(client).__name__}")
    plain = getattr(given, "_antipode_plain", given)
    if on_no_room not in {"send", "raise"}:
        raise ConfigurationError(f"on_no_room={on_no_room!r}: want send, raise", code="AP501")
    delay = redeliver_seconds(redeliver_delay)
    if delay is not None and delay > _LONGEST_INVISIBLE_S:
        raise ConfigurationError(
            f"redeliver_delay={redeliver_delay!r}: want seconds, at most 12 hours, as SQS has it", code="AP501"
        )
    options = StoreOptions(
        timeout=timeout,
        hash_keys=hash_keys,
        lineage_in=lineage_in is not False,
        lineage_out=lineage_out is not False,
        mode=mode,
        on_unfit=on_unfit,
        on_replica_out=on_replica_out,
    )
    joined = _join(store, tap, options)
    region = Region(plain.meta.endpoint_url)
    joined.use_server(region, listed=True)
    shim = cast("SnsSqsShim", joined.shim)
    binding = Binding(
        store=joined,
        track=track,
        stamped=stamped,
        on_no_room=on_no_room,
        lineage_in=lineage_in,
        lineage_out=lineage_out,
        own_redeliver_delay=delay,
        arrived=lambda mark: shim.arrived(region.address, mark),
    )
    wrapped = carrying(plain, binding)
    if client is given:
        return cast("_C", wrapped)
    resource: Any = copy.copy(client)
    resource.meta = cast("Any", client).meta.copy()
    resource.meta.client = wrapped
    return cast("_C", resource)


def register(
    store: str,
    *,
    tap: Taps = None,
    timeout: Seconds = None,
    mode: Mode | str | None = None,
    on_unfit: Literal["raise", "unproven"] = "raise",
    on_replica_out: Literal["name", "fail"] | None = None,
) -> Store:
    """Registers a store of messages that this process waits for and neither sends nor receives.

    tap: the tap of this process, by default that of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
    """
    options = StoreOptions(timeout=timeout, mode=mode, on_unfit=on_unfit, on_replica_out=on_replica_out)
    return _join(store, tap, options)


def _join(store: str, tap: Taps, options: StoreOptions) -> Store:
    taps: Sequence[Tap] | Callable[[], Sequence[Any]] | None = None
    if callable(tap) and not isinstance(tap, Tap):
        taps = tap
    elif tap is not None:
        taps = [Tap.of(each) for each in (tap if isinstance(tap, list) else [tap])]
        for each in taps:
            check_tap(store, each.address, options.on_unfit, partial(_probe, each), _cure_of)
    return join_store(store, SnsSqsShim, replace(options, replicas=taps))


def _probe(tap: Tap) -> None:
    try:
        probe(tap, PROBE_S)
    except BotoCoreError as error:
        raise ConnectionError(words_of(error)) from error


def _cure_of(error: TapRefusedError) -> tuple[str, str]:
    return error.what, error.cure
