"""The shim contract: what a datastore owes Antipode (DESIGN 7, spec SHIM).

A shim says what its store can do and answers one question; the core does deadlines, parallel waits, polling, single
flight and overload.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from antipode._base import logs
from antipode._base.background import Background, Bell
from antipode._base.bounded import BoundedMap
from antipode._base.call_site import call_site, skip_packages
from antipode._base.observers import events
from antipode._base.otel_context import current_context, hold
from antipode._base.settings import settings_generation
from antipode._diagnostics.dryrun.followed_reads import quietly
from antipode._diagnostics.history.recorder import GONE, THERE, KeyChange, note_write, noting, value_digest
from antipode._engine.poller import is_connected
from antipode._engine.waiting import LOOK_S
from antipode._model import display, wire
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import NOT_YET, VISIBLE, UnprovenKind, Visibility, not_yet, unproven
from antipode._model.wire import MAX_COUNTER, is_hashed
from antipode._propagation.at_rest import lineage_at_rest, lineage_beside, lineage_unscoped, text_at_rest
from antipode._propagation.questions import OpenQuestion, Questions, join_message
from antipode._scope.context import scope_in
from antipode._scope.lost_writes import begun_outside
from antipode._scope.pending_write import PendingWrite, current_task, noted_site, notes_sites
from antipode._scope.reading import Reading, current_reading, reading_in
from antipode._store.branch_table import BranchTable
from antipode._store.contract import Capabilities, Server, ServerSource, Shim, Store, Watch
from antipode._store.envelope import OpenedEnvelope, close_envelope, open_envelope
from antipode._store.epochs import judge_position
from antipode._store.hybrid_clock import NODE_BITS, PLACE_BITS, HybridClock, place_number, seconds_of
from antipode._store.read import PLAIN, Keys, Read, ReadValue, WrappedClient
from antipode._store.store import Replicas, StoreOptions, Write, join_store, note_marks, stores
from antipode._trust.addresses import parse_address
from antipode._trust.trust import Direction, Purpose, outgoing_text, trust_settings

__all__ = [
    "GONE",
    "LOOK_S",
    "MAX_COUNTER",
    "NODE_BITS",
    "NOT_YET",
    "PLACE_BITS",
    "PLAIN",
    "THERE",
    "VISIBLE",
    "Background",
    "Bell",
    "BoundedMap",
    "BranchTable",
    "Capabilities",
    "Direction",
    "HybridClock",
    "KeyChange",
    "Keys",
    "OpenQuestion",
    "OpenedEnvelope",
    "PendingWrite",
    "Purpose",
    "Questions",
    "Read",
    "ReadValue",
    "Reading",
    "Replicas",
    "Server",
    "ServerSource",
    "Shim",
    "Store",
    "StoreOptions",
    "UnprovenKind",
    "Visibility",
    "Watch",
    "WrappedClient",
    "Write",
    "begun_outside",
    "call_site",
    "close_envelope",
    "current_context",
    "current_reading",
    "current_task",
    "display",
    "events",
    "hold",
    "is_connected",
    "is_hashed",
    "join_message",
    "join_store",
    "judge_position",
    "lineage_at_rest",
    "lineage_beside",
    "lineage_unscoped",
    "logs",
    "not_yet",
    "note_marks",
    "note_write",
    "noted_site",
    "notes_sites",
    "noting",
    "open_envelope",
    "outgoing_text",
    "parse_address",
    "place_number",
    "quietly",
    "reading_in",
    "scope_in",
    "seconds_of",
    "settings_generation",
    "skip_packages",
    "stores",
    "text_at_rest",
    "trust_settings",
    "unproven",
    "value_digest",
    "wire",
    "wrapper",
]

_C = TypeVar("_C")


def refuse_making(made: object, *_: object, **__: object) -> NoReturn:
    """Refuse the object that the class of a wrapped one makes, as its `__init__`: it would record nothing (SHIM-50)."""
    mro = (made if isinstance(made, type) else type(made)).__mro__
    kind = next(each for each in mro if not any(base.__module__.startswith("antipode") for base in each.__mro__))
    raise ConfigurationError(
        f"the class of a wrapped {kind.__name__} makes no other one, which would record nothing: make it by "
        f"{kind.__module__}.{kind.__qualname__} itself, and give that to wrap()",
        code="AP505",
    )


def wrapper(shim: type[Shim], *, client: type[_C], wrapped: type[_C]) -> Callable[..., _C]:
    """Makes the `wrap` function of a simple shim (API section 3k).

    `wrap(client, store="name", **options)` returns a copy of the client, of class `wrapped`, that shares its
    connections and finds its store in `self._store`. The one passed in stays plain.
    """

    def wrap(plain: _C, store: str, *, replicas: Replicas = None, **options: Any) -> _C:
        if not isinstance(plain, client):
            raise TypeError(f"wrap() takes a {client.__name__}, not {type(plain).__name__}")
        joined = join_store(store, shim, StoreOptions(replicas=replicas, **options))
        joined.use_server(plain, listed=replicas is not None)
        result = copy.copy(plain)
        result.__class__ = wrapped
        result._store = joined  # type: ignore[attr-defined]
        return result

    return wrap
