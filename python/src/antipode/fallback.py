"""`read_or_fallback`: reads here after a barrier, or elsewhere where it does not pass in time (spec BAR-46)."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from antipode import telemetry
from antipode.barrier import barrier, barrier_async
from antipode.errors import BarrierTimeout
from antipode.result import BarrierResult
from antipode.settings import settings

_T = TypeVar("_T")
_fallbacks = 0
_fallbacks_lock = threading.Lock()


@contextmanager
def _fallback_place() -> Iterator[bool]:
    global _fallbacks
    with _fallbacks_lock:
        placed = _fallbacks < settings().max_fallbacks
        _fallbacks += placed
    telemetry.fallback("run" if placed else "refused")
    try:
        yield placed
    finally:
        if placed:
            with _fallbacks_lock:
                _fallbacks -= 1


def read_or_fallback(read: Callable[[], _T], fallback: Callable[[], _T], **options: Any) -> _T:
    """Reads here after a barrier, or elsewhere (the primary) where the barrier does not pass in time.

    At most `max_fallbacks` fallbacks run at once, so that a lagging replica does not become an overloaded primary;
    past that it raises what `on_timeout="raise"` raises. Takes the options of `barrier` but the policies.
    """
    result = barrier(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return read()
    with _fallback_place() as placed:
        if not placed:
            raise _refused(result)
        return fallback()


async def read_or_fallback_async(
    read: Callable[[], Awaitable[_T]], fallback: Callable[[], Awaitable[_T]], **options: Any
) -> _T:
    """`read_or_fallback` for asyncio."""
    result = await barrier_async(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return await read()
    with _fallback_place() as placed:
        if not placed:
            raise _refused(result)
        return await fallback()


def _refused(result: BarrierResult) -> Exception:
    return BarrierTimeout(f"no fallback: {settings().max_fallbacks} run already\n{result.explain()}", result)


def after_fork() -> None:
    """In the child of a fork: the fallbacks that run are the parent's."""
    global _fallbacks, _fallbacks_lock
    _fallbacks, _fallbacks_lock = 0, threading.Lock()
