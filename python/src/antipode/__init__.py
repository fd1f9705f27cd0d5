"""Antipode: cross-service causal consistency.

A request's writes, made by many services to many unlike datastores, form a lineage. It travels with the request,
comes back with responses and rests beside the data; `barrier()` waits until its writes are visible here.
"""

from importlib import import_module
from types import ModuleType

from antipode import announcement, followed_reads, forks, observers, recorder, records, telemetry
from antipode.barrier import barrier, barrier_async
from antipode.branches import Branch, branch, close, close_async
from antipode.carry import carry, carry_all
from antipode.configuration import configure
from antipode.errors import (
    AntipodeError,
    BlockingCallError,
    ConfigurationError,
    MalformedLineageError,
    PendingWriteError,
    UnfitStoreError,
    UnknownStoreError,
)
from antipode.fallback import read_or_fallback, read_or_fallback_async
from antipode.lineage import EMPTY, Lineage, Order
from antipode.messages import message_scope
from antipode.operations import append, deserialize, detached_scope, remove, root, scope, serialize, stop, transfer
from antipode.reading import Reading, reading
from antipode.result import (
    BarrierError,
    BarrierIncomplete,
    BarrierResult,
    BarrierTimeout,
    BarrierUnproven,
    Redeliver,
    ServerResult,
    StoreResult,
)
from antipode.scope import Scope, current_scope
from antipode.scope_values import Gap, Removed
from antipode.settings import Mode, Settings, Trust, settings
from antipode.store import Registry, Store, stores
from antipode.store_servers import RegionStore
from antipode.verdict import Reach, UnprovenKind, Verdict
from antipode.writeid import Opaque, Ordered, Version, WriteId

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
    "Removed",
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
