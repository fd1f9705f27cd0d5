"""Lineages at rest: a column `antipode` beside the row, which a trigger fills from the transaction's own setting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

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
