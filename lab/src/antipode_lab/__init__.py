"""Two regions of real datastores on one machine, with lag, partition and failover as commands."""

from antipode_lab.errors import InstallError, LabError, NotSupportedError
from antipode_lab.lab import ENVIRONMENT, Lab, lab_path
from antipode_lab.model import LabState, Link, Server, StoreState
from antipode_lab.store import BaseStore, Context, Package, ServerStatus, Store, verb

__all__ = [
    "ENVIRONMENT",
    "BaseStore",
    "Context",
    "InstallError",
    "Lab",
    "LabError",
    "LabState",
    "Link",
    "NotSupportedError",
    "Package",
    "Server",
    "ServerStatus",
    "Store",
    "StoreState",
    "lab_path",
    "verb",
]
