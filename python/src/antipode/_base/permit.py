"""The permit with which a request runs under a throttle: a barrier that waits gives it back meanwhile (spec THR-4).

The engine knows nothing else of throttles. The permit is in the caller's OpenTelemetry Context, so that it goes with
the request into tasks and, by `carry`, into threads.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, Protocol, cast

from antipode._base.otel_context import current_context, hold

_KEY: Final = "antipode-permit"


class Permit(Protocol):
    """A throttled request's leave to run."""

    def park(self) -> None:
        """Give it back: the request waits in a barrier, and does no work. Never blocks, never raises."""

    def resume(self) -> None:
        """Take it again at once. Each `park` is followed by one; never blocks, never raises."""


def current_permit() -> Permit | None:
    """Return the permit of the request that runs here, or None."""
    return cast("Permit | None", current_context().get(_KEY))


def hold_permit(permit: Permit) -> AbstractContextManager[None]:
    """Have what runs in the block find this permit."""
    return hold(_KEY, permit)
