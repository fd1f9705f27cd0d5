"""Lineages at rest: a column `antipode` beside the row, which a trigger fills from the transaction's own setting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from antipode.exchange import give, take
from antipode.lineage import Lineage
from antipode.trust import Direction, judge_message_in, judge_message_out, report, trust_settings

COLUMN: Final = "antipode"
RESET: Final = b"RESET antipode.lineage"
_SET_LOCAL: Final = b"SELECT set_config('antipode.lineage', $1, true)"
_SET_SESSION: Final = b"SELECT set_config('antipode.lineage', $1, false)"


def set_local(pgconn: Any, text: str) -> Callable[[], None]:
    """A command of a pipeline: the lineage of what the transaction writes from here on."""
    return partial(pgconn.send_query_params, _SET_LOCAL, [text.encode()])


def set_session(pgconn: Any, text: str) -> Callable[[], None]:
    """The same for what commits by itself; to be followed by RESET."""
    return partial(pgconn.send_query_params, _SET_SESSION, [text.encode()])


def text_of(lineage: Lineage, lineage_out: bool) -> str:
    """The text that rests beside a row; empty where none does."""
    if not lineage:
        return ""
    trust = trust_settings()
    decision = judge_message_out(trust, None if lineage_out else False)
    if not decision.accepted:
        report(decision, Direction.MESSAGE_OUT)
        return ""
    return give(lineage, trust, Direction.MESSAGE_OUT) or ""


def lineage_of(value: Any, store: str, lineage_in: bool) -> Lineage:
    """The lineage that rests in a column's value; what cannot be read is incomplete for the store (SHIM-14)."""
    if value is None or not lineage_in:
        return Lineage()
    text = bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray | memoryview) else str(value)
    trust = trust_settings()
    taken = take(
        text.split(), lambda each: judge_message_in(each, trust, None), Direction.MESSAGE_IN, f"a row of {store}"
    )
    if any(reason == "malformed" for reason, _ in taken.gaps):
        return taken.lineage.vouched().marked_incomplete(store)
    return taken.lineage
