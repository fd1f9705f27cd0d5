"""One delivered message, as the barriers of its scope see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from antipode.scope_values import Delivery


@dataclass(slots=True)
class MessageDelivery(Delivery):
    """A message of ActiveMQ. `can_redeliver` turns false when it has been settled, or its scope has ended."""

    headers: Mapping[str, Any] = field(default_factory=dict)
    """The message's headers as they came."""
    body: str | bytes = b""

    def settle(self, detail: str) -> None:
        """From now on it cannot go back, for this reason."""
        if self.can_redeliver:
            self.can_redeliver, self.detail = False, detail
