"""ActiveMQ as the conformance kit drives it: tracked messages from region A, and two taps that see them arrive in B."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import antipode_activemq
import stomp.exception
from activemq_regions import QUEUE, TAP, Inbox, Link, Region, wait_for
from antipode.shim import Shim
from antipode.testing.under_test import StoreUnderTest, Transaction
from antipode_activemq import Tap
from antipode_lab.stores.activemq import USER, ActiveMqStore

LAG = "10ms"
NO_FAILOVER = "brokers of two regions are joined by a network connector: none takes the other's place"


class ActiveMqUnderTest(StoreUnderTest):
    """Servers: the broker in A, and in B a tap that is read straight and one through a link of its own."""

    shim: ClassVar[type[Shim]] = antipode_activemq.ActiveMQShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "promotion": NO_FAILOVER,
        "promotion_with_lost_writes": NO_FAILOVER,
        "second_promotion": NO_FAILOVER,
        "parked_across_a_promotion": NO_FAILOVER,
        "repointed_replica": NO_FAILOVER,
        "commit_inside_a_transaction": "a commit ends the transaction that it names, and none is open behind it",
    }
    patience = 30.0
    rights_cure = "authorizationEntry"
    unfit_cure = "subscriptionRecoveryPolicy"

    def __init__(self, lab: ActiveMqStore) -> None:
        self.lab = lab
        self.a, self.b = Region(lab, "a"), Region(lab, "b")
        self._link = Link(self.b)
        self._looking = threading.Lock()
        self._arrived: dict[str, str] = {}
        self._listen()

    def _listen(self) -> None:
        self._oracle = self.b.inbox(QUEUE, self._note)
        self.taps = [Tap(url, TAP) for url in (self.b.url, self._link.url)]

    def _wait_fence(self) -> None:
        """What lies in the queue has been dispatched to its only consumer when a message behind it has."""
        fence = uuid.uuid4().hex
        self.b.own.send(QUEUE, f"fence={fence}")
        wait_for("the fence", lambda: self._arrived.get("fence") == fence, self.patience)

    def _note(self, frame: Any) -> None:
        name, _, value = str(frame.body).partition("=")
        self._arrived[name] = value

    def close(self) -> None:
        self.b.close()
        self.a.close()
        self._link.cut()

    def begin(self) -> None:
        self._connections: list[Any] = []
        self._own = threading.local()
        antipode_activemq.register(self.name, tap=self.taps)

    def recover(self, *, spoiled: bool) -> None:
        for connection in self._connections:
            with suppress(stomp.exception.StompException, OSError):
                connection.disconnect()
        self._link.heal()
        self.lab.lag("b", LAG)
        self.lab.heal()

    @property
    def primary(self) -> str:
        return "a"

    @property
    def replicas(self) -> Sequence[str]:
        return ["b", "b through a link"]

    # Messages

    def _connected(self, plain: Any = None, user: str = USER) -> tuple[Any, Inbox]:
        plain = plain or self.lab.plain_connection("a")
        connection = antipode_activemq.wrap(plain, store=self.name, track=True)
        box = Inbox()
        connection.set_listener("", box)
        connection.connect(user, user, wait=True)
        self._connections.append(connection)
        return connection, box

    def _connection(self) -> tuple[Any, Inbox]:
        """This thread's own."""
        found = getattr(self._own, "found", None)
        if found is None or not found[0].is_connected():
            found = self._own.found = self._connected()
        return found

    def write(self, key: str, value: str) -> None:
        connection, box = self._connection()
        receipt = uuid.uuid4().hex
        connection.send(QUEUE, f"{key}={value}", persistent="true", receipt=receipt)
        wait_for("the receipt", lambda: receipt in box.receipts, self.patience)

    def look(self, key: str, at: str) -> str | None:
        with self._looking:
            self._wait_fence()
        return self._arrived.get(key)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        connection, box = self._connected()
        name = connection.begin()
        try:
            yield _Transaction(connection, name)
        except BaseException:
            connection.abort(name)
            raise
        receipt = uuid.uuid4().hex
        connection.commit(name, receipt=receipt)
        wait_for("the receipt", lambda: receipt in box.receipts, self.patience)

    # Links and servers

    def set_lag(self, replica: str, seconds: float) -> None:
        self.lab.lag("b", f"{round(seconds * 1000)}ms")

    def partition(self, replica: str) -> None:
        self.lab.partition("b")

    def heal(self, replica: str) -> None:
        self.lab.heal("b", wait=False)

    def freeze(self, server: str) -> None:
        assert server == self.far
        self._link.silence()

    def thaw(self, server: str) -> None:
        self._link.heal()

    def restart(self, server: str) -> None:
        self.lab.restart("a" if server == "a" else "b")
        if server != "a":
            self._listen()

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        link = Link(self.a)
        connection, _ = self._connected(link.connection())
        link.silence()
        receipt = uuid.uuid4().hex
        connection.send(QUEUE, f"{key}={value}", receipt=receipt)
        threading.Timer(0.3, link.cut).start()
        wait_for("the end of the connection", lambda: not connection.is_connected())
        raise ConnectionError("no receipt came")

    def write_refused(self, key: str) -> None:
        connection, box = self._connected(user="reader")
        receipt = uuid.uuid4().hex
        connection.send(f"/queue/readers.{key}", "", receipt=receipt)
        wait_for("the refusal", lambda: box.errors)
        raise PermissionError(box.errors[0].headers["message"])

    def write_without_rights(self, key: str, value: str) -> None:
        antipode_activemq.register(self.name, tap=Tap(self.b.url.replace(f"{USER}:{USER}", "publisher:publisher"), TAP))

    def wrap_unfit(self) -> None:
        antipode_activemq.register(self.name, tap=Tap(self.a.url, "antipode.tap.without-past"))


class _Transaction:
    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name

    def read(self, key: str) -> object:
        """Taking a message is no write."""
        return None

    def write(self, key: str, value: str) -> None:
        self._connection.send(QUEUE, f"{key}={value}", transaction=self._name)
