"""Clients of blocking code, by requests: Antipode's wrap is one line."""

from __future__ import annotations

import threading
from typing import Final

import antipode.requests
import requests

from antipode_benchmarks.postnotification.options import Setup

CALL_TIMEOUT_S: Final = 30.0
"""Deadline of a call from one service to another."""


class Sessions:
    """A session for each thread, for requests does not promise that threads can share one."""

    def __init__(self, setup: Setup) -> None:
        self._antipode = setup.antipode
        self._own = threading.local()

    def get(self) -> requests.Session:
        """The thread's session, plain or wrapped."""
        found: requests.Session | None = getattr(self._own, "session", None)
        if found is None:
            found = antipode.requests.wrap(requests.Session()) if self._antipode else requests.Session()
            self._own.session = found
        return found
