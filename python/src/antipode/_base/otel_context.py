"""The caller's OpenTelemetry Context, which every operation on a scope begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry import context as otel
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext


def _context_getter() -> Callable[[], otel.Context]:
    """What `otel.get_current` comes down to with OpenTelemetry's own runtime context: a quarter of the time."""
    runtime = getattr(otel, "_RUNTIME_CONTEXT", None)
    if type(runtime) is ContextVarsRuntimeContext:
        variable = getattr(runtime, "_current_context", None)
        if isinstance(variable, ContextVar):
            return variable.get
    return otel.get_current


current_context: Final[Callable[[], otel.Context]] = _context_getter()
"""The OpenTelemetry Context of the caller."""


@contextmanager
def hold(key: str, value: object) -> Iterator[None]:
    """Have the Context hold a value for the block, and what it held before behind it.

    A generator that is left suspended in the block may be ended anywhere: nothing else of the Context there is changed
    (SCOPE-33).
    """
    context = otel.set_value(key, value)
    before = otel.get_value(key)
    token = otel.attach(context)
    try:
        yield
    finally:
        now = current_context()
        if now is context:
            otel.detach(token)
        elif now.get(key) is value:
            otel.attach(otel.set_value(key, before, now))
