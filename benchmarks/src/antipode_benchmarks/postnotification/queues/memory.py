"""An in-process queue with a lag, used as any queue without a shim: `antipode.message_scope`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, NamedTuple

import antipode
from antipode.messages import HEADER, outgoing_message

from antipode_benchmarks.postnotification.options import QUEUE, Setup


class _Message(NamedTuple):
    due: float
    headers: dict[str, str]
    body: bytes


class LaggedQueue:
    """First in, first out; what is put in can be taken `lag` seconds later."""

    def __init__(self, lag: float) -> None:
        self._lag = lag
        self._messages: SimpleQueue[_Message] = SimpleQueue()

    def put(self, headers: dict[str, str], body: bytes) -> None:
        """Takes a message; never blocks."""
        self._messages.put(_Message(time.monotonic() + self._lag, dict(headers), body))

    def get(self) -> tuple[dict[str, str], bytes]:
        """Blocks until a message has arrived."""
        message = self._messages.get()
        time.sleep(max(message.due - time.monotonic(), 0.0))
        return message.headers, message.body


class MemoryNotifications:
    """The queue as a service sees it."""

    def __init__(self, setup: Setup, queue: LaggedQueue) -> None:
        self._antipode = setup.antipode
        self._queue = queue

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Puts a message in, with the lineage in a header of its own."""
        text = outgoing_message() if self._antipode else None
        self._queue.put(headers if text is None else {**headers, HEADER: text}, body)

    def consume(
        self,
        handler: Callable[[Mapping[str, Any], bytes], None],
        consumers: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Starts the consumers' threads."""

        def run() -> None:
            try:
                while True:
                    headers, body = self._queue.get()
                    if self._antipode:
                        with antipode.message_scope(headers) as scope:
                            scope.queue = QUEUE
                            handler(headers, body)
                    else:
                        handler(headers, body)
            except BaseException as error:
                failed(error)

        for number in range(consumers):
            threading.Thread(target=run, name=f"consumer-{number}", daemon=True).start()
