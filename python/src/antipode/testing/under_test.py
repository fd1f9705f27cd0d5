"""What a store gives the conformance kit: a few primitives over two regions of real servers (spec SHIM-18, SHIM-33).

A shim's tests hold one subclass of `StoreUnderTest`, and one test class that names it; every case comes with that:

    class MyStoreUnderTest(StoreUnderTest):
        shim = MyShim
        exceptions = {"open_transaction": "MyStore has no transactions"}

        def __init__(self): ...         # starts the servers
        def begin(self): ...            # wraps the clients; each case has a registry of its own
        def write(self, key, value): ...

    class TestConformance(ShimConformance):
        @pytest.fixture(scope="class")  # the cases leave the servers as they found them, or call `recover`
        @classmethod
        def under_test(cls):
            store = MyStoreUnderTest()
            yield store
            store.close()

A primitive that is not given raises NotPossible, which fails the cases that need it. Such cases go into `exceptions`,
each with its reason; a listed case that passes fails, so that the list cannot go stale. Cases that a capability of the
shim excludes (a store of objects has no positions) are skipped, and say so.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from antipode import barrier
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult
from antipode._model.verdict import Verdict
from antipode._scope.operations import scope
from antipode.shim import Capabilities, Shim

__all__ = ["NotPossible", "StoreUnderTest", "Transaction"]

_numbers = itertools.count(1)


class NotPossible(Exception):
    """This store has no such thing; the case that asked for it belongs among the exceptions, with the reason."""

    def __init__(self, primitive: str) -> None:
        super().__init__(f"this store under test has no {primitive}(): give it, or list the case in `exceptions`")


class Transaction(Protocol):
    """An open transaction of the wrapped client at the primary."""

    def read(self, key: str) -> object:
        """Reads inside the transaction."""

    def write(self, key: str, value: str) -> None:
        """Writes inside the transaction."""


class StoreUnderTest(ABC):
    """One store in two regions or more, in the words of the kit. Values and keys are short ASCII texts.

    Servers are named by texts. `primary` takes the writes (region A, at first); `replicas` are those that readers of
    region B may use. All clients of one `begin` join one store of this process, called `name`.
    """

    shim: ClassVar[type[Shim]]
    exceptions: ClassVar[Mapping[str, str]] = {}
    """Cases that this store cannot pass (`test_` aside), each with its reason, as on the store's page."""
    name = "under-test"
    """The store's logical name."""
    patience = 20.0
    """Seconds within which what has to come true does, on a loaded machine."""
    brief = 0.3
    """Seconds that a barrier is given which must not pass."""
    slack = 5.0
    """Seconds past its deadline at which a barrier counts as hanging, on a loaded machine."""
    rights_cure: ClassVar[str] = ""
    """What the error or log line must hold where rights are missing: the grant (`write_without_rights`)."""
    unfit_cure: ClassVar[str] = ""
    """What the error must hold where a topology is refused (`wrap_unfit`)."""

    @property
    def capabilities(self) -> Capabilities:
        """What the shim declares."""
        return self.shim.capabilities

    # Always needed

    @property
    @abstractmethod
    def primary(self) -> str:
        """The server that takes writes now."""

    @property
    @abstractmethod
    def replicas(self) -> Sequence[str]:
        """The servers that readers of region B use, and that `begin` lists as `replicas=`; one at least, two for most
        cases, the one with the least lag first. The same all the time: after a promotion one of them is the primary."""

    @abstractmethod
    def begin(self) -> None:
        """A case begins, in a registry of its own: wraps a client at every server, under `self.name`, with `replicas=`
        those of region B."""

    @abstractmethod
    def recover(self, *, spoiled: bool) -> None:
        """A case has ended: links are healed, lags as at first, clients closed.

        `spoiled`: the case promoted, restarted or re-pointed servers; the first order is to be restored, or the
        servers made anew.
        """

    @abstractmethod
    def write(self, key: str, value: str) -> None:
        """Writes by the wrapped client at the primary, in the current scope. Called by several threads at once."""

    @abstractmethod
    def look(self, key: str, at: str) -> str | None:
        """What a server has now, without Antipode; None where it has nothing. The truth that barriers are held to.

        For a queue: the value if the message has arrived there.
        """

    # Where the store keeps values

    def read(self, key: str, at: str) -> str | None:
        """Reads by the wrapped client of a server, in the current scope and `reading()`."""
        raise NotPossible("read")

    def delete(self, key: str) -> None:
        """Deletes by the wrapped client at the primary."""
        raise NotPossible("delete")

    def raw_write(self, key: str, value: str) -> None:
        """Writes at the primary without Antipode, as an old service would."""
        raise NotPossible("raw_write")

    def write_nothing(self) -> None:
        """A wrapped operation that may write and changes nothing: the deletion of what is not there."""
        raise NotPossible("write_nothing")

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction of the wrapped client: commits at the block's end, rolls back where the block raises."""
        raise NotPossible("transaction")

    def commits_inside(self) -> Mapping[str, Callable[[str, str], None]]:
        """Return ways to commit a write inside what the client takes for an open transaction, each by its name.

        A way writes the value under the key by the wrapped client at the primary, commits in a manner that leaves a
        transaction open (a text of several statements, a procedure, `COMMIT AND CHAIN`), and rolls that back.
        """
        raise NotPossible("commits_inside")

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        """Wrap another client of a server under `self.name`, with `replicas=` these servers, or without.

        It ends with the case. A store of which nothing is read (a queue) has none.
        """
        raise NotPossible("wrap_client")

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        """Return ways to read a key's value by a client of `wrap_client`, each by its name.

        The usual one, and those in which a shim cannot be sure that something is read: stored functions, views,
        scripts, texts of several statements.
        """
        raise NotPossible("reads")

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        """Return ways to learn of a key what is not its value, by a client of `wrap_client`, each by its name.

        Whether it is there, how many there are, how long it is. Each gives something true of a key that was written.
        """
        raise NotPossible("counts")

    def past_moment(self, client: Any, key: str) -> AbstractContextManager[Callable[[], object]]:
        """Open, by a client of `wrap_client`, what shows the key as it is now for as long as it is open.

        A cursor at the server, a transaction's snapshot, a result that is read in parts. Gives what fetches the key's
        value from it.
        """
        raise NotPossible("past_moment")

    def list_moving(self, server: str) -> Callable[[str], None]:
        """Register `self.name` with `replicas=` one address alone, which leads to this server.

        Returns what makes the address lead to another server from then on; connections that are open stay where they
        are. It ends with the case.
        """
        raise NotPossible("list_moving")

    def wrap_unused(self, server: str) -> object | None:
        """Wraps a client of one server, under `self.name` and without `replicas=`, and does not use it: a pool that is
        not opened, an engine without a connection. Returns it; None where a client connects when it is made."""
        return None

    # Links and servers

    def set_lag(self, replica: str, seconds: float) -> None:
        """From now on writes reach this replica so much later."""
        raise NotPossible("set_lag")

    def partition(self, replica: str) -> None:
        """Nothing reaches this replica any more, and it still answers, until `heal`."""
        raise NotPossible("partition")

    def heal(self, replica: str) -> None:
        """The link to this replica carries again. Need not wait until it has caught up."""
        raise NotPossible("heal")

    def freeze(self, server: str) -> None:
        """This server does not answer any more (SIGSTOP), until `thaw`."""
        raise NotPossible("freeze")

    def thaw(self, server: str) -> None:
        """It answers again."""
        raise NotPossible("thaw")

    def restart(self, server: str) -> None:
        """The server's process ends and starts again with what it had; returns when it answers and data flow."""
        raise NotPossible("restart")

    def repoint(self, replica: str, source: str) -> None:
        """The replica follows another server from now on; returns when data flow."""
        raise NotPossible("repoint")

    def promote(self, replica: str, lost: Callable[[], None] | None = None) -> None:
        """The replica becomes the primary, and the other `replicas` follow it, the old primary too where it is one of
        them; returns when data flow again.

        Without `lost` whatever was written arrives first. With it: once nothing of the primary's leaves any more
        `lost` is called, which writes by `self.write`, and what it wrote never arrives anywhere. `primary` and `write`
        go to the new primary afterwards.
        """
        raise NotPossible("promote")

    def wait_marked(self, lineage: Lineage) -> None:
        """Returns when marks in the store prove these writes beyond the present epoch: a second after the last write.

        Only for stores with `marks="in_band"`; raises AssertionError where it takes longer than `patience`.
        """
        if self.capabilities.marks == "in_band":
            raise NotPossible("wait_marked")

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        """Sends a wrapped write whose answer never comes; raises the client's own error. Leaves the store usable."""
        raise NotPossible("write_with_unknown_outcome")

    def write_refused(self, key: str) -> None:
        """Sends a wrapped write that the server refuses; raises the client's own error."""
        raise NotPossible("write_refused")

    def write_without_rights(self, key: str, value: str) -> None:
        """Wraps a client whose user may write but lacks a right that Antipode needs, and writes by it.

        Either raises UnfitStoreError (with `rights_cure` in it), or writes, and logs `rights_cure`.
        """
        raise NotPossible("write_without_rights")

    def wrap_unfit(self) -> None:
        """Wraps a client in a topology in which positions or versions lie; has to raise UnfitStoreError."""
        raise NotPossible("wrap_unfit")

    # What the cases use (not to be overridden)

    @property
    def near(self) -> str:
        """The replica with the least lag."""
        return self.replicas[0]

    @property
    def far(self) -> str:
        """Another replica, with more lag."""
        if len(self.replicas) < 2:
            raise NotPossible("second replica")
        return self.replicas[-1]

    def new_key(self, word: str = "key") -> str:
        """A key that nobody has used."""
        return f"kit-{word}-{next(_numbers)}-{time.time_ns():x}"

    def written(self, key: str, value: str = "v") -> Lineage:
        """Writes in a scope of its own; the lineage that it left."""
        with scope() as opened:
            self.write(key, value)
            return opened.lineage

    def judge(self, lineage: Lineage, timeout: float | None = None, **options: Any) -> BarrierResult:
        """A barrier on this store that raises for no verdict; fails where it takes longer than its deadline."""
        timeout = self.patience if timeout is None else timeout
        began = time.monotonic()
        result = barrier(
            lineage, timeout=timeout, stores=[self.name], on_timeout="proceed", on_unproven="proceed", **options
        )
        took = time.monotonic() - began
        assert took < timeout + self.slack, f"a hang: {took:.2f} s with a deadline of {timeout} s"
        return result

    def verdict(self, lineage: Lineage, timeout: float | None = None) -> Verdict:
        """The verdict of such a barrier."""
        return self.judge(lineage, timeout).stores[self.name].verdict

    def shows(self, key: str, value: str | None, *servers: str) -> bool:
        """Whether these servers (all replicas, by default) have this value now."""
        return all(self.look(key, server) == value for server in servers or self.replicas)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for a condition, with `patience`."""
        deadline = time.monotonic() + self.patience
        while not condition():
            assert time.monotonic() < deadline, f"in vain: {what}"
            time.sleep(0.005)
