"""Antipode: cross-service causal consistency.

A request's writes, made by many services to many unlike datastores, form a lineage. It travels with the request,
comes back with responses and rests beside the data; `barrier()` waits until its writes are visible here.
"""

from importlib import import_module
from types import ModuleType

from antipode._base import observers
from antipode._base.settings import Mode, Settings, Trust, settings
from antipode._diagnostics import announcement, telemetry
from antipode._diagnostics.dryrun import followed_reads, records
from antipode._diagnostics.history import recorder
from antipode._engine.barrier import barrier, barrier_async
from antipode._engine.fallback import read_or_fallback, read_or_fallback_async
from antipode._engine.store_servers import RegionStore
from antipode._facade import forks
from antipode._facade.branches import Branch, branch, close, close_async
from antipode._facade.configuration import configure
from antipode._model.errors import (
    AntipodeError,
    BlockingCallError,
    ConfigurationError,
    MalformedLineageError,
    PendingWriteError,
    UnfitStoreError,
    UnknownStoreError,
)
from antipode._model.lineage import EMPTY, Lineage, Order
from antipode._model.result import (
    BarrierError,
    BarrierIncomplete,
    BarrierResult,
    BarrierTimeout,
    BarrierUnproven,
    Redeliver,
    ServerResult,
    StoreResult,
)
from antipode._model.scope_values import Gap, Removal
from antipode._model.verdict import Reach, UnprovenKind, Verdict
from antipode._model.write_id import Opaque, Ordered, Version, WriteId
from antipode._scope.carry import carry, carry_all
from antipode._scope.operations import (
    append,
    deserialize,
    detached_scope,
    remove,
    root,
    scope,
    serialize,
    stop,
    transfer,
)
from antipode._scope.reading import Reading, reading
from antipode._scope.scope import Scope, current_scope
from antipode._store.store import Registry, Store, stores
from antipode.messages import message_scope

__version__ = "0.1.0"

Registry.store_type = RegionStore
forks.install()
observers.add(announcement.Announcement())
observers.add(records.DryRun())
observers.add(followed_reads.FollowedReads())
observers.add(recorder.History())
observers.add(telemetry.Telemetry())

_SUBMODULES = frozenset(
    {
        "asgi",
        "celery",
        "delegated",
        "faststream",
        "grpc",
        "httpx",
        "memory",
        "propagation",
        "requests",
        "session",
        "shim",
        "testing",
        "throttle",
        "wsgi",
    }
)


def __getattr__(name: str) -> ModuleType:
    """`antipode.asgi` and the like without an import of their own, loaded with what they need when first used."""
    if name in _SUBMODULES:
        return import_module(f"antipode.{name}")
    raise AttributeError(f"module 'antipode' has no attribute {name!r}")


__all__ = [
    "EMPTY",
    "AntipodeError",
    "BarrierError",
    "BarrierIncomplete",
    "BarrierResult",
    "BarrierTimeout",
    "BarrierUnproven",
    "BlockingCallError",
    "Branch",
    "ConfigurationError",
    "Gap",
    "Lineage",
    "MalformedLineageError",
    "Mode",
    "Opaque",
    "Order",
    "Ordered",
    "PendingWriteError",
    "Reach",
    "Reading",
    "Redeliver",
    "Removal",
    "Scope",
    "ServerResult",
    "Settings",
    "Store",
    "StoreResult",
    "Trust",
    "UnfitStoreError",
    "UnknownStoreError",
    "UnprovenKind",
    "Verdict",
    "Version",
    "WriteId",
    "append",
    "barrier",
    "barrier_async",
    "branch",
    "carry",
    "carry_all",
    "close",
    "close_async",
    "configure",
    "current_scope",
    "deserialize",
    "detached_scope",
    "message_scope",
    "read_or_fallback",
    "read_or_fallback_async",
    "reading",
    "remove",
    "root",
    "scope",
    "serialize",
    "settings",
    "stop",
    "stores",
    "transfer",
]
