"""What the tests share: a region's broker, listeners that remember, a replicated store to depend on."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import antipode_activemq
import stomp
import stomp.exception
from antipode import memory
from antipode_activemq import Tap
from antipode_lab.stores.activemq import USER, ActiveMqStore

QUEUE = "/queue/notifications"
"""Crosses the lab's link; has a tap in B."""
TAP = "antipode.tap.notifications"


def wait_for(what: str, condition: Callable[[], Any], timeout: float = 10.0) -> Any:
    """Returns what the condition returns as soon as it is true."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.005)
    return found


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """A listener that keeps what comes, and calls back with each message, in its scope."""

    def __init__(self, callback: Callable[[Any], Any] | None = None) -> None:
        self.frames: list[Any] = []
        self.receipts: set[str] = set()
        self.errors: list[Any] = []
        self.failures: list[BaseException] = []
        self._callback = callback

    @property
    def bodies(self) -> list[Any]:
        return [frame.body for frame in self.frames]

    def on_message(self, frame: Any) -> None:
        self.frames.append(frame)
        if self._callback is not None:
            try:
                self._callback(frame)
            except BaseException as error:
                self.failures.append(error)
                raise

    def on_receipt(self, frame: Any) -> None:
        self.receipts.add(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        self.errors.append(frame)

    def next(self, timeout: float = 10.0) -> Any:
        """The next message, taken out."""
        wait_for("a message", lambda: self.frames, timeout)
        return self.frames.pop(0)


class Region:
    """One region's broker, as a test uses it: connections that end with the test, queues of its own."""

    def __init__(self, lab: ActiveMqStore, name: str) -> None:
        self.lab = lab
        self.name = name
        self._connections: list[Any] = []
        self._own: Any = None

    @property
    def url(self) -> str:
        return self.lab.url(self.name)

    def connected(self, connection: Any, user: str = USER) -> Any:
        """Connects what wraps a plain connection, or that one."""
        self._connections.append(connection)
        connection.connect(user, user, wait=True)
        return connection

    def connection(self, **parameters: Any) -> Any:
        return self.connected(self.lab.plain_connection(self.name, **parameters))

    def wrapped(self, store: str = "notifications", *, plain: Any = None, user: str = USER, **options: Any) -> Any:
        plain = plain or self.lab.plain_connection(self.name)
        return self.connected(antipode_activemq.wrap(plain, store=store, **options), user)

    @staticmethod
    def queue() -> str:
        """A new queue of this region alone."""
        return f"/queue/q-{uuid.uuid4().hex[:12]}"

    @property
    def own(self) -> Any:
        """A plain connection of the test's own."""
        if self._own is None or not self._own.is_connected():
            self._own = self.connection()
        return self._own

    def inbox(
        self, destination: str, callback: Any = None, *, connection: Any = None, ack: str = "auto", **headers: Any
    ) -> Inbox:
        """Subscribes, and returns when the broker has said so."""
        connection = connection or self.connection()
        made = Inbox(callback)
        connection.set_listener("inbox", made)
        receipt = uuid.uuid4().hex
        connection.subscribe(destination, id=receipt, ack=ack, headers={"receipt": receipt, **headers})
        wait_for("the subscription", lambda: receipt in made.receipts)
        return made

    def send(self, connection: Any, destination: str, body: Any, **headers: Any) -> Any:
        """Sends, and returns when the broker has taken it."""
        box = connection.get_listener("receipts")
        if box is None:
            box = Inbox()
            connection.set_listener("receipts", box)
        receipt = uuid.uuid4().hex
        connection.send(destination, body, headers={**headers, "receipt": receipt})
        wait_for("the receipt", lambda: receipt in box.receipts)

    def count(self, queue: str) -> int:
        """How many messages wait in a queue and are held by nobody, as a browser sees them."""
        connection = self.connection()
        box = self.inbox(queue, connection=connection, browser="true")
        wait_for("the end", lambda: any(frame.headers.get("browser") == "end" for frame in box.frames))
        connection.disconnect()
        return len(box.frames) - 1

    def close(self) -> None:
        for connection in self._connections:
            with suppress(stomp.exception.StompException, OSError):
                connection.disconnect()


class Link:
    """A way of its own to a region's broker, which can be cut, or fall silent."""

    def __init__(self, region: Region) -> None:
        self._toxiproxy = region.lab.context.toxiproxy
        self._name = f"test-{uuid.uuid4().hex[:12]}"
        self.port = self._toxiproxy.create(self._name, region.lab.server(region.name).port)
        self.url = f"stomp://{USER}:{USER}@127.0.0.1:{self.port}"

    def connection(self) -> Any:
        """A plain connection over this way, not connected yet."""
        return stomp.StompConnection12([("127.0.0.1", self.port)], reconnect_attempts_max=1, timeout=10)

    def cut(self) -> None:
        self._toxiproxy.set_enabled(self._name, False)

    def silence(self) -> None:
        """Connections stay open, and nothing comes through."""
        self._toxiproxy.set_lag(self._name, 3_600_000)

    def heal(self) -> None:
        self._toxiproxy.set_enabled(self._name, True)
        self._toxiproxy.set_lag(self._name, 0)


class Blog:
    """A replicated store whose replica in B lags: what messages depend on."""

    def __init__(self) -> None:
        self.store = memory.Store("blog", regions=["a", "b"], lag=0.0)
        self.posts_a, self.posts_b = self.store.client("a"), self.store.client("b")


def tap_of(region: Region, topic: str = TAP) -> Tap:
    return Tap(region.url, topic)


def locked(function: Callable[..., Any]) -> Callable[..., Any]:
    """One call at a time."""
    lock = threading.Lock()

    def alone(*arguments: Any, **keywords: Any) -> Any:
        with lock:
            return function(*arguments, **keywords)

    return alone
