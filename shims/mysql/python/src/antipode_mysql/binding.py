"""One server of a store, as a wrapped connection uses it, and how its writes and reads are treated."""

from __future__ import annotations

import time
from typing import Any, Final

from antipode import Store
from antipode.shim import Server, StoreOptions, WrappedClient, logs
from antipode.shim.join import tell_silence

from antipode_mysql import probe
from antipode_mysql.probe import Facts
from antipode_mysql.shim import MySQLShim
from antipode_mysql.targets import Target, target_of

_PROBE_S: Final = 1.0
_AGAIN_S: Final = 5.0
"""How long a server's settings are believed; one that did not answer is asked again so much later."""


class Binding(WrappedClient):
    """A wrapped connection's tie to its store, while it leads to one server."""

    server: Server
    """That to which the connection led when it was opened last."""

    def __init__(self, store: Store, target: Target, options: StoreOptions, *, is_named: bool) -> None:
        """`is_named`: what opens such connections names their servers."""
        super().__init__(store, options)
        self.target = target
        self.is_named = is_named
        self.rests = options.rest == "native"
        self.gives = options.lineage_out
        self.takes = options.lineage_in

    def at(self, target: Target) -> Binding:
        """Return the tie of a connection that leads there now: itself, unless that is another server (BAR-52).

        Asks a server that nobody has asked, and may wait some moments for it.
        """
        if target.address == self.target.address:
            return self
        facts_of(self.store, target, fresh=facts_of(self.store, target, fresh=False) is probe.NOTHING)
        return Binding(self.store, target, self.options, is_named=self.is_named)

    def opened(self, plain: Any) -> Binding:
        """Note that a connection has been opened; return its tie. The server that it has reached joins the store."""
        found = self.at(target_of(plain))
        shim = self.store.shim
        assert isinstance(shim, MySQLShim)
        listed = self.options.replicas is not None
        found.server = shim.opened(plain, found.target, listed=listed, is_named=self.is_named)
        return found

    @property
    def unfit(self) -> str:
        """Why positions of this server prove nothing; empty where they do, or where it has not answered yet."""
        shim = self.store.shim
        assert isinstance(shim, MySQLShim)
        unfit = facts_of(self.store, self.target, fresh=False).unfit(relaxed_durability=shim.relaxed_durability)
        return f"{self.target.address}: {unfit}" if unfit else ""

    def say(self, kind: str, words: str, *, code: str) -> None:
        """Log one line a minute, with its message code (OBS-14)."""
        logs.warn(f"{kind} {self.store.name}", f"{self.store.name}: {words}", code=code)


def facts_of(store: Store, target: Target, *, fresh: bool = True) -> Facts:
    """A server's settings. `fresh`: asks it where what is known is older than some seconds; never raises."""
    shim = store.shim
    assert isinstance(shim, MySQLShim)
    asked_at, facts = shim.facts.get(target.address, (-1e9, probe.NOTHING))
    if not fresh or time.monotonic() - asked_at < _AGAIN_S:
        return facts
    shim.facts[target.address] = (time.monotonic(), facts)  # one of those who come at once asks
    try:
        connection = target.with_login_of(shim.login).connect(_PROBE_S)
        try:
            facts = probe.ask(connection)
        finally:
            connection._force_close()
    except Exception as error:
        tell_silence(store.name, target.address, error, "its settings are asked for")
        return facts
    shim.facts[target.address] = (time.monotonic(), facts)
    return facts
