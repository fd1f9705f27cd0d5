"""Forks: scopes, pollers, channels, watermarks and locks stay with the parent; a child begins without (SCOPE-13)."""

from __future__ import annotations

import os

from antipode._base import logs, settings
from antipode._diagnostics import announcement
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.history import recorder
from antipode._engine import fallback
from antipode._facade import answering
from antipode._scope.context import after_fork as leave_scopes
from antipode._store.store import registry


def _after_fork_in_child() -> None:
    leave_scopes()
    announcement.after_fork()
    logs.after_fork()
    records.after_fork()
    recorder.after_fork()
    fallback.after_fork()
    answering.after_fork()
    settings.after_fork()
    registry().after_fork()


def install() -> None:
    """Registers what a forked child does first; called once, when the package is imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork_in_child)
