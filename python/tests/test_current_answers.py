"""How old may be what discovery said, and that it is taken as a whole (spec BAR-54, BAR-65, BAR-67)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._engine import discovery
from antipode._engine.plan import StoreRequest
from antipode._model.verdict import NOT_YET, VISIBLE, UnprovenKind
from antipode.shim import StoreOptions, join_store
from fakes import FakeShim, Target, always
from inner import region_store

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


def judge(timeout: float = 60.0) -> antipode.BarrierResult:
    return antipode.barrier(WRITE, timeout=timeout, on_timeout="proceed", on_unproven="proceed")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    monkeypatch.setattr(discovery, "CURRENT_S", 1.0)


class Listed:
    """A callable for `replicas=`."""

    def __init__(self, *targets: Target) -> None:
        self.targets: Sequence[Target] = targets
        self.error: Exception | None = None
        self.seconds = 0.0
        """It takes so long."""

    def __call__(self) -> Sequence[Target]:
        targets = self.targets
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return targets


def test_behind_idle_time_a_barrier_waits_for_what_discovery_says_now() -> None:
    """BAR-67: however slow the callable is."""
    listed = Listed(Target("before", always(VISIBLE)))
    join_store("posts", FakeShim, StoreOptions(replicas=listed))
    assert judge().complete
    now = Target("now", always(NOT_YET))
    listed.targets, listed.seconds = [now], 0.3
    time.sleep(1.1)
    result = judge(1.0)
    assert not result.satisfied
    assert [server.address for server in result.stores["posts"].servers] == ["now"]
    now.answer = always(VISIBLE)
    listed.seconds = 0.0
    assert judge(60.0).satisfied


@pytest.mark.parametrize("fault", ["empty", "error"])
def test_behind_idle_time_a_fault_of_discovery_leaves_the_last_answer(fault: str) -> None:
    """BAR-53, BAR-67: nobody waits to the deadline for it."""
    listed = Listed(Target("b", always(VISIBLE)))
    join_store("posts", FakeShim, StoreOptions(replicas=listed))
    assert judge().complete
    if fault == "empty":
        listed.targets = []
    else:
        listed.error = OSError("no such name")
    time.sleep(1.1)
    listed.seconds = 0.3
    began = time.monotonic()
    assert judge(60.0).complete
    assert time.monotonic() - began < 30


def test_a_barrier_that_discovery_does_not_answer_in_time_says_why() -> None:
    """BAR-67: it has been asked, only too long ago."""
    answers = threading.Event()
    answers.set()

    def listed() -> Sequence[Target]:
        answers.wait(60.0)
        return [Target("b", always(VISIBLE))]

    join_store("posts", FakeShim, StoreOptions(replicas=listed))
    assert judge().complete
    answers.clear()
    time.sleep(1.1)
    found = judge(0.1).stores["posts"]
    answers.set()
    assert found.kind is UnprovenKind.DISCOVERY
    assert "what was said of them is too old" in found.reason


def test_servers_and_who_left_are_named_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-54, BAR-65: one server was judged, and named as left out, and the one that is there now was not judged."""
    monkeypatch.setattr(discovery, "REFRESH_S", 60.0)  # nobody asks again meanwhile
    monkeypatch.setattr(discovery, "CURRENT_S", 60.0)
    listed = Listed(Target("before", always(VISIBLE)))
    store = join_store("posts", FakeShim, StoreOptions(replicas=listed))
    [source] = region_store(store)._discoveries.values()
    gone = region_store(store).gone

    def change(*, own: bool = False) -> Sequence[str]:
        monkeypatch.setattr(store, "gone", gone)
        source.found([Target("now", always(VISIBLE))])
        return gone(own=own)

    monkeypatch.setattr(store, "gone", change)
    asked = StoreRequest.of(region_store(store), [], own=False)
    assert [server.address for server in asked.servers] == ["now"]
    assert list(asked.gone) == ["before"]
    assert asked.generation == store.generation
