"""No queue: notifier POSTs each notification to follower-notify, which answers when it has handled it."""

from __future__ import annotations

from typing import Final

from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification.options import Setup
from antipode_benchmarks.postnotification.queues import Failed, Handler
from antipode_benchmarks.postnotification.services.sessions import CALL_TIMEOUT_S, Sessions

LAB: Final = None


class HttpNotifications:
    """Calls to follower-notify, made by requests."""

    def __init__(self, setup: Setup) -> None:
        self._url = setup.addresses["follower-notify"] + "/notifications"
        self._sessions = Sessions(setup)

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Returns when the follower has handled it; raises where it has not."""
        headers = {**headers, "content-type": "application/json"}
        self._sessions.get().post(self._url, body, headers=headers, timeout=CALL_TIMEOUT_S).raise_for_status()

    def consume(self, handler: Handler, consumers: int, failed: Failed) -> None:
        """Nothing: follower-notify takes what is POSTed to it."""


open_notifications = HttpNotifications


def prepare(lab: StoreState) -> dict[str, str]:
    """Never asked for: no server is started."""
    raise NotImplementedError
