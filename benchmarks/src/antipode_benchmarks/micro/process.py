"""A process of its own for each figure: fresh stores and settings, as a service has them, and none of a test's logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from antipode._base.settings import reset_settings
from antipode._diagnostics import telemetry
from antipode._store.store import Registry, replace_registry


@contextmanager
def fresh() -> Iterator[None]:
    """An empty registry and fresh settings for the block; at its end the threads of its stores end."""
    before = replace_registry(Registry())
    reset_settings()
    telemetry.reset()
    try:
        yield
    finally:
        for store in replace_registry(before).all():
            store.forget()
        reset_settings()
        telemetry.reset()
