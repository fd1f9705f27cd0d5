"""What becomes of requests that are under way when the mode leaves `off` (spec SCOPE-26)."""

from __future__ import annotations

import gc

from antipode.scope import Scope

_DETAIL = "the mode was off while it was open: what it wrote and heard then is not recorded"


def mark_open_scopes() -> None:
    """Mark each open scope incomplete: it may have written, or heard of writes, while nothing was recorded.

    The scopes are looked for among all objects, so that a request pays nothing for what an operator does once.
    """
    for found in gc.get_objects():
        if type(found) is Scope and not found.closed:
            found.mark_incomplete("mode", detail=_DETAIL)
