"""What `wrap` and `register` take, whatever the kind of store (API section 3a)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from antipode._base.settings import Mode

Replicas: TypeAlias = Sequence[Any] | Callable[[], Sequence[Any]] | None


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What `wrap` and `register` take, the same words for every store (API section 3a)."""

    replicas: Replicas = None
    """The servers that readers of this region may use: URLs or clients, or a callable asked again every 5 s."""
    wait_on_read: bool = False
    timeout: float | timedelta | None = None
    rest: str = "none"
    envelope_keys: str | None = None
    hash_keys: bool | None = None
    lineage_in: bool = True
    lineage_out: bool = True
    on_unfit: Literal["raise", "unproven"] = "raise"
    on_replica_out: Literal["name", "fail"] | None = None
    mode: Mode | str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What only one kind of store has."""

    def joined_with(self, other: StoreOptions) -> StoreOptions:
        """The options of several wraps of one store: the later says what it says, the rest stays."""
        changed = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if item.name != "replicas" and getattr(other, item.name) != getattr(DEFAULTS, item.name)
        }
        merged = {item.name: getattr(self, item.name) for item in fields(self)} | changed
        return StoreOptions(**merged)


DEFAULTS: Final = StoreOptions()
