"""The stores of the lab: every module of this folder whose name does not begin with ``_``."""

from __future__ import annotations

import importlib
import pkgutil

from antipode_lab.errors import LabError
from antipode_lab.store import Store


def names() -> list[str]:
    """The stores that the lab knows."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def find(name: str) -> type[Store]:
    """A store's class.

    Raises:
        LabError: if there is no module of that name.
    """
    if name not in names():
        raise LabError(f"the lab has no store {name!r}; it has {', '.join(names())}")
    store: type[Store] = importlib.import_module(f"{__name__}.{name}").STORE
    return store
