"""What passes without a question, by answers to others: positions that all of its servers have, at one instant."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._base import observers
from antipode._engine.pending_wait import Proof
from antipode._engine.server import ServerPoller
from antipode._model.verdict import VISIBLE, not_yet
from antipode._store.store import Store
from antipode.shim import Capabilities, Server, Visibility
from fakes import FakeShim, Target, fake_store, until
from inner import poller

STORE = "log"
POSITION = WriteId.position(STORE, "e1", 5)


class PositionShim(FakeShim):
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position")


class Replica(Target):
    """A server that has the position, until it has lost it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, self._judge)
        self.applied = 5

    def _judge(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        server.applied(f"i-{self.name}", "e1", {"e1": self.applied})
        return [VISIBLE if self.applied >= 5 else not_yet("behind")] * len(ids)


class Place:
    """A store of two servers that were asked; its barriers are of one scope, or each of a lineage that came in."""

    def __init__(self, *, in_scope: bool) -> None:
        self.replicas = [Replica("first"), Replica("second")]
        self.store: Store = fake_store(STORE, *self.replicas, shim=PositionShim)
        self._in_scope = in_scope
        assert self.barrier(60).satisfied

    def barrier(self, timeout: float) -> antipode.BarrierResult:
        lineage = None if self._in_scope else Lineage([POSITION])
        return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed")

    def while_looked_at(self, happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
        """Have something happen once, when what the last server proved is looked up by the thread that calls this."""
        looked, thread = ServerPoller.kept_proof, threading.current_thread()

        def kept_proof(server: ServerPoller, epoch: str, counter: int, since: float) -> Proof | None:
            found = looked(server, epoch, counter, since)
            if server.address == "second" and threading.current_thread() is thread:
                monkeypatch.setattr(ServerPoller, "kept_proof", looked)
                happens()
            return found

        monkeypatch.setattr(ServerPoller, "kept_proof", kept_proof)


@pytest.fixture(params=[True, False], ids=["repeated", "came in"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    antipode.configure(free_path_ttl=60, poll=0.005)
    with antipode.scope(Lineage([POSITION])):
        yield Place(in_scope=request.param)


def test_it_asks_nobody_and_is_counted(place: Place) -> None:
    """BAR-35: also where the lineage has just come in."""
    asked, freely = [each.asked for each in place.replicas], observers.barriers["free"]
    for _ in range(10):
        result = place.barrier(1.0)
        assert result.complete
        assert result.waited == 0
        assert [each.address for each in result.stores[STORE].servers] == ["first", "second"]
    assert observers.barriers["free"] == freely + 10
    assert [each.asked for each in place.replicas] == asked


def test_proofs_that_did_not_stand_together_are_no_pass(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-63, BAR-33: one server loses what it had while the other one is looked at."""
    first = place.replicas[0]

    def lose() -> None:
        first.applied = 0
        place.store.servers()[0].reset()

    place.while_looked_at(lose, monkeypatch)
    assert not place.barrier(0.2).satisfied


def test_a_server_that_joins_meanwhile_is_judged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65: it is known when the pass is given."""
    late = Replica("late")
    late.applied = 0
    place.while_looked_at(lambda: place.store.list_replicas([late]), monkeypatch)
    assert not place.barrier(0.2).satisfied
    late.applied = 5
    assert place.barrier(60).complete


def test_objects_are_asked_for() -> None:
    """BAR-35: a watermark covers positions alone."""
    target = Target("only", lambda ids, _: [VISIBLE] * len(ids))
    fake_store(STORE, target)
    lineage = Lineage([WriteId(STORE, "k", antipode.Ordered("", 5))])
    for asked in (1, 2):
        assert antipode.barrier(lineage, timeout=60).satisfied
        until(lambda asked=asked: target.asked >= asked)  # type: ignore[misc]


def test_servers_are_asked_on_while_barriers_pass(place: Place) -> None:
    """BAR-37, BAR-34: who passes without a question keeps them warm all the same."""
    for _ in range(2):  # the first one may ask
        passed_at = [poller(server).passed_at for server in place.store.servers()]
        assert place.barrier(1.0).satisfied
    assert all(
        poller(server).passed_at > before for server, before in zip(place.store.servers(), passed_at, strict=True)
    )


def test_a_store_that_is_joined_by_other_options_is_judged_anew() -> None:
    """BAR-35, MODE: what passed without a store is no pass where the store counts."""
    antipode.configure(free_path_ttl=60, poll=0.005)
    late = Replica("late")
    late.applied = 0
    fake_store(STORE, Replica("there"), shim=PositionShim)
    fake_store("off", late, shim=PositionShim, mode="off")
    with antipode.scope(Lineage([POSITION, WriteId.position("off", "e1", 5)])):
        for _ in range(3):
            assert antipode.barrier(timeout=60).satisfied
        fake_store("off", shim=PositionShim, mode="enforce")
        assert not antipode.barrier(timeout=0.2, on_timeout="proceed").satisfied


def test_what_is_not_whole_goes_the_long_way(place: Place) -> None:
    """BAR-64: with `require_complete` each server shows it once more; BAR-7: an expected store is unproven."""
    asked = [each.asked for each in place.replicas]
    assert antipode.barrier(Lineage([POSITION]), timeout=60, require_complete=True).complete
    assert all(now.asked > before for now, before in zip(place.replicas, asked, strict=True))
    antipode.configure(stores=["other"])
    lineage = Lineage([POSITION, WriteId.position("other", "e1", 1)])
    assert not antipode.barrier(lineage, timeout=1.0, on_timeout="proceed").satisfied
