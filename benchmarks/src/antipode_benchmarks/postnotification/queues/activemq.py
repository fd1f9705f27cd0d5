"""ActiveMQ: sent to region A's broker, forwarded to region B's by a network connector, consumed there by stomp.py."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import stomp
from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification.options import QUEUE, Setup

LAB: Final[Mapping[str, Any]] = {"queues": [QUEUE], "topics": [], "plain_topics": []}
_ANSWER_S: Final = 30.0


class _Receipts(stomp.ConnectionListener):  # type: ignore[misc]
    """Tells of receipts, and of what went wrong, to whoever waits."""

    def __init__(self, failed: Callable[[BaseException], None] | None = None) -> None:
        self._came: dict[str, threading.Event] = {}
        self._error: BaseException | None = None
        self._failed = failed

    def expect(self, receipt: str) -> Callable[[], None]:
        """Before it is asked for; what it returns waits for it."""
        event = self._came[receipt] = threading.Event()

        def wait() -> None:
            came = event.wait(_ANSWER_S)
            self._came.pop(receipt, None)
            if self._error is not None:
                raise self._error
            if not came:
                raise TimeoutError(f"the broker sent no receipt within {_ANSWER_S:g} s")

        return wait

    def on_receipt(self, frame: Any) -> None:
        if event := self._came.get(frame.headers["receipt-id"]):
            event.set()

    def on_error(self, frame: Any) -> None:
        self._fail(RuntimeError(f"the broker refused: {frame.headers.get('message')}"))

    def on_disconnected(self) -> None:
        self._fail(RuntimeError("the broker ended a connection"))

    def _fail(self, error: BaseException) -> None:
        self._error = error
        for event in list(self._came.values()):
            event.set()
        if self._failed is not None:
            self._failed(error)


class _Consumer(stomp.ConnectionListener):  # type: ignore[misc]
    """Hands over each message, and acknowledges it."""

    def __init__(
        self, connection: Any, handler: Callable[[Mapping[str, Any], bytes], None], failed: Callable[[Exception], None]
    ) -> None:
        self._connection = connection
        self._handler = handler
        self._failed = failed

    def on_message(self, frame: Any) -> None:
        try:
            self._handler(frame.headers, frame.body)
        except Exception as error:
            self._failed(error)
            raise
        self._connection.ack(frame.headers["ack"])


class ActiveMqNotifications:
    """The queue as a service sees it; connections are opened when they are first used."""

    def __init__(self, setup: Setup) -> None:
        self._antipode = setup.antipode
        self._track = setup.options.track
        self._urls = setup.queues
        self._destination = f"/queue/{setup.queue}"
        self._lock = threading.Lock()
        self._publisher: tuple[Any, _Receipts] | None = None

    def _connection(self, region: str) -> Any:
        parts = urlsplit(self._urls[region])
        connection = stomp.StompConnection12([(parts.hostname, parts.port)], auto_decode=False)
        if not self._antipode:
            return connection
        import antipode_activemq  # the baseline does without it

        return antipode_activemq.wrap(connection, store=QUEUE, track=self._track)

    def _open(self, region: str, failed: Callable[[BaseException], None] | None = None) -> tuple[Any, _Receipts]:
        connection, receipts = self._connection(region), _Receipts(failed)
        connection.set_listener("receipts", receipts)
        parts = urlsplit(self._urls[region])
        connection.connect(parts.username, parts.password, wait=True)
        return connection, receipts

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Sends, and waits for the broker's receipt."""
        with self._lock:
            if self._publisher is None:
                self._publisher = self._open("a")
            connection, receipts = self._publisher
        receipt = uuid.uuid4().hex
        wait = receipts.expect(receipt)
        connection.send(self._destination, body, headers={**headers, "receipt": receipt})
        wait()

    def consume(
        self,
        handler: Callable[[Mapping[str, Any], bytes], None],
        consumers: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Starts the consumers, each with a connection and so a thread of its own; returns when all of them consume."""
        for number in range(consumers):
            connection, receipts = self._open("b", failed)
            connection.set_listener("consumer", _Consumer(connection, handler, failed))
            receipt = uuid.uuid4().hex
            wait = receipts.expect(receipt)
            one_at_a_time = {"activemq.prefetchSize": "1", "receipt": receipt}
            connection.subscribe(self._destination, id=str(number), ack="client-individual", headers=one_at_a_time)
            wait()


open_notifications = ActiveMqNotifications


def prepare(lab: StoreState) -> dict[str, str]:
    """The lab has the queue, and the connector that carries it."""
    return {name: server.url for name, server in lab.servers.items()}
