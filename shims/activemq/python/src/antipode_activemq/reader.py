"""Reading a tap: one stomp.py connection that subscribes to its topic, with the past that the broker has kept.

It first sends a probe to the topic and subscribes after that. The probe comes back only if the broker keeps the topic's
past, and comes last of what it kept: then all of it has been read. A probe that was sent at another broker tells that a
network connector carries the topic; what is seen there has not arrived here, so such a tap proves nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import stomp
from antipode.shim.tap import TapMemory, TapRefusedError
from stomp.exception import ConnectFailedException, StompException

from antipode_activemq.marks import mark_of
from antipode_activemq.tap import Tap

_log: Final = logging.getLogger("antipode")
PROBE_HEADER: Final = "antipode_probe"
_SILENT_S: Final = 0.5
"""After so long without a message the broker is asked for a sign of life."""
_PAST_S: Final = 5.0
"""The least time that a broker is given to send the past."""


class TapReader(stomp.ConnectionListener):  # type: ignore[misc]
    """A connection that reads a tap. Messages that are read twice are the same as once."""

    def __init__(self, tap: Tap, memory: TapMemory, on_arrival: Callable[[], None], timeout: float) -> None:
        self._tap = tap
        self._memory = memory
        self._on_arrival = on_arrival
        self._connected = threading.Event()
        self._probed = threading.Event()
        self._receipts: dict[str, threading.Event] = {}
        self._heard_at = time.monotonic()
        self._closing = False
        self._probe = uuid4().hex
        self._origin = ""
        self.server = ""
        """What the broker calls itself."""
        self.error: Exception | None = None
        self._connection = tap.open(timeout)
        self._connection.set_listener("antipode-tap", self)

    # For the engine's thread

    def start(self, timeout: float) -> None:
        """Connects, and returns when the past has been read. Raises TapRefusedError, or OSError where the broker is out
        of reach."""
        deadline = time.monotonic() + timeout
        try:
            self.connect(timeout)
            topic = f"/topic/{self._tap.topic}"
            probe = {PROBE_HEADER: self._probe, "receipt": "probe"}
            self._confirmed("probe", deadline, lambda: self._connection.send(topic, "", headers=probe))
            retroactive = {"activemq.retroactive": "true", "receipt": "tap"}
            self._confirmed(
                "tap", deadline, lambda: self._connection.subscribe(topic, "tap", ack="auto", headers=retroactive)
            )
            if not self._probed.wait(max(deadline - time.monotonic(), _PAST_S)):
                raise self.error or TapRefusedError(f"the broker keeps no past of the topic {self._tap.topic}")
        except BaseException:
            self.close()
            raise
        if self.error is not None:
            self.close()
            raise self.error

    def connect(self, timeout: float) -> None:
        """Only connects."""
        try:
            self._connection.connect(*self._tap.login, wait=False)
        except ConnectFailedException as error:
            raise ConnectionError(f"{self._tap.broker} is out of reach") from error
        if not self._connected.wait(timeout):
            raise TimeoutError(f"{self._tap.broker} did not answer within {timeout:g} s")
        if self.error is not None:
            raise self.error

    def check(self, timeout: float) -> None:
        """Returns if the broker is there; raises what `start` raises."""
        if self.error is None and time.monotonic() - self._heard_at > _SILENT_S:
            receipt = uuid4().hex
            self._confirmed(receipt, time.monotonic() + timeout, lambda: self._ask(receipt))
        if self.error is not None:
            raise self.error

    def _ask(self, receipt: str) -> None:
        """STOMP has no question for a sign of life; a transaction that is begun and ended at once is one."""
        self._connection.begin(receipt)
        self._connection.abort(receipt, receipt=receipt)

    def _confirmed(self, receipt: str, deadline: float, send: Callable[[], object]) -> None:
        event = self._receipts[receipt] = threading.Event()
        try:
            send()
            answered = event.wait(max(deadline - time.monotonic(), 0.05))
        except StompException as error:
            raise self.error or ConnectionError(f"{self._tap.broker}: {error!r}") from error
        finally:
            self._receipts.pop(receipt, None)
        if self.error is not None:
            raise self.error
        if not answered:
            raise TimeoutError(f"{self._tap.broker} did not answer in time")

    def close(self) -> None:
        """Ends it, without waiting for the broker's answer; never raises."""
        self._closing = True
        try:
            self._connection.disconnect()
        except Exception as error:
            _log.debug("the connection of %r has ended: %s", self._tap, error)
        try:
            self._connection.transport.disconnect_socket()
        except Exception as error:
            _log.debug("the connection of %r has ended: %s", self._tap, error)

    def join(self, timeout: float) -> bool:
        """Waits for the end of stomp.py's thread; whether it came."""
        thread = self._connection.transport.io_thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    # In the receiver's thread

    def on_connected(self, frame: Any) -> None:
        self.server = str(frame.headers.get("server", "?"))
        self._origin = str(frame.headers.get("session", "")).rpartition(":")[0]
        self._heard_at = time.monotonic()
        self._connected.set()

    def on_message(self, frame: Any) -> None:
        self._heard_at = time.monotonic()
        headers = frame.headers
        probe = headers.get(PROBE_HEADER)
        if probe is not None:
            if not str(headers.get("message-id", "")).startswith(f"{self._origin}:"):
                self._memory.disbelieve()
                self._fail(TapRefusedError(f"a network connector carries {self._tap.topic} here from another broker"))
            elif probe == self._probe:
                self._probed.set()
            return
        mark = mark_of(headers)
        if mark is not None and self.error is None and self._memory.note(mark):
            self._on_arrival()

    def on_receipt(self, frame: Any) -> None:
        self._heard_at = time.monotonic()
        event = self._receipts.get(frame.headers.get("receipt-id", ""))
        if event is not None:
            event.set()

    def on_error(self, frame: Any) -> None:
        body = frame.body.decode("utf-8", "replace") if isinstance(frame.body, bytes) else str(frame.body)
        self._fail(TapRefusedError(str(frame.headers.get("message") or body.partition("\n")[0])))

    def on_disconnected(self) -> None:
        self._fail(ConnectionError(f"the connection to {self._tap.broker} has ended"))

    def _fail(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
        for event in (self._connected, self._probed, *self._receipts.copy().values()):
            event.set()
        if not self._closing:
            self._on_arrival()  # whoever waits asks again, and so learns of it
