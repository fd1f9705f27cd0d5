"""What is about to be written and no client has seen yet: a mapper sends its statements at the end (SCOPE-27)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_sources: tuple[Callable[[Any], None], ...] = ()
"""Each takes a scope, which imports this module."""


def ask(source: Callable[[Any], None]) -> None:
    """Ask this source from now on, whenever a scope's lineage is handed out or waited for.

    It makes pending in the scope (`Scope.begin`) what is about to be written there, ends what is not any more, and
    never raises.
    """
    global _sources
    if source not in _sources:
        _sources += (source,)


def look(scope: Any) -> None:
    """Have the sources say what is about to be written in a scope."""
    for source in _sources:
        source(scope)
