"""Writes that give documents back, or copy them, are reads, too (SHIM-13, SHIM-43, SHIM-44)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._model.result import BarrierTimeout
from mongodb_regions import DATABASE, STORE, Posts, versions

ASKS: dict[str, Callable[[Any, str], Any]] = {
    "find_one_and_update": lambda posts, name: posts.find_one_and_update({"_id": name}, {"$set": {"v": 2}}),
    "find_one_and_replace": lambda posts, name: posts.find_one_and_replace({"_id": name}, {"v": 2}),
    "find_one_and_delete": lambda posts, name: posts.find_one_and_delete({"_id": name}),
}
WIDE: dict[str, Callable[[Any, str], Any]] = {
    "findAndModify": lambda posts, name: posts.database.command(
        "findAndModify", posts.name, query={"_id": name}, update={"$set": {"v": 2}}
    )["value"],
    "out": lambda posts, name: posts.aggregate([{"$match": {"_id": name}}, {"$out": "copied"}]),
    "what nobody knows": lambda posts, name: posts.database.command("antipodeUnknown", posts.name),
}


@pytest.mark.parametrize("ask", [*ASKS.values(), *WIDE.values()], ids=[*ASKS, *WIDE])
def test_a_write_that_gives_something_back_waits(posts: Posts, name: str, ask: Callable[[Any, str], Any]) -> None:
    """SHIM-44: what it gives is what was there, at its own server."""
    impatient = posts.wrap(posts.plain["b1"], wait_on_read=True, timeout=0.2)[DATABASE]["posts"]
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": name, "v": 1})
        with pytest.raises(BarrierTimeout, match="wait on read"):
            ask(impatient, name)
        assert not scope.pending, "it was not sent"


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_what_is_given_back_says_what_it_depends_on(posts: Posts, name: str, ask: Callable[[Any, str], Any]) -> None:
    """SHIM-13: the old value's version, and what rests beside it."""
    other = Lineage([WriteId.position("others", "e", 7)])
    with antipode.scope(other) as scope:
        posts.posts.insert_one({"_id": name, "v": 1})
        written = versions(scope.lineage)
    with antipode.scope(), antipode.reading() as seen:
        assert ask(posts.posts, name) == {"_id": name, "v": 1}
    assert versions(seen.lineage) == written
    assert other <= seen.lineage
    assert seen.lineage.is_complete()


def test_of_a_command_nobody_can_tell(posts: Posts, name: str) -> None:
    """SHIM-44"""
    with antipode.scope(), antipode.reading() as seen:
        posts.posts.insert_one({"_id": name, "v": 1})
        assert seen.lineage == Lineage()
        assert seen.lineage.is_complete()
        WIDE["findAndModify"](posts.posts, name)
    assert seen.lineage.incomplete == {STORE}
