"""`read_or_fallback`: reads here after a barrier, or elsewhere where it does not pass in time (spec BAR-46)."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

from antipode._base.observers import events
from antipode._base.settings import settings
from antipode._engine.barrier import barrier, barrier_async
from antipode._engine.judgement import unproven_error
from antipode._model.branch_ids import BRANCHES
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.result import BarrierResult, BarrierTimeout
from antipode._model.verdict import Verdict
from antipode._scope.reading import current_reading, reading
from antipode._scope.scope import current_scope

OnUnprovenFallback: TypeAlias = Literal["raise", "proceed"]
_T = TypeVar("_T")
_fallbacks = 0
_fallbacks_lock = threading.Lock()


@contextmanager
def _fallback_place() -> Iterator[bool]:
    global _fallbacks
    with _fallbacks_lock:
        placed = _fallbacks < settings().max_fallbacks
        _fallbacks += placed
    events.on_fallback("run" if placed else "refused")
    try:
        yield placed
    finally:
        if placed:
            with _fallbacks_lock:
                _fallbacks -= 1


def read_or_fallback(
    read: Callable[[], _T], fallback: Callable[[], _T], *, on_unproven: OnUnprovenFallback = "raise", **options: Any
) -> _T:
    """Read here after a barrier, or elsewhere (the primary) where the barrier does not pass in time (spec BAR-46).

    The other place is judged, too: each read of a wrapped client in `fallback` first waits until the writes are there,
    on its own connection (as inside `reading(after=…)`), and raises BarrierTimeout or BarrierUnproven where they are
    not: after a failover the primary may have lost them. What `fallback` asks of a plain client nobody judges.

    A store that is unproven raises BarrierUnproven, without the second read; `on_unproven="proceed"` tries that.
    At most `max_fallbacks` run at once, so that a lagging replica does not become an overloaded primary; past that it
    raises BarrierTimeout. Takes the other options of `barrier` but the policies.
    """
    after = _asked_for(options, on_unproven)
    result = barrier(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return read()
    _check(result, on_unproven)
    with _fallback_place() as placed, _judged(after):
        if not placed:
            raise _refused(result)
        return fallback()


async def read_or_fallback_async(
    read: Callable[[], Awaitable[_T]],
    fallback: Callable[[], Awaitable[_T]],
    *,
    on_unproven: OnUnprovenFallback = "raise",
    **options: Any,
) -> _T:
    """`read_or_fallback` for asyncio."""
    after = _asked_for(options, on_unproven)
    result = await barrier_async(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return await read()
    _check(result, on_unproven)
    with _fallback_place() as placed, _judged(after):
        if not placed:
            raise _refused(result)
        return await fallback()


def _asked_for(options: Mapping[str, Any], on_unproven: str) -> Callable[[], Lineage]:
    """Return what gives the lineage that is judged, once the barrier is over: it may have resolved branches."""
    if on_unproven not in ("raise", "proceed"):
        raise ConfigurationError(f"read_or_fallback(on_unproven={on_unproven!r}): want raise or proceed", code="AP111")
    given, names = options.get("lineage"), options.get("stores")

    def after() -> Lineage:
        scope = current_scope()
        lineage: Lineage = given if given is not None else EMPTY if scope is None else scope.lineage
        return lineage if names is None else Lineage([each for name in names for each in lineage.of_store(name)])

    return after


def _check(result: BarrierResult, on_unproven: str) -> None:
    if BRANCHES in result.stores:
        words = f"no fallback: what open branches write is known nowhere\n{result.explain()}"
        raise BarrierTimeout(words, result, code="AP210")
    lost = [name for name, store in result.stores.items() if store.verdict is Verdict.UNPROVEN]
    if lost and on_unproven == "raise":
        raise unproven_error(result, lost)


@contextmanager
def _judged(after: Callable[[], Lineage]) -> Iterator[None]:
    """Have each read inside wait for the lineage first; what is read counts for the caller's own `reading()`, too."""
    outer = current_reading()
    lineage = after()
    if outer is not None and outer.after is not None:
        lineage |= outer.after
    with reading(after=lineage) as seen:
        yield
    if outer is not None:
        outer.saw(lineage=seen.lineage)


def _refused(result: BarrierResult) -> Exception:
    words = f"no fallback: {settings().max_fallbacks} run already\n{result.explain()}"
    return BarrierTimeout(words, result, code="AP114")


def after_fork() -> None:
    """In the child of a fork: the fallbacks that run are the parent's."""
    global _fallbacks, _fallbacks_lock
    _fallbacks, _fallbacks_lock = 0, threading.Lock()
