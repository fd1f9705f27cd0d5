"""The servers that a store's readers here may use, and who names them (spec BAR-22, BAR-52 to BAR-54)."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, Final

from antipode._base.settings import settings, store_settings
from antipode._engine.discovery import ClientServers, Discovery
from antipode._engine.pending_wait import JudgedServer, JudgedStore
from antipode._engine.reached import ReachedServers
from antipode._engine.server import ServerPoller
from antipode._model.errors import ConfigurationError
from antipode._store.contract import Shim
from antipode._store.store_options import Replicas, StoreOptions

LOOK_AGAIN_S: Final = 0.5
"""So often it is looked at, while barriers wait, whether servers leave."""


class RegionStore(JudgedStore):
    """A store with its servers: of wrapped clients, listed ones, and who is still to name some."""

    def __init__(self, name: str, shim: type[Shim], options: StoreOptions) -> None:
        super().__init__(name, shim, options)
        self._own: dict[str, JudgedServer] = {}
        """Those of wrapped clients."""
        self._region: dict[str, JudgedServer] = {}
        """Those that readers of this region may use: listed, or a client's own where its wrap has no list (BAR-22)."""
        self._discoveries: dict[Hashable, Discovery] = {}
        self._reached: dict[bool, ReachedServers] = {}
        """Those of the discoveries to which open connections lead: of wraps that name servers, and of the others."""
        self._gone: dict[str, float] = {}
        """When discovery took an address away."""
        self._looked_at = -1e9

    # Who names them

    def use_server(self, target: Any, address: str | None = None, *, listed: bool = False) -> JudgedServer:
        if not self._is_listed(listed):
            self._add(self._region, target, address)
        return self._add(self._own, target, address)

    def _is_listed(self, listed: bool) -> bool:
        return listed or bool(store_settings(self.name).replicas)

    def list_replicas(self, replicas: Replicas) -> None:
        if replicas is None:
            return
        if isinstance(replicas, str):  # its letters would be taken for servers
            raise ConfigurationError("replicas= takes a list of servers, not one text: replicas=[…]", code="AP501")
        if callable(replicas):
            self._join_source("replicas=", replicas, own=False, region=True, key=id(replicas)).attempt(is_first=True)
        elif not (targets := list(replicas)):  # the client's own server would be judged in their place (BAR-53)
            raise ConfigurationError(
                "replicas=[] names no server: name those that readers of this region may use, or leave it out for the "
                "client's own",
                code="AP501",
            )
        else:
            for target in targets:
                self._add(self._region, target, None)

    def discover(self, name: str, ask: Callable[[], Sequence[Any]], *, key: Hashable, listed: bool = False) -> None:
        region = not self._is_listed(listed)
        if key not in self._discoveries:
            self._join_source(name, ask, own=True, region=region, key=key).attempt()
        elif region and not self._discoveries[key].region:
            self._discoveries[key].region = True
            self._grow()

    def _join_source(
        self, name: str, ask: Callable[[], Sequence[Any]], *, own: bool, region: bool, key: Hashable
    ) -> Discovery:
        found = self._discoveries.get(key) or Discovery(self, name, ask, own=own, region=region, once=False)
        self._discoveries[key] = found
        self._grow()
        return found

    def _grow(self) -> None:
        """Note that the set of servers is another one: under the lock, for who changes it at once with another does."""
        with self.lock:
            self.generation += 1

    def expect_server(self, client: Any, ask: Callable[[Any], Any], name: str, *, listed: bool = False) -> Discovery:
        gone = weakref.ref(client, lambda _: self._discoveries.pop(id(expected), None))

        def servers() -> Sequence[Any]:
            alive = gone()
            if alive is None:
                expected.go_on()  # nobody waits for what it would have said
                return ()
            target = ask(alive)
            return () if target is None else (target,)

        expected = Discovery(self, name, servers, own=True, region=not self._is_listed(listed), once=True)
        self._discoveries[id(expected)] = expected
        self._grow()
        return expected

    def follow_client(
        self,
        client: Any,
        look: Callable[[Any], object],
        ask: Callable[[Any], Sequence[Any]],
        name: str,
        *,
        listed: bool = False,
        varies: Callable[[Any], bool] = lambda _: False,
        meet: Callable[[Any], None] = lambda _: None,
    ) -> ClientServers:
        region = not self._is_listed(listed)
        source = ClientServers(self, name, client, look, ask, region=region, varies=varies, meet=meet)
        self._discoveries[id(source)] = source
        self._grow()
        return source

    def reach(
        self, connection: Any, target: Any, leads: Callable[[Any], bool], *, listed: bool = False
    ) -> JudgedServer:
        region = not self._is_listed(listed)
        with self.lock:
            source = self._reached.get(region)
            if source is None:
                source = self._reached[region] = ReachedServers(self, region=region)
                self._discoveries[id(source)] = source
        return source.reach(connection, target, leads)

    def _settle_clients(self) -> None:
        """Keep the servers of clients that are gone, as long as the process runs: nobody names others."""
        for key, source in list(self._discoveries.items()):
            if source.is_over:
                for server in source.servers.values():  # first: a barrier of another thread sees them here or there
                    self.use_server(server.target, server.address, listed=not source.region)
                self._discoveries.pop(key, None)

    def take_answer(self, source: Discovery, targets: Sequence[Any]) -> None:
        """Let a source have the servers that it names; those that nobody names any more are gone (BAR-54)."""
        named = {self._address_of(target): target for target in targets}
        now = time.monotonic()
        with self.lock:
            found = {
                address: self.server_at(address) or ServerPoller(self, address, named[address]) for address in named
            }
            before, source.servers = source.servers, found
            if source.once:
                for group, own in ((self._own, True), (self._region, False)):
                    if source.names(own=own):
                        group.update(found)
                self._discoveries.pop(id(source), None)  # last: else a barrier sees them neither here nor there
            left = before.keys() - found.keys()
            if isinstance(source, ReachedServers):
                left -= self._named_besides(source)
            self._gone.update(dict.fromkeys(left, now))
            self.generation += before.keys() != found.keys() or not source.is_known(now)

    def _named_besides(self, source: Discovery) -> set[str]:
        """Return the addresses that are judged without this source wherever they are with it."""
        own = self._named_by(own=True, besides=source)
        return own & self._named_by(own=False, besides=source) if source.region else own

    def _named_by(self, *, own: bool, besides: Discovery | None = None) -> set[str]:
        """Return the addresses that are named, of wrapped clients (`own`) or of the region, but for one source."""
        sources = [each for each in list(self._discoveries.values()) if each is not besides and each.names(own=own)]
        return set(self._own if own else self._region).union(*(each.servers for each in sources))

    def has_lost(self, server: JudgedServer, now: float) -> bool:
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            for each in list(self._discoveries.values()):
                with suppress(Exception):  # the application's own code says where a client leads: a barrier raises it
                    if each.servers and each.is_due(now):
                        each.refresh()
        generation = self.generation  # first: what changes meanwhile shows
        if generation == server.known_under:
            return False
        server.known_under = generation
        return not (self.is_named(server, own=True) and self.is_named(server, own=False))

    def is_named(self, server: JudgedServer, *, own: bool) -> bool:
        if server in list(self._discoveries.values()):
            return True
        named = self._named_by(own=own) or self._named_by(own=not own)
        return server.address in named and self.server_at(server.address) is server

    def gone(self, *, own: bool = False) -> Sequence[str]:
        if not self._gone:
            return ()
        now = time.monotonic()
        since = now - settings().left_server
        with self.lock:
            self._gone = {address: at for address, at in self._gone.items() if at > since}
            left = list(self._gone)
        judged = {server.address for server in self.servers(own=own, stale=True)}
        return tuple(address for address in left if address not in judged)

    def _add(self, group: dict[str, JudgedServer], target: Any, address: str | None) -> JudgedServer:
        address = address or self._address_of(target)
        with self.lock:
            server = self.server_at(address)
            if server is None:
                server = ServerPoller(self, address, target)
            if address not in group:
                group[address] = server
                self.generation += 1
        return server

    def _address_of(self, target: Any) -> str:
        """Return a server's address; raise ConfigurationError for what is none."""
        try:
            return self.shim.address(target)
        except (AttributeError, TypeError) as error:  # the shim took it for a client
            words = f"{self.name}: {type(target).__name__} names no server: want its URL, or a client of it (replicas=)"
            raise ConfigurationError(words, code="AP502") from error

    def servers(self, *, own: bool = False, stale: bool = False) -> list[JudgedServer]:
        now = time.monotonic()
        if self._discoveries:
            self._settle_clients()
            self._meet_idle()
        return self._named(now, stale, own=own) or self._named(now, stale, own=not own)

    def _meet_idle(self) -> None:
        """Have idle connections looked at: a pool may hold some that lead elsewhere than its words (BAR-68)."""
        for each in list(self._discoveries.values()):
            each.meet_idle()

    def _named(self, now: float, stale: bool, *, own: bool) -> list[JudgedServer]:
        found = dict(self._own if own else self._region)
        for each in list(self._discoveries.values()):
            counts = each.names(own=own)
            if each.is_due(now) and (counts or each.is_known(now)):
                each.refresh()  # also where it does not count: what it takes away is to be named
            if not counts:
                continue
            if each.is_known(now) or (stale and each.servers):
                found.update(each.servers)
            else:
                found[f"{each.address} {id(each)}"] = each
        return list(found.values())

    def wrapped_servers(self) -> list[JudgedServer]:
        found: dict[str, JudgedServer] = {}
        for each in list(self._discoveries.values()):
            if each.own and not each.servers:
                with suppress(Exception):  # the caller says that there is none
                    each.ask()
            if each.own:
                found.update(each.servers)
        return list({**self._own, **found}.values())

    def discovery_due(self, now: float) -> bool:
        is_due = False
        if not self._discoveries:
            return False
        for each in list(self._discoveries.values()):  # one look at each: this is on the free path
            each.meet_idle()
            is_due |= each.is_due(now) if each.is_known(now) else each.region
        return is_due

    def server_at(self, address: str) -> JudgedServer | None:
        found = self._own.get(address) or self._region.get(address)
        if found is None:
            for each in list(self._discoveries.values()):
                found = found or each.servers.get(address)
        return found

    def _all_servers(self) -> list[JudgedServer]:
        sources = list(self._discoveries.values())
        return [
            *self._own.values(),
            *self._region.values(),
            *sources,
            *(s for each in sources for s in each.servers.values()),
        ]

    def forget(self) -> None:
        for server in dict.fromkeys(self._all_servers()):
            server.retire()
        super().forget()

    def after_fork(self) -> None:
        super().after_fork()
        for server in dict.fromkeys(self._all_servers()):
            server.after_fork()
