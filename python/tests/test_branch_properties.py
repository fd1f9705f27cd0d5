"""Random requests and tasks against a model that keeps whole sets: no false pass, and none that is missed.

A reader of a lineage depends on all that it holds, and on all that the tasks of its branches held when they closed
(BRANCH-4, BRANCH-7, BRANCH-9, BRANCH-12, BRANCH-13, BRANCH-17).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import antipode
from antipode import Lineage, Scope
from antipode._facade.branches import close_scope
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._scope.context import activate
from antipode._store.branch_table import CLOSED
from antipode.testing import isolated
from branching import World, look
from hypothesis import example, given, settings
from hypothesis import strategies as st

OPERATIONS = ("write", "hand over", "close", "transfer", "freeze posts", "freeze orders", "heal", "look")
steps = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 50), st.integers(0, 50))
programs = st.lists(steps, min_size=5, max_size=40)


@dataclass
class Actor:
    """A request or task: its scope, and what it depends on as the model has it."""

    scope: Scope
    own: bytes = b""
    writes: set[int] = field(default_factory=set)
    branches: set[bytes] = field(default_factory=set)


class Model:
    def __init__(self) -> None:
        self.world = World()
        self.actors = [Actor(Scope()), Actor(Scope())]
        self.closed: dict[bytes, Actor] = {}
        """By branch: what its task depended on when it closed first."""
        self.written = 0
        self.frozen: set[str] = set()
        self.shown_writes: set[int] = set()
        self.shown_rows: set[bytes] = set()

    def run(self, operation: str, first: int, second: int) -> None:
        actor = self.actors[first % len(self.actors)]
        other = self.actors[second % len(self.actors)]
        match operation:
            case "write":
                self.written += 1
                with activate(actor.scope):
                    self.world.posts_a.set(f"k{self.written}", "1")
                actor.writes.add(self.written)
            case "hand over":
                self.hand_over(actor)
            case "close" if actor.own:
                close_scope(actor.scope)
                self.closed.setdefault(actor.own, Actor(actor.scope, b"", set(actor.writes), set(actor.branches)))
            case "transfer":
                actor.scope.transfer(antipode.deserialize(other.scope.lineage.serialize()))
                actor.writes |= other.writes
                actor.branches |= other.branches - {actor.own}
            case "freeze posts" | "freeze orders":
                name = operation.rpartition(" ")[2]
                getattr(self.world, name).freeze("b")
                self.frozen.add(name)
            case "heal":
                self.world.posts.heal("b")
                self.world.orders.heal("b")
                self.frozen.clear()
            case "look":
                self.check(actor)
        if "posts" not in self.frozen:
            self.shown_writes = set(range(1, self.written + 1))
        if "orders" not in self.frozen:
            self.shown_rows = set(self.closed)

    def hand_over(self, actor: Actor) -> None:
        with activate(actor.scope):
            with antipode.branch(within=600) as block:
                task = antipode.serialize()
            [branch] = block.announced
        self.actors.append(
            Actor(Scope(antipode.deserialize(task), kind="message"), branch.key, set(actor.writes), set(actor.branches))
        )
        actor.branches.add(branch.key)

    def check(self, actor: Actor) -> None:
        lineage = actor.scope.lineage
        held = {BranchId.of(write_id) for write_id in lineage.of_store(BRANCHES)}
        assert {branch.key for branch in held if branch is not None} == actor.branches
        assert actor.own not in actor.branches
        CLOSED._held.clear()  # as another process
        expected = self.expected(actor)
        result = look(Lineage.deserialize(lineage.serialize()), 20.0 if expected else 0.0)
        assert result.satisfied is expected, result.explain()

    def expected(self, actor: Actor) -> bool:
        """Whether all that this depends on is there, in region b.

        Its own branch adds nothing, also where a task beside it held it: what it wrote until now is in its lineage
        (BRANCH-7).
        """
        writes, todo, met = set(actor.writes), list(actor.branches), {actor.own}
        while todo:
            branch = todo.pop()
            if branch in met:
                continue
            met.add(branch)
            if branch not in self.shown_rows:
                return False
            writes |= self.closed[branch].writes
            todo += self.closed[branch].branches
        return max(writes, default=0) <= max(self.shown_writes, default=0)


@settings(max_examples=60, deadline=None)
@given(programs)
@example([("write", 0, 0), ("hand over", 0, 0), ("hand over", 0, 0), ("close", 3, 0), ("transfer", 2, 0)])
def test_a_barrier_passes_where_all_is_there_and_only_there(program: list[tuple[str, int, int]]) -> None:
    with isolated():
        model = Model()
        for operation, first, second in program:
            model.run(operation, first, second)
        for actor in model.actors:
            model.check(actor)
