"""Lineages beside values: what may be written there, and what is taken from there (spec TRUST, SHIM-14)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antipode._model.lineage import EMPTY, Lineage
from antipode._propagation.gate import give, lineage_outside, take
from antipode._scope.pending_write import PendingWrite
from antipode._scope.scope import Scope
from antipode._store.write import Write
from antipode._trust.trust import Direction, Purpose, judge_message_in, judge_message_out, report, trust_settings


def text_at_rest(lineage: Lineage, lineage_out: bool) -> str:
    """The text that rests beside a value, sealed where seals are asked for; empty where none does."""
    if not lineage:
        return ""
    trust = trust_settings()
    decision = judge_message_out(trust, None if lineage_out else False)
    if not decision.accepted:
        report(decision, Direction.MESSAGE_OUT)
        return ""
    return give(lineage, trust, Direction.MESSAGE_OUT, purpose=Purpose.VALUE) or ""


def lineage_unscoped(lineage_out: bool, write: PendingWrite | None = None) -> Lineage:
    """Return what is to rest beside a value that is written outside any scope: it may be incomplete (SCOPE-32).

    write: the value's own, where it has begun.
    """
    if not judge_message_out(trust_settings(), None if lineage_out else False).accepted:
        return EMPTY  # nothing may rest there, so nothing is told as lost
    return lineage_outside("value out", write)


def lineage_beside(scope: Scope | None, write: Write | None, lineage_out: bool) -> Lineage:
    """Return what of this scope may rest beside a value that a write puts down now: others in flight are marked.

    write: the value's own, in all its scopes, where it has begun.
    """
    parts = () if write is None else write.parts
    if scope is None:
        return lineage_unscoped(lineage_out, next((part for part in parts if part.scope is None), None))
    stores = {pending.store for pending in scope.pending if not any(pending is part for part in parts)}
    lineage = scope.recorded_lineage
    return lineage.marked_incomplete(*sorted(stores)) if stores else lineage


def lineage_at_rest(value: Any, store: str, lineage_in: bool) -> Lineage:
    """The lineage that rests beside a value: text, octets, or several texts; None for none.

    Texts between white space are joined. What cannot be read is incomplete for the store (SHIM-14).
    """
    if value is None or not lineage_in:
        return EMPTY
    trust = trust_settings()
    taken = take(
        _texts(value),
        lambda text: judge_message_in(text, trust, None, purpose=Purpose.VALUE),
        Direction.MESSAGE_IN,
        f"a value of {store}",
    )
    taken.tell()
    if {reason for reason, _ in taken.gaps} == {"malformed"}:
        return taken.lineage.vouched().marked_incomplete(store)
    return taken.lineage


def _texts(value: Any) -> list[str]:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1").split()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value).split()
    return [text for each in value for text in _texts(each)]
