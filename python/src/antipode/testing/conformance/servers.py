"""Cases about which servers a pass speaks of, where somebody else has to say so (spec BAR-22, BAR-52 to BAR-55)."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from antipode._engine import discovery
from antipode._engine.store_servers import RegionStore
from antipode._facade.configuration import configure
from antipode._model.verdict import UnprovenKind, Verdict
from antipode.testing import isolated
from antipode.testing.conformance.cases import Cases, only, registered
from antipode.testing.under_test import StoreUnderTest

_RECONNECT_S = 0.3


def _ask_for_servers(store: RegionStore, ask: Callable[[], Sequence[Any]]) -> None:
    """From now on a callable names the region's servers, as `replicas=` of a wrap does."""
    store._region.clear()
    store.list_replicas(ask)


class Servers(Cases):
    """Discovery that fails, servers that it takes away, clients that nobody has used or listed, addresses that move."""

    @pytest.fixture
    def often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What names the servers is asked at every barrier."""
        monkeypatch.setattr(discovery, "REFRESH_S", 0.0)

    def test_client_before_its_first_use(self, store: StoreUnderTest) -> None:
        """The server of a wrapped client that has not connected yet is waited for like the others (BAR-52)."""
        store.partition(store.near)
        key = store.new_key()
        lineage = store.written(key, "v")
        with isolated():
            clients = [store.wrap_unused(server) for server in (store.primary, store.near)]
            if None in clients:
                pytest.skip("its clients are told apart by no server, or connect when they are made")
            assert not store.judge(lineage, store.brief).satisfied
            store.heal(store.near)
            result = store.judge(lineage)
            assert result.complete
            assert len(result.stores[store.name].servers) == 2
        assert store.shows(key, "v", store.near)

    def test_client_that_its_wrap_alone_holds(self, store: StoreUnderTest) -> None:
        """It is asked where it leads for as long as the wrap can open connections by it (BAR-52)."""
        lineage = store.written(store.new_key())
        with isolated():
            client = store.wrap_unused(store.near)
            sources = [] if client is None else list(registered(store)._discoveries.values())
            if not sources:
                pytest.skip("nobody has to be asked where a client leads")
            gc.collect()
            assert store.judge(lineage).complete
            assert not [source.address for source in sources if source.is_over]
            del client

    def test_empty_discovery(self, store: StoreUnderTest, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """The last answer stands for a while; then nothing is proved, least of all by the primary alone (BAR-53)."""
        found = registered(store)
        named = [server.target for server in found.servers()]
        answer = list(named)
        _ask_for_servers(found, lambda: answer)
        store.until(
            lambda: store.judge(store.written(store.new_key())).complete, "the servers that are named are judged"
        )
        answer.clear()
        store.partition(store.near)
        lineage = store.written(store.new_key())
        assert not store.judge(lineage, store.brief).satisfied
        with monkeypatch.context() as patch:
            patch.setattr(discovery, "STALE_S", 0.0)  # with it each answer is too old as soon as it is there
            late = store.judge(lineage, store.brief).stores[store.name]
            assert (late.verdict, late.kind) == (Verdict.UNPROVEN, UnprovenKind.DISCOVERY)
        answer += named
        store.heal(store.near)
        store.until(lambda: store.judge(lineage, 1.0).complete, "they are named again")

    def test_server_taken_away(self, store: StoreUnderTest, often: None) -> None:
        """It is named as left out, and no pass is complete, for as long as a connection may lead there (BAR-54)."""
        found = registered(store)
        answer = [server.target for server in found.servers()]
        if len(answer) < 2:
            pytest.skip("one server is all that it has")
        gone = found.shim.address(answer[-1])
        _ask_for_servers(found, lambda: answer)
        lineage = store.written(store.new_key())
        store.until(lambda: store.judge(lineage).complete, "the servers that are named are judged")
        answer = answer[:-1]
        store.until(lambda: store.judge(lineage).stores[store.name].left_out == (gone,), "it is named as left out")
        result = store.judge(lineage)
        assert result.satisfied
        assert not result.complete
        configure(left_server=0)
        store.until(lambda: store.judge(lineage).complete, "no connection leads there any more")

    @only(queues=False)
    @pytest.mark.parametrize("first", ["listed", "unlisted"])
    def test_reader_in_nobodys_list(self, store: StoreUnderTest, first: str) -> None:
        """A client that is wrapped without `replicas=` is judged also where another wrap has a list (BAR-22)."""
        store.partition(store.far)
        key = store.new_key()
        lineage = store.written(key, "v")
        store.until(lambda: store.shows(key, "v", store.near), "the write reaches the near replica")
        with isolated():
            listed = {"server": store.near, "replicas": [store.near]}
            wraps: list[dict[str, Any]] = [listed, {"server": store.far}]
            for wrap in wraps if first == "listed" else reversed(wraps):
                store.wrap_client(**wrap)
            result = store.judge(lineage, store.brief)
            assert not result.satisfied
            assert not result.complete
            store.heal(store.far)
            result = store.judge(lineage)
            assert result.complete
            assert len(result.stores[store.name].servers) == 2
        assert store.shows(key, "v")

    def test_address_that_moves(self, store: StoreUnderTest) -> None:
        """Once an address leads to a server that is behind, the one before proves nothing any more (BAR-55)."""
        if not store.shim.reconnects:
            pytest.skip("what its connection has seen is not seen again: it is not given up")
        with isolated():
            configure(reconnect=_RECONNECT_S)
            lead = store.list_moving(store.near)
            store.until(lambda: store.judge(store.written(store.new_key()), 1.0).complete, "the address is judged")
            store.partition(store.far)
            lead(store.far)
            store.until(
                lambda: not store.judge(store.written(store.new_key()), store.brief).satisfied,
                "it is asked where the address leads now",
            )
            for _ in range(5):
                key = store.new_key()
                lineage = store.written(key, "v")
                assert not store.judge(lineage, store.brief).satisfied
            assert store.look(key, store.far) is None, "the partition does not part"
            store.heal(store.far)
            store.until(lambda: store.judge(lineage, 1.0).complete, "the server behind the address has caught up")
            assert store.shows(key, "v", store.far)
