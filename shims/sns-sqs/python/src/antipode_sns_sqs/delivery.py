"""One received message, as the barriers of its scope see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from antipode.scope_values import Delivery


@dataclass(slots=True)
class MessageDelivery(Delivery):
    """A message of SQS. `can_redeliver` turns false when it has been deleted, or its scope has ended."""

    headers: Mapping[str, Any] = field(default_factory=dict)
    """What it carries of ours, as it came."""

    def settle(self, detail: str) -> None:
        """From now on it cannot go back, for this reason."""
        if self.can_redeliver:
            self.can_redeliver, self.detail = False, detail
