"""What the tests of branches share: two embedded stores in two regions, and a reader in region b."""

from __future__ import annotations

import time
from typing import Any

import antipode
from antipode import Lineage, memory
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.result import BarrierResult


class World:
    """`orders` has the table of branches, `posts` what tasks write; both in region a, and read in region b."""

    def __init__(self, lag: float = 0.0) -> None:
        self.orders = memory.Store("orders", regions=["a", "b"], lag=lag)
        self.posts = memory.Store("posts", regions=["a", "b"], lag=lag)
        self.orders_a = self.orders.client("a", replicas=["b"])
        self.posts_a = self.posts.client("a", replicas=["b"])
        antipode.configure(branches=self.orders_a)

    def hand_over(self, within: float = 30.0) -> tuple[str, str]:
        """A request that hands one task over: the task's text, and what the request's own lineage is then."""
        with antipode.scope():
            with antipode.branch(within=within):
                task = antipode.serialize()
            return task, antipode.serialize()

    def run(self, task: str, key: str = "p", *, close: bool = True) -> None:
        """The task: it writes, and closes its branch."""
        with antipode.message_scope(task):
            self.posts_a.set(key, "1")
            if close:
                antipode.close()


def look(text: str | Lineage, timeout: float = 0.0, **options: Any) -> BarrierResult:
    """A barrier on a lineage, whose verdict is its result."""
    lineage = antipode.deserialize(text) if isinstance(text, str) else text
    with antipode.scope(lineage):
        return antipode.barrier(timeout=timeout, on_timeout="proceed", on_unproven="proceed", **options)


def eventually(text: str | Lineage, within: float = 10.0, **options: Any) -> BarrierResult:
    """The result of a barrier that is satisfied, at last."""
    result = look(text, within, **options)
    assert result.satisfied, result.explain()
    return result


def open_branch(store: str = "orders", lease: float = 30.0, name: str = "ab" * 16) -> BranchId:
    return BranchId(store, name, int((time.time() + lease) * 1000))


def verdict(result: BarrierResult) -> str:
    return str(result.stores[BRANCHES].verdict)


def reason(result: BarrierResult) -> str:
    return result.stores[BRANCHES].reason
