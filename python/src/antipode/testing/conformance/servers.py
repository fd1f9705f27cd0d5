"""Cases about which servers a pass speaks of, where somebody else has to say so (spec BAR-52 to BAR-54)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from antipode import discovery
from antipode.settings import configure
from antipode.shim import Store
from antipode.testing import isolated
from antipode.testing.conformance.cases import Cases, registered
from antipode.testing.under_test import StoreUnderTest
from antipode.verdict import UnprovenKind, Verdict


def _ask_for_servers(store: Store, ask: Callable[[], Sequence[Any]]) -> None:
    """From now on a callable names the region's servers, as `replicas=` of a wrap does."""
    store._listed.clear()
    store.discover("what names the servers", ask, own=False, key="kit")


class Servers(Cases):
    """Discovery that fails, servers that it takes away, clients that nobody has used yet."""

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
        monkeypatch.setattr(discovery, "STALE_S", 0.0)
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
