"""Where a wrapped client will lead: its pools as they are now, and the connections that they handed out (BAR-52)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from antipode_redis.targets import (
    Target,
    asks_sentinels,
    held_by,
    is_plain,
    look_at,
    place_of,
    reached_by,
    servers_of,
    target_at,
)


class MetConnection(NamedTuple):
    """A connection that a wrapped client has handed out, or will."""

    connection: weakref.ref[Any]
    pool: Any
    """What handed it out."""
    words: object
    """What the connection had for its server when it was opened last; its peer, where its words name another."""
    target: Target
    """What it reached then."""


class Leads:
    """The pools of one wrapped client and of what was made of it, and their living connections.

    A connection goes where its own words say when it is opened anew, whatever becomes of the pool's.
    """

    def __init__(self) -> None:
        self._pools: dict[int, tuple[weakref.ref[Any], Any]] = {}
        """By who has them: a client may be given another one."""
        self._met: dict[int, MetConnection] = {}

    def uses(self, client: Any, pool: Any) -> None:
        """Note that a client takes its connections from this pool from now on."""
        pools, place = self._pools, id(client)

        def forget(_: Any) -> None:
            if len(pools) > 1:  # a pipeline of the last one goes on by its pool
                pools.pop(place, None)

        pools[place] = weakref.ref(client, forget), pool

    def knows(self, connection: Any) -> bool:
        """Return whether it was met before."""
        return id(getattr(connection, "_conn", connection)) in self._met

    def opened(self, connection: Any, pool: Any = None) -> MetConnection | None:
        """Note where a connection leads that is open, or will be by its words. None: Sentinels are asked for it.

        `pool`: what hands it out, where it was not met before. May resolve a name, of a class of the application's own.
        """
        own = getattr(connection, "_conn", connection)  # with redis-py's client cache the client has a proxy
        met, place = self._met, id(own)
        pool = met[place].pool if pool is None and place in met else pool
        if pool is None or asks_sentinels(pool):
            return None
        peer = reached_by(own)
        words = place_of(own) if peer is None or not is_plain(type(own)) else peer
        target = target_at(pool, own, peer)
        found = met[place] = MetConnection(weakref.ref(own, lambda _: met.pop(place, None)), pool, words, target)
        return found

    def strangers(self, *, plain: bool) -> list[tuple[Any, Any]]:
        """Return the connections that its pools hold and have not handed out, each with its pool (BAR-68).

        plain: those of redis-py's own classes; else the others, of which a name may have to be resolved.
        """
        return [
            (connection, pool)
            for pool in self._distinct()
            for connection in held_by(pool)
            if not self.knows(connection) and is_plain(type(getattr(connection, "_conn", connection))) is plain
        ]

    def look(self) -> object:
        """Return what decides where the client leads; equal as long as it leads where it led, and that is known."""
        led = {(each.target.address, place_of(own)) for each, own in self._alive()}
        unknown = object() if self.strangers(plain=False) else None  # equal to nothing: `servers` is to meet them
        return [look_at(pool) for pool in self._distinct()], led, unknown

    def servers(self) -> Sequence[Target]:
        """Return the servers to which it will lead. Raises what the client raises where a pool's cannot be known."""
        found = self.met_servers()
        for pool in self._distinct():
            try:
                found |= {target.address: target for target in servers_of(pool)}
            except Exception:  # what it has handed out is where it leads, as far as anybody knows
                if not any(each.pool is pool for each, _ in self._alive()):
                    raise
        return list(found.values())

    def met_servers(self) -> dict[str, Target]:
        """Return the servers to which the connections lead that were met, by address."""
        found: dict[str, Target] = {}
        for each, own in self._alive():
            was_told = place_of(own) != each.words  # to go elsewhere
            target = target_at(each.pool, own, None) if was_told else each.target
            found[target.address] = target
        return found

    def _distinct(self) -> Iterable[Any]:
        return {id(pool): pool for _, pool in list(self._pools.values())}.values()

    def _alive(self) -> Iterable[tuple[MetConnection, Any]]:
        for each in list(self._met.values()):
            own = each.connection()
            if own is not None:
                yield each, own
