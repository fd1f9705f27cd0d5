"""Servers that nobody names: judged as long as a connection of a wrapped client leads there (spec BAR-62)."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Sequence
from typing import Any

import antipode
import pytest
from antipode import WriteId
from antipode._engine import discovery
from antipode._engine.poller import is_connected
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode.shim import Server, Store, StoreOptions, Visibility, join_store
from fakes import FakeShim, Target, always
from inner import region_store
from test_discovery import judge, until


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)


class Connection:
    """One of a wrapped client; it leads where it was opened until it is closed."""

    def __init__(self) -> None:
        self.is_open = True


def leads(connection: Connection) -> bool:
    return connection.is_open


class Servers:
    """A store whose wrap names one server; others are reached."""

    def __init__(self, *, listed: bool = False, shim: type[FakeShim] = FakeShim) -> None:
        self.named = Target("named", always(VISIBLE))
        self.old = Target("old", always(NOT_YET))
        self.store = join_store("posts", shim, StoreOptions(replicas=[self.named]))
        self.store.use_server(self.named, listed=listed)
        self.listed = listed

    def reach(self, connection: Any, target: Target, decides: Callable[[Any], bool] = leads) -> None:
        self.store.reach(connection, target, decides, listed=self.listed)


def addresses(result: antipode.BarrierResult) -> list[str]:
    return [server.address for server in result.stores["posts"].servers if not server.left_out]


def left(reach: str = "region") -> tuple[str, ...]:
    return judge(1.0, reach=reach).stores["posts"].left_out


def assert_judged(name: str, reach: str = "region") -> None:
    for _ in range(3):
        result = judge(0.1, reach=reach)
        assert not result.satisfied
        assert name in addresses(result)


def assert_left(name: str) -> None:
    """It is named as left out for a while, and then gone."""
    until(lambda: judge(1.0).satisfied)
    result = judge()
    assert not result.complete
    assert result.stores["posts"].left_out == (name,)
    antipode.configure(left_server=0)
    result = judge()
    assert result.complete
    assert addresses(result) == ["named"]
    antipode.configure(left_server=60)


def test_a_server_is_judged_as_long_as_a_connection_leads_there() -> None:
    """BAR-62: then BAR-54 holds; and where it is reached again it is judged again."""
    servers = Servers()
    connections = [Connection(), Connection()]
    for connection in connections:
        servers.reach(connection, servers.old)
    assert_judged("old")
    connections[0].is_open = False
    assert_judged("old")
    connections[1].is_open = False
    assert_left("old")
    connections[1].is_open = True
    servers.reach(connections[1], servers.old)
    assert_judged("old")


def test_a_connection_that_is_made_anew_elsewhere() -> None:
    """BAR-62, BAR-52: its new server joins at once, and the old one leaves."""
    servers = Servers()
    connection = Connection()
    servers.reach(connection, servers.old)
    assert_judged("old")
    servers.reach(connection, Target("new", always(NOT_YET)))
    assert "new" in addresses(judge(0.1))
    until(lambda: addresses(judge(0.1)) == ["named", "new"])


def test_a_connection_that_is_forgotten() -> None:
    """BAR-62: it is held weakly."""
    servers = Servers()
    connection = Connection()
    servers.reach(connection, servers.old)
    assert_judged("old")
    del connection
    gc.collect()
    assert_left("old")


def test_who_cannot_tell_leads_there() -> None:
    """BAR-62."""
    servers = Servers()
    connection = Connection()

    def fail(_: Connection) -> bool:
        raise AttributeError("no socket")

    servers.reach(connection, servers.old, fail)
    assert_judged("old")


def test_a_server_that_somebody_names_stays() -> None:
    """BAR-62: it is one that nobody names no more."""
    servers = Servers()
    connection = Connection()
    servers.reach(connection, servers.named)
    connection.is_open = False
    for _ in range(3):
        assert judge().complete
    assert addresses(judge()) == ["named"]


@pytest.mark.parametrize("reach", ["region", "replica"])
def test_a_wrap_that_names_the_readers_servers(reach: str) -> None:
    """BAR-22, BAR-62, BAR-54: what its connections reach is asked for reach `replica`; what leaves is named in both."""
    servers = Servers(listed=True)
    connection = Connection()
    servers.reach(connection, servers.old)
    assert judge().complete
    assert_judged("old", "replica")
    connection.is_open = False
    until(lambda: left(reach) == ("old",))


def test_a_wrap_that_names_the_readers_servers_and_its_own() -> None:
    """BAR-62: it names its own, though no reader is there: that no connection is open there takes nothing away."""
    servers = Servers(listed=True)
    writer = Target("writer", always(VISIBLE))
    servers.store.use_server(writer, listed=True)
    connection = Connection()
    servers.reach(connection, writer)
    connection.is_open = False
    until(lambda: judge().complete and not region_store(servers.store)._reached[False].servers)
    assert judge().complete


@pytest.fixture
def store_of_a_list() -> Store:
    """A store whose list has just lost a server."""
    stays = Target("stays", always(VISIBLE))
    listed = [stays, Target("left", always(VISIBLE))]
    store = join_store("posts", FakeShim, StoreOptions(replicas=lambda: listed))
    store.use_server(stays, listed=True)
    assert judge().complete
    listed.pop()
    until(lambda: not judge().complete)
    return store


def test_what_a_list_takes_away_is_named_although_a_writer_reaches_it(store_of_a_list: Store) -> None:
    """BAR-54: readers may still go there; that a wrap with a list reaches it lets no barrier of the region ask it."""
    connection = Connection()
    store_of_a_list.reach(connection, Target("left", always(VISIBLE)), leads, listed=True)
    for _ in range(3):
        assert judge().stores["posts"].left_out == ("left",)


class Proving(FakeShim):
    """Its servers' positions prove something."""

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        answers = super().visible(ids, server)
        server.applied("instance", "e", {"e": 9 if VISIBLE in answers else 5})
        return answers


def test_the_free_path_does_not_pass_on_the_servers_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-62, BAR-35: neither where one joins, nor where one leaves; beside a wrap with a list it is free."""
    monkeypatch.setattr(discovery, "REFRESH_S", 60.0)
    antipode.configure(free_path_ttl=60)
    servers = Servers(shim=Proving)
    elsewhere, connection = Connection(), Connection()
    servers.store.reach(elsewhere, Target("writer", always(NOT_YET)), leads, listed=True)
    servers.store.expect_server(elsewhere, lambda _: None, "a pool that is not opened", listed=True)
    with antipode.scope(antipode.Lineage([WriteId.position("posts", "e", 7)])):
        until(lambda: antipode.barrier() is antipode.barrier())
        servers.reach(connection, servers.old)
        assert not antipode.barrier(timeout=0.1, on_timeout="proceed").satisfied
        servers.old.answer = always(VISIBLE)
        until(lambda: antipode.barrier() is antipode.barrier())
        connection.is_open = False
        region_store(servers.store)._reached[True].ask()
        assert antipode.barrier().stores["posts"].left_out == ("old",)


def test_a_socket_tells_whether_it_leads_anywhere() -> None:
    """BAR-62: lost where the peer has closed it, though octets are there to be read, which stay there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        peer, _ = listening.accept()
        with client:
            assert is_connected(client.fileno())
            peer.sendall(b"octets")
            assert is_connected(client.fileno())
            peer.close()
            until(lambda: not is_connected(client.fileno()))
            assert client.recv(6) == b"octets"
        assert not is_connected(client.fileno())
