"""What a server has proved, and for how long; and that nothing is kept for those that wait no more (BAR-33, BAR-39)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import ClassVar

import antipode
from antipode import Lineage, WriteId
from antipode.need import Group, Need
from antipode.position_queue import PositionQueue
from antipode.shim import Capabilities, Server, Visibility
from antipode.store import registry
from antipode.verdict import VISIBLE
from fakes import FakeShim, Target, fake_store

STORE = "log"


class ReplacedShim(FakeShim):
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position")


class Replaced(Target):
    """A server whose data are replaced while its answer is on the way, as a push says."""

    def __init__(self) -> None:
        super().__init__("log-1", self._judge)
        self.replaced = False

    def _judge(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        if self.replaced:
            pushed = threading.Thread(target=server.reset)  # a channel's own thread
            pushed.start()
            pushed.join()
        server.applied("i1", "e1", {"e1": 10})
        return [VISIBLE] * len(ids)


def test_an_answer_from_before_the_data_were_replaced_proves_nothing_for_later() -> None:
    target = Replaced()
    fake_store(STORE, target, shim=ReplacedShim)
    lineage = Lineage([WriteId.position(STORE, "e1", 5)])
    [server] = registry().need(STORE).servers()
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert server.holds("e1", 5, time.monotonic())
    target.replaced = True
    server.reset()
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert not server.holds("e1", 5, time.monotonic())
    target.replaced = False
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert server.holds("e1", 5, time.monotonic())


def test_needs_that_were_given_up_do_not_pile_up_behind_one_that_waits() -> None:
    """A lineage may hold forged positions that never come, each behind the one before."""
    fake_store(STORE, Replaced(), shim=ReplacedShim)
    [server] = registry().need(STORE).servers()
    queue = PositionQueue()

    def need(counter: int) -> Need:
        return Need(WriteId.position(STORE, "e1", counter), server, Group(1.0, lambda: None, None))

    first = need(1)
    queue.push(first)
    for counter in range(2, 10_000):
        late = need(counter)
        queue.push(late)
        late.done = True
        queue.given_up()
    assert queue.first() is first
    assert len(queue._heap) < 200
    assert list(queue.reached(10_000)) == [first]
