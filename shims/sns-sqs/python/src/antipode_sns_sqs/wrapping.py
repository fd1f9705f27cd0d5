"""`wrap` and `register`: clients that carry lineages, and a store that is only waited for (API section 3a)."""

from __future__ import annotations

from typing import Any, Final, TypeVar, Unpack, cast

from antipode import ConfigurationError, Store
from antipode.shim import StoreOptions
from antipode.shim.aws import client_of, copy_of, like, wrapped_class
from antipode.shim.join import QUEUE_DEFAULTS, JoinOptions, QueueWrapOptions, with_options
from antipode.shim.queue_messages import part_options
from antipode.shim.tap import Broker, join_tapped
from botocore.exceptions import BotoCoreError

from antipode_sns_sqs.client import CarryingClient
from antipode_sns_sqs.doctor import PROBE_S
from antipode_sns_sqs.errors import TapRefusedError
from antipode_sns_sqs.options import Binding, OnNoRoom
from antipode_sns_sqs.probing import probe, words_of
from antipode_sns_sqs.shim import SnsSqsShim
from antipode_sns_sqs.tap import Tap

_LONGEST_INVISIBLE_S: Final = 43_200
_C = TypeVar("_C")
Taps = Any
"""A tap's URL, `Tap`, (client, queue URL) or Queue resource; a list of them, or a callable asked again every 5 s."""


@with_options(QueueWrapOptions, **QUEUE_DEFAULTS)
def wrap(
    client: _C,
    store: str,
    *,
    tap: Taps = None,
    on_no_room: OnNoRoom = "send",
    **options: Unpack[QueueWrapOptions],
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
    given = client_of(client, "sns", "sqs")
    if given is None:
        raise TypeError(f"wrap() takes a boto3 client or resource of SNS or SQS, not {type(client).__name__}")
    plain = getattr(given, "_antipode_plain", given)
    if on_no_room not in {"send", "raise"}:
        raise ConfigurationError(f"on_no_room={on_no_room!r}: want send, raise", code="AP501")
    messages, own = part_options(options)
    if (messages["own_redeliver_delay"] or 0) > _LONGEST_INVISIBLE_S:
        raise ConfigurationError(
            f"redeliver_delay={options['redeliver_delay']!r}: want seconds, at most 12 hours, as SQS has it",
            code="AP501",
        )
    joined = _join(store, tap, own)
    region = Broker((plain.meta.endpoint_url,))
    joined.use_server(region, listed=True)
    shim = cast("SnsSqsShim", joined.shim)
    binding = Binding(
        store=joined, on_no_room=on_no_room, arrived=lambda mark: shim.arrived(region.address, mark), **messages
    )
    kind = wrapped_class(CarryingClient, type(plain))
    return cast("_C", like(client, copy_of(plain, kind, _antipode=binding, _antipode_plain=plain)))


@with_options(JoinOptions)
def register(
    store: str,
    *,
    tap: Taps = None,
    **options: Unpack[JoinOptions],
) -> Store:
    """Registers a store of messages that this process waits for and neither sends nor receives.

    tap: the tap of this process, by default that of `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises as `wrap` does.
    """
    return _join(store, tap, StoreOptions(**options))


def _join(store: str, tap: Taps, options: StoreOptions) -> Store:
    taps: Any = tap if tap is None or callable(tap) or isinstance(tap, list) else [tap]
    return join_tapped(store, SnsSqsShim, taps, options, probe=_probe, cure_of=_cure_of)


def _probe(tap: Tap) -> None:
    try:
        probe(tap, PROBE_S)
    except BotoCoreError as error:
        raise ConnectionError(words_of(error)) from error


def _cure_of(tap: Tap, error: TapRefusedError) -> tuple[str, str]:
    return error.what, error.cure
