"""Forks: scopes, pollers, channels, watermarks and locks stay with the parent; a child begins without (SCOPE-13)."""

from __future__ import annotations

import os

from antipode import announcement, answering, fallback, logs, recorder, records, settings
from antipode.scope_context import after_fork as leave_scopes
from antipode.store import registry


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
