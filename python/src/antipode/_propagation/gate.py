"""Between a scope and the texts that come and go: trust, budget, pending writes (spec PROP, TRUST)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.observers import events
from antipode._base.settings import Mode, settings
from antipode._model import display
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.wire import MAX_ENTRIES
from antipode._scope import lost_writes
from antipode._scope.context import current_block
from antipode._scope.pending_write import PendingWrite
from antipode._scope.scope import Scope, current_scope
from antipode._trust.trust import Decision, Direction, Purpose, Reason, TrustSettings, outgoing_text, report

MOST_TEXTS: Final = 16
MOST_OCTETS: Final = 16_384
"""Of the distinct lineage texts of one receipt that are read (WIRE-40)."""
_PURPOSES: Final = {
    Direction.REQUEST_OUT: Purpose.REQUEST,
    Direction.RESPONSE_OUT: Purpose.RESPONSE,
    Direction.MESSAGE_OUT: Purpose.MESSAGE,
}

_MESSAGE: Final = "msg"
"""The tag of the extension that names a message while a history is recorded (HIST-30)."""
_MESSAGE_NAME: Final = re.compile(r"[0-9a-zA-Z]{1,40}")

Judge = Callable[[str], Decision]


class ReceivedLineage:
    """What came of texts that arrived: the lineage to join, and why something is missing from it."""

    __slots__ = ("gaps", "lineage", "messages", "missing")

    def __init__(self) -> None:
        self.lineage = EMPTY
        self.gaps: list[tuple[str, str]] = []
        self.messages: list[str] = []
        """What the texts are called in a recorded history."""
        self.missing: list[str] = []
        """Why it is incomplete, to be counted once its scope is known: `note_in` or `tell`."""

    def note_in(self, scope: Scope) -> None:
        """Keeps the reasons for the `gaps` of this scope's barriers (TRUST-27); a recorded history has the receipt."""
        if settings().history and (self.lineage or self.messages):
            events.on_lineage_received(scope, self.messages, self.lineage)
        self.tell(scope)
        for reason, detail in self.gaps:
            scope.note_gap(reason, "", detail)
        if self.lineage.incomplete and not self.gaps and settings().mode is Mode.DRY_RUN:
            for store in sorted(self.lineage.incomplete):
                events.on_incomplete_lineage_received(store, scope)

    def tell(self, scope: Scope | None = None) -> None:
        """Count what is missing, as of this scope or else the current one (OBS-2, REC-17)."""
        for reason in self.missing:
            events.on_lineage_incomplete(reason, "", scope)


def take(texts: Iterable[str], judge: Judge, direction: Direction, sender: str) -> ReceivedLineage:
    """Judges each text and reads what is believed; raises nothing (TRUST-1, WIRE-25).

    What cannot be read, or lies beyond the bounds of a receipt (WIRE-40, WIRE-41), makes the result incomplete
    anywhere; what is not believed does so only under `key`, or anybody could switch strict barriers off from outside
    (TRUST-28).
    """
    taken = ReceivedLineage()
    told: dict[tuple[str, ...], Decision] = {}
    seen: set[str] = set()
    malformed = octets = 0
    oversize = False
    for text in texts:
        if text in seen:
            continue
        octets += len(text)
        if len(seen) == MOST_TEXTS or octets > MOST_OCTETS:
            oversize = True
            break
        seen.add(text)
        decision = judge(text)
        if decision.reason is not Reason.NONE:
            told[decision.reason, decision.about, decision.header] = decision
        if not decision.accepted:
            if decision.reason is not Reason.SEAL:
                break  # the caller is not believed, whatever else it sent
            continue
        try:
            lineage = Lineage.deserialize(decision.text)
        except MalformedLineageError:
            malformed += 1
            events.on_lineage_dropped("malformed", direction.value)
            continue
        messages: list[str] = []
        if lineage.extensions:
            lineage, messages = messages_of(lineage)
        joined = lineage if taken.lineage is EMPTY else taken.lineage | lineage
        if joined is not lineage and joined.most_entries() > MAX_ENTRIES and len(joined) > MAX_ENTRIES:
            oversize = True
        else:
            taken.lineage = joined
            taken.messages += messages
    if taken.lineage:
        lost_writes.know_lineage()
    for decision in told.values():
        _tell(taken, decision, direction, sender)
    if malformed:
        detail = f"a lineage from {_shown(sender)} ({direction.words}) could not be read"
        _lose(taken, "malformed", direction, detail, "AP405")
    if oversize:
        events.on_lineage_dropped("oversize", direction.value)
        detail = f"what {_shown(sender)} sent ({direction.words}) has more than 16 texts, 16,384 octets or 512 writes"
        _lose(taken, "oversize", direction, detail, "AP408")
    if taken.lineage and not malformed:
        events.on_lineage_sized(direction.value, len(taken.lineage.serialize()))
    return taken


def _shown(sender: str) -> str:
    return display.shown(sender) if sender else "a local peer"


def _lose(taken: ReceivedLineage, reason: str, direction: Direction, detail: str, code: str) -> None:
    """Something of a receipt is missing, and what was to be read of it has been."""
    taken.gaps.append((reason, detail))
    taken.missing.append(reason)
    logs.warn(f"{reason} {direction}", f"{detail}: what it held is missing.", count_as="dropped", code=code)
    taken.lineage = taken.lineage.marked_incomplete()


def _tell(taken: ReceivedLineage, decision: Decision, direction: Direction, sender: str) -> None:
    report(decision, direction, sender)
    if decision.accepted:
        return  # late, and genuine
    if decision.reason is Reason.SEAL:
        taken.gaps.append(("seal", f"a lineage ({direction.words}) was dropped: {decision.about}"))
        taken.missing.append("seal")
        taken.lineage = taken.lineage.marked_incomplete()
    else:
        taken.gaps.append(("untrusted", f"a lineage ({direction.words}) was dropped: {decision.reason}"))


def give(
    lineage: Lineage,
    trust: TrustSettings,
    direction: Direction,
    sender: Scope | None = None,
    told: Lineage | None = None,
    purpose: Purpose | None = None,
) -> str | None:
    """The text that leaves: within the budget, sealed if seals are asked for; None where nothing need leave.

    What the budget leaves out is marked in the text and counted; the scope's lineage stays whole (WIRE-36). `sender`:
    whose message it leaves with, for a recorded history; None for what rests beside a value. `told`: what that says of
    it, where it is more than leaves. `purpose`: of its seal, where the direction does not tell it.
    """
    message = "" if sender is None or not settings().history else events.on_message_named()
    if not lineage and not (message and told is not None):
        return None
    if message:
        lineage = _named(lineage, message)
    fits = fitted(lineage, settings().budget_bytes - trust.seal_length, direction, sender or current_scope())
    if message:
        events.on_lineage_sent(sender, message, fits if told is None else fits | told)
    text = outgoing_text(fits.serialize(), trust, purpose or _PURPOSES[direction])
    events.on_lineage_sized(direction.value, len(text))
    return text


def _named(lineage: Lineage, message: str) -> Lineage:
    """Return the lineage that leaves with this message, and names it (HIST-30)."""
    return lineage.with_extensions([*lineage.extensions, f"_.{_MESSAGE}.{message}"])


def messages_of(lineage: Lineage) -> tuple[Lineage, list[str]]:
    """Return a lineage that came in without the names of messages, and those (HIST-30)."""
    rest: list[str] = []
    found: list[str] = []
    for extension in lineage.extensions:
        fields = extension.split(".")
        if fields[1] != _MESSAGE:
            rest.append(extension)
        elif len(fields) == 3 and _MESSAGE_NAME.fullmatch(fields[2]):
            found.append(fields[2])
    return (lineage if len(rest) == len(lineage.extensions) else lineage.with_extensions(rest)), found


def fitted(lineage: Lineage, room: int, direction: Direction, scope: Scope | None) -> Lineage:
    """Return the lineage as far as it fits the budget and this room, in bytes; what is left out is marked and counted.

    `scope`: whose changes stay longest (WIRE-33).
    """
    budget = settings().budget_bytes
    room = min(room, budget)
    fits = lineage.fit(room, None if scope is None else scope.changed_stores)
    if fits is not lineage:
        left_out = sorted(set(lineage.stores) - set(fits.stores))
        for store in left_out:
            events.on_lineage_incomplete("budget", store)
        logs.warn(
            "budget",
            f"a lineage of {len(lineage.serialize())} bytes passes the budget: what it holds of "
            f"{display.listed(left_out)} was left out ({direction.words}). Raise ANTIPODE_BUDGET_BYTES ({budget} now).",
            code="AP406",
        )
    return fits


def lineage_outside(words: str, but: PendingWrite | None = None) -> Lineage:
    """Return what leaves outside any scope: empty, and incomplete where this process has known lineages (SCOPE-31).

    What is incomplete is counted, and said once a site. words: which way it goes. but: a write that makes no lineage
    known here (SCOPE-32).
    """
    if not lost_writes.knows_lineages(but) or settings().mode is Mode.OFF:
        return EMPTY
    site = call_site()
    events.on_lineage_incomplete("unscoped", "")
    logs.warn(
        f"unscoped {site}",
        f"what left outside any scope ({words}) is marked incomplete: nobody knows what it depends on. Hand "
        "the scope to the thread with antipode.carry(), or open one: with antipode.scope() what begins here depends "
        f"on nothing before it. site={site}",
        code="AP418",
    )
    return EMPTY.marked_incomplete()


def check_takers(scope: Scope | None, place: str) -> None:
    """Refuse to hand a task to a place that may give its message to several takers (BRANCH-28).

    Raises ConfigurationError in the block of a `branch()` that does not say `single_taker=True`.
    """
    block = None if scope is None else current_block(scope)
    if block is not None:
        block.check_place(place)


def leaving(scope: Scope, *, answered: bool = False, target: str = "") -> Lineage:
    """The scope's lineage as it may leave now; writes in flight are marked in the copy and counted (SCOPE-16).

    In the block of a `branch()` it is one for a task (BRANCH-4); else, where the caller waits to be `answered`, one for
    somebody in the same branches (BRANCH-6). `target`: the host, as far as it is known. Raises nothing but
    PendingWriteError under `on_pending=raise`, for tests.
    """
    lineage = scope.outgoing()
    for reason in sorted({gap.reason for gap in scope.passing_gaps}):
        events.on_lineage_incomplete(reason, "")
    if lineage is not scope.recorded_lineage:
        for store in sorted({write.store for write in scope.pending}):
            # There is a record of the pending write itself.
            events.on_lineage_incomplete("pending", store, is_recorded=False)
    if answered and settings().mode is Mode.DRY_RUN:
        events.on_lineage_passed_on(scope, target)
    block = current_block(scope)
    if block is not None:
        return block.hand_over(lineage)
    return scope.within(lineage) if answered else lineage
