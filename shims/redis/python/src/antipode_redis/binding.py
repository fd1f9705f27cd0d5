"""What the copies of one wrapped client share: the store, the server, and how writes and reads are treated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from antipode import ConfigurationError, Lineage, Store
from antipode.shim import Server, StoreOptions, WrappedClient, logs, notes_sites, settings_generation
from redis.asyncio.connection import AbstractConnection

from antipode_redis.commands import Kind, answers, classify, command_name
from antipode_redis.envelopes import Envelopes
from antipode_redis.leading import Leads, MetConnection
from antipode_redis.marker import Marker, marker
from antipode_redis.probe import CLUSTER, grant
from antipode_redis.shim import RedisShim
from antipode_redis.targets import Target, connects_plainly, is_plain, leads_on

_DENIED_S: Final = 10.0
"""After a refusal the position is asked for again so much later: the right may have been granted."""


class Binding(WrappedClient):
    """One wrapped client's tie to its store."""

    def __init__(
        self,
        store: Store,
        target: Target,
        own_marker: Marker,
        options: StoreOptions,
        envelopes: Envelopes | None = None,
    ) -> None:
        super().__init__(store, options)
        self.envelopes = envelopes
        """The keys whose values are in envelopes; None in the other rest modes."""
        self.target = target
        self.server: Server | None = None
        """The server that the client's connections reach, where it is one."""
        self.marker = own_marker
        self.leads = Leads()
        self.open: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """Connections inside a MULTI that the application sent by hand, with the write that is pending for it."""
        self.answering: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        """Of these connections: whether EXEC's reply holds data."""
        self.waited: WeakKeyDictionary[Any, Lineage] = WeakKeyDictionary()
        """What was proved before MULTI (SHIM-48)."""
        self.by_hand = False
        """Whether there was ever such a MULTI."""
        self.rests = False
        """Whether lineages rest in hashes."""
        self.short = False
        """Whether a common write may go the short way: nothing rests beside it, and its position may be asked for."""
        self.sites = False
        """Whether a write in flight says where it was begun."""
        self.denied_until = 0.0
        self._denied = ""

    # Where it leads

    def met(self, connection: Any, pool: Any) -> None:
        """Note a connection that a pool hands out for the first time: now, and whenever it is made anew, its server
        joins the store (BAR-52)."""
        self._joins(connection, self.leads.opened(connection, pool))
        is_async = isinstance(getattr(connection, "_conn", connection), AbstractConnection)
        connection.register_connect_callback(self.opened_async if is_async else self.opened)

    def meet_idle(self) -> None:
        """Let the servers join to which the connections lead that a pool holds and has not handed out (BAR-68)."""
        for connection, pool in self.leads.strangers(plain=True):
            self.met(connection, pool)

    def servers(self) -> Sequence[Target]:
        """Return the servers to which the client will lead; may resolve a name, or connect. Raises what that raises."""
        for connection, pool in self.leads.strangers(plain=False):
            self.met(connection, pool)
        return self.leads.servers()

    def look(self) -> object:
        """Return what decides where the client leads; cheap."""
        return self.leads.look()

    def opened(self, connection: Any) -> None:
        """Note that such a connection has been made anew."""
        self._joins(connection, self.leads.opened(connection))

    async def opened_async(self, connection: Any) -> None:
        """The same, by asyncio."""
        if is_plain(type(connection)):
            self.opened(connection)
        else:  # a name may have to be resolved
            await asyncio.to_thread(self.opened, connection)

    def _joins(self, connection: Any, met: MetConnection | None) -> None:
        if met is None:
            return
        target, listed = met.target, self.options.replicas is not None
        if connects_plainly(met.pool):
            self.store.reach(getattr(connection, "_conn", connection), target, leads_on, listed=listed)
        else:  # the application's own code may lead there again (BAR-62)
            self.store.use_server(target, target.address, listed=listed)
        if target.address == self.target.address:
            return
        found = marker(self.store, target, self.key)
        found.users.add(self)
        found.start()

    @property
    def key(self) -> str:
        """The key of the store's marks."""
        shim = self.store.shim
        assert isinstance(shim, RedisShim)
        return shim.marks_key

    def refresh(self) -> None:
        if settings_generation() != self.generation:
            self.rests = self.options.rest == "field"
            self.short = not (self.rests or self.envelopes or self.by_hand or self.denied_until)
            self.sites = notes_sites()
            super().refresh()

    # Envelopes

    def check(self, args: Sequence[Any]) -> None:
        """Refuses what cannot be done with a key whose value is in an envelope. Raises ConfigurationError."""
        if self.envelopes is not None:
            self.envelopes.check(args)

    def check_by_hand(self, args: Sequence[Any], connection: Any) -> None:
        """Refuses such a key inside a MULTI that the application sent by hand: EXEC's reply would not be opened."""
        envelopes = self.envelopes
        if envelopes is not None and self.open and connection in self.open and envelopes.concerns(args):
            raise ConfigurationError(
                f"{command_name(args)} with a key of envelope_keys= cannot stand in a MULTI that is sent by hand: "
                "use pipeline(transaction=True)",
                code="AP505",
            )

    def began(self, connection: Any) -> None:
        """The application has sent MULTI by hand."""
        self.by_hand = True
        self.short = False
        self.open[connection] = None
        connection.register_connect_callback(self.made_anew)

    def made_anew(self, connection: Any) -> None:
        """Such a MULTI ends with its connection: what was queued did not happen, and nothing else is."""
        for reference in self.open.keyrefs():
            each: Any = reference()
            # With redis-py's client cache the client has a proxy, and it is the connection behind it that tells.
            if each is connection or getattr(each, "_conn", None) is connection:
                held = self.open.pop(each, None)
                if held is not None:
                    held.abandon()

    def queues(self, connection: Any) -> bool:
        """Whether what is sent now is queued in such a MULTI, unless the connection is made anew meanwhile."""
        if connection in self.open and not connection.is_connected:
            self.made_anew(connection)
        return connection in self.open

    def note_queued(self, connection: Any, *commands: Sequence[Any]) -> None:
        """Note that EXEC answers with data, where these commands are queued and the reply to one of them would."""
        is_queued = self.by_hand and connection is not None and self.queues(connection)
        if is_queued and any(classify(args) is Kind.READ or answers(args) for args in commands):
            self.answering[connection] = True

    def opens(self, args: Sequence[Any]) -> bool:
        """Whether a command's reply holds values out of envelopes, and so is to be read without decoding."""
        return self.envelopes is not None and self.envelopes.answers(args)

    # The position behind a write

    @property
    def may_ask(self) -> bool:
        """Whether the question may ride behind a write: it was not refused lately."""
        return not self.denied_until or time.monotonic() > self.denied_until

    def denied(self, words: str) -> None:
        """The server refused to say where it is."""
        self.denied_until = time.monotonic() + _DENIED_S
        self.short = False
        self._denied = words
        self.say(
            "rights",
            f"writes to {self.store.name} are recorded as incomplete: its user may not ask where they are ({words}). "
            f"{grant(self.key)}",
            code="AP506",
        )

    @property
    def why_denied(self) -> str:
        """The server's words when it refused."""
        return self._denied

    @property
    def proves(self) -> bool:
        """Whether positions of this server prove something: it has been asked, and is no cluster."""
        facts = self.marker.facts
        return facts is not None and facts.reached and not facts.cluster

    @property
    def unfit(self) -> str:
        """Why positions of this server prove nothing; empty where they do."""
        facts = self.marker.facts
        return f"{self.target.address} {CLUSTER}" if facts is not None and facts.cluster else ""

    def say(self, kind: str, words: str, *, code: str) -> None:
        """Log one line a minute, with its message code (OBS-14)."""
        logs.warn(f"{kind} {self.store.name}", words, code=code)
