"""Servers that nobody names: connections of wrapped clients reached them, and lead there still (spec BAR-62)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from antipode._engine.discovery import Discovery
from antipode._engine.pending_wait import JudgedServer, JudgedStore


class _Connection(NamedTuple):
    own: weakref.ref[Any]
    target: Any
    leads: Callable[[Any], bool]


class ReachedServers(Discovery):
    """The connections of a store's wrapped clients, and the servers to which they lead.

    It is looked at like what is discovered, every 5 s while barriers come. It never stands as a server itself: where
    no connection leads anywhere it names none.
    """

    def __init__(self, store: JudgedStore, *, region: bool) -> None:
        """`region`: readers of this region may use these servers."""
        super().__init__(store, "its open connections", self._targets, own=True, region=region, once=False)
        self._known: Final[dict[int, _Connection]] = {}
        self._taking = threading.Lock()
        """Held while what is known becomes the answer: else a look from before would take a new server away."""

    def reach(self, connection: Any, target: Any, leads: Callable[[Any], bool]) -> JudgedServer:
        """Note that a connection leads there from now on; return the server, which joins."""
        known, place = self._known, id(connection)
        own = weakref.ref(connection, lambda _: known.pop(place, None))
        with self._taking:
            known[place] = _Connection(own, target, leads)
            address = self.store.shim.address(target)
            if address not in self.servers:
                self.store.take_answer(self, self._targets())
            return self.servers[address]

    def _targets(self) -> Sequence[Any]:
        return [each.target for each in list(self._known.values())]

    def is_known(self, now: float) -> bool:
        return True

    def ask(self) -> bool:
        """Drop the connections that lead nowhere any more, and the servers to which none leads."""
        lost = [(place, each) for place, each in list(self._known.items()) if not _leads(each)]
        with self._taking:
            for place, each in lost:
                if self._known.get(place) is each:  # else it has been made anew meanwhile
                    self._known.pop(place, None)
            self.store.take_answer(self, self._targets())
        return True

    def after_fork(self) -> None:
        super().after_fork()
        self._taking = threading.Lock()


def _leads(each: _Connection) -> bool:
    connection = each.own()
    try:
        return connection is not None and each.leads(connection)
    except Exception:  # of a class of the application's own: nobody can tell
        return True
