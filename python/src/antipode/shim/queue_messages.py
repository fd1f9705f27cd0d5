"""What the shims of queues share of one message: its options, its scope, the text that it leaves with (spec PROP)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from antipode._base import logs
from antipode._base.settings import settings
from antipode._diagnostics.history.recorder import recorder
from antipode._model.errors import ConfigurationError, MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.result import Redeliver
from antipode._model.scope_values import Delivery
from antipode._model.wire import unwrap_header
from antipode._model.write_id import WriteId
from antipode._propagation.gate import check_takers, leaving, lineage_outside
from antipode._scope.scope import Scope, current_scope
from antipode._store.store import Store, StoreOptions
from antipode._trust.seal import strip_seal
from antipode._trust.trust import (
    Direction,
    Purpose,
    Reason,
    judge_message_in,
    judge_message_out,
    outgoing_text,
    trust_settings,
)
from antipode.messages import HEADER, JMS_HEADER, message_scope, message_text, outgoing_message
from antipode.shim.join import QUEUE_DEFAULTS, QueueWrapOptions

__all__ = [
    "MessageDelivery",
    "QueueOptions",
    "carried_lineages",
    "delivered",
    "is_lineage",
    "note_unstamped",
    "part_options",
    "redeliver_of",
    "redeliver_seconds",
    "refuse_acknowledgement",
    "say_redelivery",
    "text_to_send",
]

_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options of one `wrap` of a queue's client; several clients of one store may differ in them."""

    store: Store
    track: bool
    stamped: bool
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    own_redeliver_delay: float | None

    @property
    def redeliver_delay(self) -> float:
        """How long a message waits before it goes back, in seconds."""
        own = self.own_redeliver_delay
        return settings().redeliver_delay if own is None else own


@dataclass(slots=True)
class MessageDelivery(Delivery):
    """A message that was delivered. `can_redeliver` turns false when it has been settled, or its scope has ended."""

    headers: Mapping[Any, Any] = field(default_factory=dict)
    """The message's headers as they came."""

    def settle(self, detail: str) -> None:
        """From now on it cannot go back, for this reason."""
        if self.can_redeliver:
            self.can_redeliver, self.detail = False, detail


def redeliver_seconds(given: float | timedelta | None) -> float | None:
    """A queue's own `redeliver_delay` in seconds; raises ConfigurationError for what is none."""
    delay = given.total_seconds() if isinstance(given, timedelta) else given
    if delay is not None and not 0 <= delay < _DAY_S:
        raise ConfigurationError(
            f"redeliver_delay={given!r}: want seconds, at least 0 and less than a day", code="AP111"
        )
    return delay


def part_options(options: QueueWrapOptions) -> tuple[dict[str, Any], StoreOptions]:
    """Return the words of `QueueOptions` beside the store, and the store's own options.

    Raises ConfigurationError for a delay that is none.
    """
    delay = redeliver_seconds(options.get("redeliver_delay"))
    messages: dict[str, Any] = {word: options.get(word, default) for word, default in QUEUE_DEFAULTS.items()}
    own: dict[str, Any] = {word: given for word, given in options.items() if word not in {*messages, "redeliver_delay"}}
    own |= {word: messages[word] is not False for word in ("lineage_in", "lineage_out")}
    return {**messages, "own_redeliver_delay": delay}, StoreOptions(**own)


# A message that came


@contextmanager
def delivered(
    options: QueueOptions,
    delivery: MessageDelivery,
    *,
    ended: Callable[[], None],
    give_back: Callable[[Redeliver], None],
) -> Iterator[Scope]:
    """The scope of one message for a block, filled from its headers (SCOPE-6, PROP-17).

    ended: called when the scope has ended. give_back: called behind it for a Redeliver out of the block (BAR-45), which
    ends here then, also one in a group of exceptions. What else the group has goes on, and so does a Redeliver of a
    message that cannot go back any more.
    """
    may_go_back = False
    sender = f"a message of {options.store.name}"
    try:
        with message_scope(delivery.headers, lineage_in=options.lineage_in, delivery=delivery, sender=sender) as scope:
            scope.queue = options.store.name
            try:
                yield scope
            finally:
                may_go_back = delivery.can_redeliver
                delivery.settle("its scope has ended")
                ended()
    except (Redeliver, BaseExceptionGroup) as error:
        asked = redeliver_of(error)
        if asked is None or not may_go_back:
            raise
        delivery.goes_back = True
        give_back(asked)
        rest = error.split(Redeliver)[1] if isinstance(error, BaseExceptionGroup) else None
        if rest is not None:
            raise rest from None


def redeliver_of(error: BaseException | None) -> Redeliver | None:
    """Return the Redeliver that an exception is, or that a group of exceptions holds; None where there is none."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(redeliver_of, error.exceptions)), None)
    return error if isinstance(error, Redeliver) else None


def refuse_acknowledgement(store: str) -> ConfigurationError:
    """Return the error for who acknowledges, or drops, a message that goes back (PROP-36)."""
    return ConfigurationError(
        f"a message of {store} goes back to its queue, as its barrier asked, and cannot be acknowledged or dropped: "
        "it would be lost. Acknowledge inside the block of its scope, or behind it where not scope.delivery.goes_back",
        code="AP113",
    )


def note_unstamped(options: QueueOptions, scope: Scope, headers: Mapping[Any, Any]) -> None:
    """A message without a lineage, where all of them have one (`stamped`), has lost it: its scope is incomplete.

    Only where lineages of these messages count at all (TRUST-28).
    """
    if not options.stamped or _has_lineage(headers):
        return
    decision = judge_message_in(EMPTY.serialize(), trust_settings(), options.lineage_in)
    if not decision.accepted and decision.reason is not Reason.SEAL:
        return
    scope.receive(EMPTY.marked_incomplete())
    words = f"a message of {options.store.name} came without the lineage that all of them have (stamped)"
    scope.note_gap("malformed", detail=words)


def _has_lineage(headers: Mapping[Any, Any]) -> bool:
    return any(str(name).lower() in (HEADER, JMS_HEADER) and value is not None for name, value in headers.items())


def say_redelivery(options: QueueOptions, error: Redeliver, seconds: float) -> None:
    """Logs that a message goes back after so many seconds, and counts it."""
    name = options.store.name
    words = str(error.args[0]).partition("\n")[0]
    logs.info(
        f"redeliver {name}",
        f"a message of {name} goes back to its queue in {seconds:g} s: {words}",
        count_as="redelivered",
        code=error.code,
    )


# A message that leaves


def carried_lineages(headers: Mapping[Any, Any]) -> dict[str, Any]:
    """The lineages among the headers, by name: those of a message whose headers are sent again."""
    return {name: headers[name] for name in (HEADER, JMS_HEADER) if name in headers and is_lineage(headers[name])}


def is_lineage(value: object) -> bool:
    """Whether a header's value is a lineage, and not something that the application has under that name."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str):
        return False
    try:
        for text in unwrap_header([value]):
            Lineage.deserialize(strip_seal(text))
    except MalformedLineageError:
        return False
    return True


def text_to_send(
    options: QueueOptions, carried: Mapping[str, Any], own: WriteId | None, *, shared: str = ""
) -> str | None:
    """The header's value for a message that is sent now; None where it carries none.

    carried: the lineages that its headers have already. own: the message itself, where it is a write.
    shared: the place that it goes to, where that may give it to several takers. Raises PendingWriteError with
    `on_pending=raise`, and ConfigurationError where a `branch()` hands it over to such a place (BRANCH-28).
    """
    scope = current_scope()
    if shared:
        check_takers(scope, shared)
    another = bool(carried) and not _came_with(scope, carried)
    if own is None and not another:
        text = outgoing_message(lineage_out=options.lineage_out, scope=scope)
    else:
        if another:
            lineage = (EMPTY if scope is None else leaving(scope)) | _received(options, carried, scope)
        else:
            lineage = lineage_outside(Direction.MESSAGE_OUT.words) if scope is None else leaving(scope)
        if own is not None:
            lineage = lineage.including(own)
        text = message_text(lineage, lineage_out=options.lineage_out, sender=scope)
    if text is None and options.stamped and scope is not None and options.store.records and _may_leave(options):
        return outgoing_text(EMPTY.serialize(), trust_settings(), Purpose.MESSAGE)
    return text


def _may_leave(options: QueueOptions) -> bool:
    return judge_message_out(trust_settings(), options.lineage_out).accepted


def _came_with(scope: Scope | None, carried: Mapping[str, Any]) -> bool:
    """Whether these are headers of the very message that the scope was opened for: their lineage is in the scope."""
    delivery = None if scope is None else scope.delivery
    if not isinstance(delivery, MessageDelivery):
        return False
    return all(delivery.headers.get(name) == value for name, value in carried.items())


def _received(options: QueueOptions, carried: Mapping[str, Any], scope: Scope | None) -> Lineage:
    """The lineage of another message whose headers are sent here, as far as it may be believed."""
    sender = f"a message to {options.store.name}"
    with message_scope(carried, lineage_in=options.lineage_in, sender=sender) as other:
        recording = recorder()
        if recording is not None and scope is not None:
            recording.joined(other, scope)
        if scope is None and any(gap.reason == "untrusted" for gap in other.gaps):
            return other.lineage | lineage_outside(Direction.MESSAGE_OUT.words)  # what said what it depends on goes
        return other.lineage
