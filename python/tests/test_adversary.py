"""The adversary on the embedded store: it is silent where all is recorded, and finds what is not (spec SHIM-49)."""

from __future__ import annotations

import contextvars
from typing import Any, ClassVar
from unittest.mock import patch

import antipode
import pytest
from antipode.memory import Store
from antipode.testing.adversary import Stage, check, play, search
from fakes import until

MOST = 120
"""So many programs it may take to find a fault."""


class Refusal(Exception):
    """What the plain client raises."""


class MemoryStage(Stage):
    """Two regions in this process; what is written in one is in the other at once, but for a cut."""

    errors = (Refusal,)
    writes: ClassVar = {"set": lambda client, row: client.set(row, b"v")}
    acts: ClassVar = {"rest": lambda client: None}
    reads: ClassVar = {"get": lambda reader, row: reader.get(row)}
    replicas = ("b",)

    def __init__(self) -> None:
        self.memory = Store(self.name, regions=["a", "b"], lag=0.0)
        self._rows: set[str] = set()

    def open(self, kind: int, *, plain: bool = False) -> Any:
        client: Any = self.memory.client("a", replicas=["b"])
        client.plain, put = plain, client.set

        def set_and_note(row: str, value: bytes) -> None:
            self._rows.add(row)
            put(row, value)

        client.set = set_and_note
        return client

    def close(self, client: Any) -> None:
        """Nothing is open."""

    def reader(self) -> Any:
        return self.memory.client("b", wait_on_read=True, replicas=["b"])

    def rows(self, server: str | None = None) -> set[str]:
        return {row for row in self._rows if self.memory.look(server or "a", row) is not None}

    def clear(self) -> None:
        self._rows = set()

    def cut(self) -> None:
        until(lambda: self.rows("b") == self.rows())
        self.memory.freeze("b")

    def heal(self) -> None:
        self.memory.heal("b")


def lose(client: Any, row: str) -> None:
    """Write, and record nothing."""
    contextvars.Context().run(client.set, row, b"v")


def lose_later(client: Any, row: str) -> None:
    """Record the first write of a scope alone."""
    scope = antipode.current_scope()
    if scope is None or scope.lineage:
        lose(client, row)
    else:
        client.set(row, b"v")


def change(client: Any, row: str) -> object:
    """Write; give what the plain client does not give."""
    client.set(row, b"v")
    return None if client.plain else 1


def swallow(client: Any, row: str) -> None:
    """Write only by the plain client."""
    if client.plain:
        client.set(row, b"v")


def fail(client: Any, row: str) -> None:
    if not client.plain:
        raise AttributeError(row)


def refuse(reader: Any, row: str) -> Any:
    raise Refusal(row)


class LosingStage(MemoryStage):
    writes: ClassVar = {**MemoryStage.writes, "lose": lose}


class LateLosingStage(MemoryStage):
    writes: ClassVar = {"lose later": lose_later}


class FailingStage(MemoryStage):
    writes: ClassVar = {**MemoryStage.writes, "fail": fail}


class ChangingStage(MemoryStage):
    writes: ClassVar = {**MemoryStage.writes, "change": change}


class SwallowingStage(MemoryStage):
    writes: ClassVar = {**MemoryStage.writes, "swallow": swallow}


class RefusingStage(MemoryStage):
    reads: ClassVar = {"refuse": refuse}


class HastyStage(MemoryStage):
    def reader(self) -> Any:
        return self.memory.client("b", replicas=["b"])


def test_it_is_silent_where_all_is_recorded() -> None:
    tally = play(MemoryStage(), MOST, seed=1)
    check(tally)
    assert tally.reads


@pytest.mark.parametrize(
    ("stage", "rule"),
    [
        (LosingStage, "recorded"),
        (LateLosingStage, "recorded"),
        (FailingStage, "serving"),
        (ChangingStage, "plain"),
        (SwallowingStage, "plain"),
        (HastyStage, "waiting"),
        (RefusingStage, "waiting"),
    ],
)
def test_it_finds_a_fault_and_makes_its_program_small(stage: type[Stage], rule: str) -> None:
    tally = play(stage(), MOST, seed=1)
    assert {finding.rule for finding in tally.findings} == {rule}
    assert min(len(finding.program.steps) for finding in tally.findings) <= 2
    assert "seed" in str(tally)


def test_a_search_ends_with_the_first_thing_that_a_patch_breaks() -> None:
    assert search(MemoryStage(), MOST, 1, []) is None
    found = search(MemoryStage(), MOST, 1, [patch.object(MemoryStage, "writes", {"lose": lose})])
    assert found is not None
    assert found.rule == "recorded"
    assert MemoryStage.writes.keys() == {"set"}
