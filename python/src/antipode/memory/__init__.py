"""An in-process replicated store: the embedded default, and a test double for any kind of store.

It replicates a log from a primary to the other regions with a lag, and can freeze, heal, fail over with lost writes
and restart, as a real store does; in monkey mode there is no lag, and each read returns any version that it may. Every
wait goes through the same engine as for a real store. It gives the versions of any of the three kinds of store:
positions with epochs and marks, ordered objects with tombstones, opaque marks.
"""

from __future__ import annotations

from antipode.memory.client import Client, Store
from antipode.memory.monkey import Choose, StaleRead
from antipode.memory.shim import MemoryObjectShim, MemoryOpaqueShim, MemoryShim

__all__ = ["Choose", "Client", "MemoryObjectShim", "MemoryOpaqueShim", "MemoryShim", "StaleRead", "Store"]
