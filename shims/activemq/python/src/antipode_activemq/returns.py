"""Messages that go back to their queue after a delay, and what the application has settled meanwhile.

STOMP has nothing to give a message back by: ActiveMQ dead-letters what is answered with NACK, at once, and passes over
`AMQ_SCHEDULED_DELAY` where its scheduler is off, so that the message would come again in the same moment, for ever. So
the message stays unacknowledged for the delay, and then one transaction of the broker acknowledges it and puts a copy
at the end of its queue.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from typing import Any, Final
from uuid import uuid4

from antipode.shim import logs
from antipode.shim.queue_messages import refuse_acknowledgement
from stomp.exception import StompException

from antipode_activemq.delivery import BrokerDelivery
from antipode_activemq.options import ConnectionOptions
from antipode_activemq.outcomes import OWN_RECEIPTS, Outcomes

_log: Final = logging.getLogger("antipode")
COUNT_HEADER: Final = "antipode_redeliveries"
"""How often the message has gone back already."""
_ANSWER_S: Final = 10.0
_BROKERS_OWN: Final = {
    "ack",
    "browser",
    "content-length",
    "destination",
    "message-id",
    "original-destination",
    "receipt",
    "redelivered",
    "subscription",
    "timestamp",
    "transaction",
}


class Returns:
    """The open deliveries of one wrapped connection, and those that wait to go back.

    Until then a message stays unacknowledged: should the connection or the process end first, the broker gives it back
    by itself.
    """

    def __init__(self, plain: Any, options: ConnectionOptions, outcomes: Outcomes) -> None:
        self._plain = plain
        self._options = options
        self._outcomes = outcomes
        self._changed = threading.Condition()
        self._open: dict[int, BrokerDelivery] = {}
        self._due: list[tuple[float, int, BrokerDelivery]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def opened(self, delivery: BrokerDelivery) -> None:
        """A message's scope has been opened."""
        with self._changed:
            self._open[id(delivery)] = delivery

    def closed(self, delivery: BrokerDelivery) -> None:
        """A message's scope has ended."""
        with self._changed:
            self._open.pop(id(delivery), None)

    def check_acknowledgement(self, identifier: object) -> None:
        """Raise ConfigurationError for a message that waits to go back: acknowledged, it would be lost (PROP-36)."""
        with self._changed:
            waits = any(_is(delivery, identifier) for _, _, delivery in self._due)
        if waits:
            raise refuse_acknowledgement("ActiveMQ")

    def settling(self, identifier: object) -> None:
        """The application is about to acknowledge or to refuse a message itself: it may not be given back any more."""
        with self._changed:
            for delivery in self._open.values():
                if _is(delivery, identifier):
                    delivery.settle("it has been acknowledged or rejected already")
            self._due = [each for each in self._due if not _is(each[2], identifier)]
            heapq.heapify(self._due)

    def give_back(self, delivery: BrokerDelivery, delay: float) -> None:
        """Gives a message back after so many seconds, in a thread of ours."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + delay, next(self._numbers), delivery))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="antipode-redeliver", daemon=True)
                self._thread.start()
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """How many messages wait to go back."""
        return len(self._due)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._thread = None
                    return
                pause = self._due[0][0] - time.monotonic()
                if pause > 0:
                    self._changed.wait(pause)
                    continue
                _, _, delivery = heapq.heappop(self._due)
            try:
                self._return(delivery)
            except (StompException, OSError) as error:
                _log.debug("the connection ended before a message went back; the broker gives it back: %s", error)
            except Exception:
                _log.exception("a message could not be given back; it stays unacknowledged [AP518]")

    def _return(self, delivery: BrokerDelivery) -> None:
        plain, headers = self._plain, delivery.headers
        times = _count(headers) + 1
        most = self._options.max_redeliveries
        if most is not None and times > most:
            plain.nack(*_acknowledged(plain, headers))  # the broker's own policy: its dead letters, or its redelivery
            return
        transaction = plain.begin(f"{OWN_RECEIPTS}{uuid4().hex}")
        error = self._send_copy(delivery, times, transaction)
        if error is not None:
            plain.abort(transaction)
            store = self._options.store.name
            logs.warn(
                f"redeliver refused {store}",
                f"a message of {store} cannot go back to its queue, and is tried again: {error}. Who redelivers must "
                "be allowed to write to the queue that it consumes.",
                code="AP518",
            )
            self.give_back(delivery, max(self._options.redeliver_delay, 1.0))
            return
        plain.ack(*_acknowledged(plain, headers), transaction=transaction)
        plain.commit(transaction)

    def _send_copy(self, delivery: BrokerDelivery, times: int, transaction: str) -> str | None:
        """Sends the copy, and waits for the broker's answer: a refused one must not be acknowledged away."""
        headers = {name: value for name, value in delivery.headers.items() if name not in _BROKERS_OWN}
        if headers.get("expires") == "0":
            del headers["expires"]
        if "content-length" in delivery.headers:  # else it would become a message of octets
            headers["content-length"] = str(len(delivery.body))
        headers |= {
            "destination": delivery.headers["destination"],
            COUNT_HEADER: str(times),
            "transaction": transaction,
            "receipt": transaction,
        }
        answered = self._outcomes.ask(transaction)
        try:
            self._plain.send_frame("SEND", headers, delivery.body)
            came = answered.wait(_ANSWER_S)
        finally:
            error = self._outcomes.answer(transaction)
        return error if came else f"no answer within {_ANSWER_S:g} s"


def _count(headers: Any) -> int:
    text = str(headers.get(COUNT_HEADER, ""))
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _is(delivery: BrokerDelivery, identifier: object) -> bool:
    return identifier in (delivery.headers.get("ack"), delivery.headers.get("message-id"))


def _acknowledged(plain: Any, headers: Any) -> tuple[str, ...]:
    """What this version of STOMP names a message by in ACK and NACK."""
    if plain.version == "1.2":
        return (headers["ack"],)
    if plain.version == "1.1":
        return (headers["message-id"], headers["subscription"])
    return (headers["message-id"],)
