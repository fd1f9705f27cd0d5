"""What becomes of requests that are under way when the mode leaves `off` (spec SCOPE-26)."""

from __future__ import annotations

import gc
from collections.abc import Collection
from typing import Any

from antipode._scope.context import this_process
from antipode._scope.scope import Scope

_DETAIL = "the mode was off while it was open: what it wrote and heard then is not recorded"


def mark_open_scopes(besides: Collection[Scope] = ()) -> set[Scope]:
    """Mark each open scope incomplete: it may have written, or heard of writes, while nothing was recorded.

    The scopes are looked for among all objects, so that a request pays nothing for what an operator does once. Those
    of `besides` are left out; returns the others.
    """
    found = {each for each in gc.get_objects() if _is_open_scope(each) and each not in besides}
    for scope in found:
        scope.mark_incomplete("mode", detail=_DETAIL)
    return found


def _is_open_scope(each: Any) -> bool:
    """Return whether an object is an open scope of this process: one of a fork's parent may have its lock held.

    A scope that another thread makes just now is none yet: `process` is what it gets last.
    """
    # Not isinstance: it asks a proxy of another library what it stands for.
    return issubclass(type(each), Scope) and getattr(each, "process", None) is this_process() and not each.closed
