"""Writes that no scope takes, or whose lineage comes too late for somebody: counted, said and recorded (spec SCOPE)."""

from __future__ import annotations

from collections.abc import Iterable

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.observers import Write, events
from antipode._base.settings import Mode, settings
from antipode._model import display
from antipode._scope.context import went_by
from antipode._scope.pending_write import PendingWrite


class _Process:
    has_lineages = False
    first: list[PendingWrite] = []  # noqa: RUF012
    """The write that began outside any scope before anything else was known, if that is all there is."""


def know_lineage() -> None:
    """Note that this process has known a lineage, so that what it sends outside any scope may depend on one."""
    _Process.has_lineages = True


def begun_outside(write: PendingWrite) -> None:
    """Note that a write began outside any scope: what leaves before its end may depend on it."""
    if not _Process.has_lineages:
        _Process.first.append(write)
        if len(_Process.first) > 1:
            know_lineage()
            _Process.first.clear()


def knows_lineages(but: PendingWrite | None = None) -> bool:
    """Return whether a scope of this process has held a lineage, or a write began outside any (SCOPE-31).

    but: a write that does not count, for what rests beside itself (SCOPE-32).
    """
    if any(write is not but for write in list(_Process.first)):  # first: a second write clears it behind the flag
        return True
    return _Process.has_lineages


def forget_lineages() -> None:
    """Begin as a process that has known none (tests)."""
    _Process.has_lineages = False
    _Process.first.clear()


def _mark_who_lacks_it() -> None:
    """Mark the scope in whose block something came that another scope, or none, took (SCOPE-34)."""
    scope = went_by()
    if scope is not None:
        scope.mark_incomplete("unscoped", detail="another Context was put in force while it ran: a span's, perhaps")


def orphan(store: str) -> None:
    """Counts a write that no scope records."""
    know_lineage()
    _mark_who_lacks_it()
    site = call_site()
    events.on_write_lost("orphan", store, site)
    logs.warn(
        f"orphan {site}",
        f"a write to {display.shown(store)} was made outside any scope, so nothing can wait for it. Open one with a "
        f"middleware or antipode.scope(); in a thread use antipode.carry(). site={site}",
        code="AP401",
    )


def of_closed_scope(store: str, opened_by: str) -> None:
    """Counts a write that came when its scope had ended (SCOPE-4)."""
    _mark_who_lacks_it()
    site = call_site()
    events.on_write_lost("closed", store, site)
    logs.warn(
        f"closed-scope {site}",
        f"dropped a write to {display.shown(store) or 'a store'}: its scope ({opened_by}) has ended. For work "
        f"that outlives the request use antipode.detached_scope(). site={site}",
        code="AP402",
    )


def after_header(store: str) -> None:
    """Counts a write that came when the response's header had left (PROP-16)."""
    events.on_write_late(store, call_site())


def in_flight(writes: Iterable[PendingWrite]) -> None:
    """In dry-run: a lineage leaves while other tasks' writes are in flight (SCOPE-18)."""
    if settings().mode is Mode.DRY_RUN:
        for write in writes:
            if not write.unknown:
                events.on_write_concurrent(call_site(), Write(write.store, write.site))
