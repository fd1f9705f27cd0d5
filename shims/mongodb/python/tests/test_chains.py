"""Documents that come and go under one name: what a greater version proves (SHIM-38, SHIM-52, SHIM-53)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import pytest
from antipode import Lineage, Ordered, Verdict
from antipode._store.hybrid_clock import HybridClock
from antipode_mongodb import tombstones, writing
from antipode_mongodb.fields import VERSION, stored, version_of
from mongodb_regions import DATABASE, STORE, Posts, until, versions


def client_of(posts: Posts, seconds: float = 0.0) -> Any:
    """The collection, by a client of another process whose machine's clock is ahead by so much."""
    client = posts.wrap(posts.plain["a"])
    client._antipode.clock = HybridClock(time_ns=lambda: time.time_ns() + round(seconds * 10**9))
    return client[DATABASE]["posts"]


def written(act: Callable[[], object]) -> Lineage:
    with antipode.scope() as scope:
        act()
        return scope.lineage


def assert_waited_for(posts: Posts, name: str, lineage: Lineage, value: object) -> None:
    """b1 shows an earlier document, of a greater version, until the link carries again."""
    assert lineage.is_complete()
    there = version_of(posts.raw(name, "b1"))
    assert there is not None
    assert there > max(versions(lineage).values()), "else nothing is tested"
    until(lambda: "another document" in posts.look(lineage, 1.0).stores[STORE].reason, "the reason says so")
    assert posts.verdict(lineage, 1.0) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(lineage) is Verdict.VISIBLE
    assert (posts.raw(name, "b1") or {}).get("v") == value


@contextmanager
def burying(act: Callable[..., Any]) -> Iterator[None]:
    """Something happens between a deletion and its tombstone."""
    own = writing.bury
    writing.bury = act
    try:
        yield
    finally:
        writing.bury = own


class Died(BaseException):
    """The process, in effect."""


def die(*_: Any, **__: Any) -> Any:
    raise Died


INSERTIONS: dict[str, Callable[[Any, str], object]] = {
    "insert_one": lambda client, name: client.insert_one({"_id": name, "v": 2}),
    "insert_many": lambda client, name: client.insert_many([{"_id": name, "v": 2}]),
    "update_one": lambda client, name: client.update_one({"_id": name}, {"$set": {"v": 2}}, upsert=True),
    "replace_one": lambda client, name: client.replace_one({"_id": name}, {"v": 2}, upsert=True),
    "update_many": lambda client, name: client.update_many({"_id": name}, {"$set": {"v": 2}}, upsert=True),
    "and changed": lambda client, name: (
        client.insert_one({"_id": name, "v": 1}),
        client.update_one({"_id": name}, {"$set": {"v": 3}}),
        client.replace_one({"_id": name}, {"v": 2}),
    ),
}


@pytest.mark.parametrize("what", INSERTIONS)
def test_a_deletion_whose_tombstone_was_never_written(posts: Posts, name: str, what: str) -> None:
    """SHIM-52: whoever deleted it died, and its machine's clock was ahead of that of who inserts it anew."""
    holder, next_holder = client_of(posts, 50), client_of(posts)
    first = written(lambda: holder.insert_one({"_id": name, "v": 1}))
    assert posts.verdict(first) is Verdict.VISIBLE
    posts.lab.partition("b1")
    with burying(die), pytest.raises(Died):
        written(lambda: holder.delete_one({"_id": name}))
    lineage = written(lambda: INSERTIONS[what](next_holder, name))
    assert_waited_for(posts, name, lineage, 2)


def test_a_document_that_is_made_before_the_tombstone_of_the_one_before(posts: Posts, name: str) -> None:
    """SHIM-52: as locks are taken by `_id`. The tombstone that comes behind it is greater, too."""
    holder, next_holder = client_of(posts, 50), client_of(posts)
    first = written(lambda: holder.insert_one({"_id": name, "v": 1}))
    assert posts.verdict(first) is Verdict.VISIBLE
    posts.lab.partition("b1")
    found = []
    own = writing.bury

    def between(*args: Any, **options: Any) -> Any:
        found.append(written(lambda: next_holder.insert_one({"_id": name, "v": 2})))
        return own(*args, **options)

    with burying(between):
        deleted = written(lambda: holder.delete_one({"_id": name}))
    [inserted] = found
    assert_waited_for(posts, name, inserted, 2)
    assert posts.verdict(deleted) is Verdict.VISIBLE
    posts.lab.partition("b1")
    changed = written(lambda: next_holder.update_one({"_id": name}, {"$set": {"v": 3}}))
    assert posts.verdict(changed, 1.0) is Verdict.TIMED_OUT, "the tombstone is of the document before"
    posts.lab.heal("b1")
    assert posts.verdict(changed) is Verdict.VISIBLE


def test_a_document_that_lost_its_version_begins_a_chain(posts: Posts, name: str) -> None:
    """SHIM-52: replaced without Antipode, and then changed by a machine whose clock is behind."""
    first = written(lambda: client_of(posts, 50).insert_one({"_id": name, "v": 1}))
    assert posts.verdict(first) is Verdict.VISIBLE
    posts.lab.partition("b1")
    posts.plain["a"][DATABASE]["posts"].replace_one({"_id": name}, {"v": "plain"})
    client = client_of(posts)
    changes = [
        lambda: client.update_one({"_id": name}, {"$set": {"v": 3}}),
        lambda: client.update_many({"_id": name}, {"$set": {"v": 4}}),
        lambda: client.find_one_and_update({"_id": name}, {"$set": {"v": 5}}, return_document=True),
    ]
    lineages = [written(change) for change in changes]
    for lineage in lineages:
        assert version_of(posts.raw(name, "b1")) > max(versions(lineage).values())  # type: ignore[operator]
        assert posts.verdict(lineage, 1.0) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    for lineage in lineages:
        assert posts.verdict(lineage) is Verdict.VISIBLE


def test_a_document_of_an_earlier_release_joins_a_chain(posts: Posts, name: str) -> None:
    """SHIM-53: the first change of it begins one; what was under way proves itself alone."""
    earlier = client_of(posts)._database.client._antipode.clock.next()
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": name, "v": 1, VERSION: stored(earlier)})
    client = client_of(posts)
    lineages = [written(lambda: client.update_one({"_id": name}, {"$inc": {"v": 1}})) for _ in range(3)]
    joined = lineages[0] | lineages[1] | lineages[2]
    assert len(joined.of_store(STORE)) == 1
    posts.lab.wait_links()
    for lineage in lineages:
        assert posts.verdict(lineage) is Verdict.VISIBLE


@pytest.mark.parametrize("stage", [{"$unset": "x"}, {"$replaceWith": {"_id": "$_id", "v": 2}}], ids=["keeps", "drops"])
def test_a_pipeline_that_may_drop_the_chain_names_the_one_that_is_there(posts: Posts, name: str, stage: Any) -> None:
    """SHIM-30, SHIM-53: what is written or deleted behind it proves it."""
    lineages = [written(lambda: posts.posts.insert_one({"_id": name, "v": 1, "x": 1}))]
    lineages.append(written(lambda: posts.posts.update_one({"_id": name}, [stage])))
    lineages.append(written(lambda: posts.posts.update_one({"_id": name}, {"$set": {"v": 3}})))
    assert len((lineages[1] | lineages[2]).of_store(STORE)) == 1
    posts.lab.wait_links()
    for lineage in lineages:
        assert posts.verdict(lineage, 5.0) is Verdict.VISIBLE
    lineages.append(written(lambda: posts.posts.delete_one({"_id": name})))
    posts.lab.wait_links()
    for lineage in lineages:
        assert posts.verdict(lineage, 5.0) is Verdict.VISIBLE


def test_what_was_written_before_a_deletion_was_there(posts: Posts, name: str) -> None:
    """SHIM-31: by whatever the document was deleted, and though another one has its name by now."""
    lineages = []
    for delete in (
        lambda: posts.posts.delete_one({"_id": name}),
        lambda: posts.posts.delete_many({"_id": name}),
        lambda: posts.posts.find_one_and_delete({"_id": name}),
    ):
        lineages.append(written(lambda: posts.posts.insert_one({"_id": name, "v": 1})))
        lineages.append(written(lambda: posts.posts.replace_one({"_id": name}, {"v": 2})))
        lineages.append(written(delete))
    lineages.append(written(lambda: posts.posts.insert_one({"_id": name, "v": 1})))
    for lineage in lineages:
        assert posts.verdict(lineage) is Verdict.VISIBLE


def test_a_tombstone_proves_of_an_earlier_release_its_own_deletion_alone() -> None:
    """SHIM-53: a greater counter may be that of an earlier document's deletion, by a machine whose clock was ahead."""
    there = {"v": stored(7), "e": ["5"]}
    assert tombstones.buries(there, Ordered("", 7))
    assert not tombstones.buries(there, Ordered("", 6))
    assert tombstones.buries(there, Ordered("5", 6))
    assert not tombstones.buries(there, Ordered("6", 6))
