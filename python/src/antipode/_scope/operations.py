"""What applications do with the current scope (paper table 2, spec SCOPE)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from antipode._base.call_site import call_site
from antipode._base.observers import events
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import EMPTY, Lineage, check_lineage
from antipode._model.scope_values import Removal
from antipode._model.write_id import WriteId
from antipode._scope.context import current_block, enter
from antipode._scope.lost_writes import orphan
from antipode._scope.scope import Scope, current_scope, open_scope


@contextmanager
def scope(lineage: Lineage = EMPTY) -> Iterator[Scope]:
    """A new scope for the block, empty or starting from a lineage: `root() … stop()`."""
    with open_scope(lineage) as opened:
        events.on_lineage_arrived(opened, lineage)
        yield opened


@contextmanager
def detached_scope() -> Iterator[Scope]:
    """A copy of the current scope, for work that outlives the request (with `carry`)."""
    outer = current_scope()
    lineage = EMPTY if outer is None else outer.lineage
    with open_scope(lineage, kind="detached") as opened:
        if outer is not None:
            events.on_scopes_joined(outer, opened)
        yield opened


def root() -> Scope:
    """Opens a new, empty scope and makes it the current one (paper table 2); it never clears a shared one."""
    opened = Scope()
    opened._outer = current_scope()
    opened.open_within(opened._outer)
    enter(opened)
    return opened


def stop() -> None:
    """Ends the current scope (paper table 2); what was current before it is current again."""
    current = current_scope()
    if current is not None:
        current.stop()
        enter(current._outer)


def append(*ids: WriteId) -> None:
    """Adds writes to the current scope; outside any scope they are counted as orphans, with the site."""
    current = current_scope()
    if current is not None:
        current.append(*ids)
    elif ids:
        orphan(ids[0].store)


def remove(what: WriteId | str | Lineage | None = None, *, incomplete: bool = False) -> Removal:
    """Takes something out of the current scope's lineage; see `Scope.remove`."""
    current = current_scope()
    return Removal(EMPTY, ()) if current is None else current.remove(what, incomplete=incomplete)


def transfer(lineage: Lineage) -> None:
    """Make the current scope depend on a lineage (paper table 2); outside a scope it counts as an orphan (SCOPE-9)."""
    check_lineage(lineage, "antipode.transfer()")
    current = current_scope()
    if current is not None:
        current.transfer(lineage)
    elif lineage:
        orphan(next(iter(lineage.stores), ""))


def serialize() -> str:
    """The current scope's lineage as text, as it may leave now (paper table 2).

    Raises ConfigurationError outside any scope: that is no empty lineage (SCOPE-22).
    """
    current = current_scope()
    if current is None:
        raise ConfigurationError(
            f"antipode.serialize() was called outside any scope. (site: {call_site()})", code="AP101"
        )
    lineage = current.outgoing()
    handing_over = current_block(current)
    return (lineage if handing_over is None else handing_over.hand_over(lineage)).serialize()


def deserialize(text: str) -> Lineage:
    """Reads a lineage text; raises MalformedLineageError (paper table 2)."""
    return Lineage.deserialize(text)
