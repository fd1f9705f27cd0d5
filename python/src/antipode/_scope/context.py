"""Which scope is the current one, as the OpenTelemetry Context holds it (spec SCOPE)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from opentelemetry import context as otel

from antipode._base.otel_context import current_context
from antipode._model.branch_ids import BranchId
from antipode._model.lineage import Lineage

_SCOPE: Final = otel.create_key("antipode-scope")
BLOCK: Final = otel.create_key("antipode-branch")
"""In the Context: the block of a `branch()`."""
_innermost: Final = ContextVar["ScopeLike | None"]("antipode-innermost", default=None)
"""The scope of the innermost block here. A tracing span that was left suspended puts back its Context, and not this."""
_process = object()
"""Stands for this process: the child of a fork is another, where the scopes from before are none (SCOPE-13)."""


class ScopeLike(Protocol):
    """What is needed here of a scope."""

    process: object

    @property
    def closed(self) -> bool: ...

    def is_within(self, other: Any) -> bool: ...

    def mark_incomplete(self, reason: str, *stores: str, detail: str = "") -> None: ...


_S = TypeVar("_S", bound=ScopeLike)


class BranchHandover(Protocol):
    """The block of a `branch()`: what leaves in it goes to a task."""

    scope: Any

    def hand_over(self, lineage: Lineage) -> Lineage:
        """Announces a branch in the scope; the lineage for the task's text, of what would leave without it."""

    def take(self, lineage: Lineage) -> tuple[BranchId, Lineage] | None:
        """Announce a branch in the scope; return it and the lineage that its task begins with. None after the block."""

    def close_carried(self, scope: Any) -> None:
        """Close the branches whose task the scope of a carried function is; never raise (BRANCH-10)."""

    def check_place(self, place: str) -> None:
        """Refuse a place that may give one text to several takers (BRANCH-28)."""


def this_process() -> object:
    """What a scope keeps to know the process that it was opened in."""
    return _process


def held_scope() -> Any:
    """Return the scope of the running request, message or task; None outside any. `current_scope` has its type."""
    return scope_in(current_context())


def scope_in(context: otel.Context) -> Any:
    """Return the scope that a Context holds, for who has it at hand; None where that is of the parent of a fork."""
    found: Any = context.get(_SCOPE)
    return found if found is None or found.process is _process else None


def after_fork() -> None:
    """In the child of a fork: no scope of the parent is one here, in whichever Context it stands."""
    global _process
    _process = object()


def current_block(scope: ScopeLike, context: otel.Context | None = None) -> BranchHandover | None:
    """The block of a `branch()` of this very scope in which the caller is; None outside any."""
    found: Any = (current_context() if context is None else context).get(BLOCK)
    return found if found is not None and found.scope is scope else None


def in_context(scope: ScopeLike | None, context: otel.Context | None = None) -> otel.Context:
    """A Context that holds this scope."""
    return otel.set_value(_SCOPE, scope, context)


def enter(scope: ScopeLike | None) -> None:
    """Make a scope the current one from here on, or none."""
    otel.attach(in_context(scope))
    _innermost.set(scope)


def went_by() -> ScopeLike | None:
    """Return the open scope in whose block this is, where the Context does not hold it any more (SCOPE-34)."""
    scope = _innermost.get()
    if scope is None or scope.closed or scope.process is not _process or scope is held_scope():
        return None
    return scope


@contextmanager
def activate(scope: _S, context: otel.Context | None = None) -> Iterator[_S]:
    """Make a scope the current one for the block, without closing it; the Context is to hold it.

    A generator that was left suspended in the block is ended anywhere: by another thread, or while the scope of another
    request is current, which stays so (SCOPE-33). One within this scope that is current goes with it: nobody can tell
    whether its block is over, so it is incomplete from then on. A scope that has ended is put out of force, too, where
    this is the innermost block (SCOPE-34).
    """
    if context is None:
        context = in_context(scope)
    token, before = otel.attach(context), _innermost.get()
    _innermost.set(scope)
    try:
        yield scope
    finally:
        is_innermost = _innermost.get() is scope
        if is_innermost:
            _innermost.set(before)
        now = current_context()
        current = scope if now is context else scope_in(now)
        if current is scope or (current is not None and current.closed and is_innermost):
            otel.detach(token)
        elif current is not None and current.is_within(scope):
            if not current.closed:
                current.mark_incomplete("unscoped", detail="the scope round it ended while it was current")
            otel.detach(token)
