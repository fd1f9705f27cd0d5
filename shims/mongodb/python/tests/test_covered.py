"""Values that no election takes back, and what nobody can tell: by a scripted replica set (spec SHIM-13, EPOCH-32)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode import BarrierTimeout
from antipode.testing import isolated
from fake_mongod import FakeMongod, done, with_client
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

STORE = "blog-posts"
PIPELINE: list[dict[str, Any]] = [{"$match": {}}]
UNTOLD: dict[str, Callable[[Any], Any]] = {
    "find": lambda c: c["blog"].command("find", "posts"),
    "find of a mapping": lambda c: c["blog"].command({"find": "posts", "filter": {}}),
    "count": lambda c: c["blog"].command("count", "posts"),
    "distinct": lambda c: c["blog"].command("distinct", "posts", key="v"),
    "aggregate": lambda c: c["blog"].command("aggregate", "posts", pipeline=PIPELINE, cursor={}),
    "cursor_command": lambda c: c["blog"].cursor_command("find", "posts"),
    "cursor_command, aggregate": lambda c: c["blog"].cursor_command({"aggregate": 1, "pipeline": [], "cursor": {}}),
    "aggregate of a database": lambda c: c["blog"].aggregate([{"$documents": []}]),
    "aggregate of a collection": lambda c: c["blog"]["posts"].aggregate(PIPELINE),
    "count_documents": lambda c: c["blog"]["posts"].count_documents({}),
    "raw batches": lambda c: all_of(c["blog"]["posts"].find_raw_batches({})),
}
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def member() -> Iterator[FakeMongod]:
    with FakeMongod() as server:
        for name in ("count", "distinct", "aggregate"):
            server.more[name] = lambda _: {
                "ok": 1.0,
                "n": 1,
                "values": [1],
                "cursor": {"id": 0, "ns": "blog.posts", "firstBatch": [{"_id": 1, "n": 1}]},
            }
        yield server


def all_of(cursor: Any) -> Any:
    return list(cursor) if hasattr(cursor, "__iter__") else cursor.to_list()


@both
@pytest.mark.parametrize("what", UNTOLD)
def test_what_cannot_be_told_is_incomplete(member: FakeMongod, what: str, is_async: bool) -> None:
    """SHIM-13"""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE)
        with antipode.reading() as seen:
            await done(UNTOLD[what](client))
        assert not seen.lineage.is_complete([STORE])

    with_client(member, is_async, use)


@both
@pytest.mark.parametrize("what", UNTOLD)
def test_such_reads_wait_like_others(member: FakeMongod, what: str, is_async: bool) -> None:
    """BAR-50, BAR-51"""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=0.1)
        patient = antipode_mongodb.wrap(plain, store=STORE)
        member.committed = member.now
        with antipode.scope() as scope:
            await done(client["blog"]["posts"].insert_one({"v": 1}))
            with pytest.raises(BarrierTimeout):
                await done(UNTOLD[what](client))
            lineage = scope.lineage
        with antipode.reading(after=lineage), pytest.raises(BarrierTimeout):
            await done(UNTOLD[what](patient))
        member.committed = member.now
        patient = antipode_mongodb.wrap(plain, store=STORE, timeout=20.0)
        with antipode.reading(after=lineage):
            await done(UNTOLD[what](patient))

    with_client(member, is_async, use)


def test_a_command_that_reads_no_data_depends_on_nothing(member: FakeMongod) -> None:
    """SHIM-13"""
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    with antipode.reading() as seen:
        client["blog"].command("ping")
        client.admin.command("hello")
    assert seen.lineage.is_complete()


@both
@pytest.mark.parametrize("level", [None, "local", "majority", "snapshot"])
def test_what_a_transaction_reads_may_be_taken_back_until_it_commits(
    member: FakeMongod, level: Any, is_async: bool
) -> None:
    """EPOCH-32: its own concern holds and not the collection's, and that is kept by a commit with a majority alone."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE)
        posts = client["blog"]["posts"].with_options(read_concern=ReadConcern("majority"))
        with antipode.reading() as seen:
            await done(posts.find_one({}))
        assert seen.lineage.is_complete()
        session = client.start_session(causal_consistency=False)
        concern = None if level is None else ReadConcern(level)
        await done(session.start_transaction(read_concern=concern, write_concern=WriteConcern("majority")))
        with antipode.reading() as seen:
            await done(posts.find_one({}, session=session))
        await done(session.commit_transaction())
        assert not seen.lineage.is_complete([STORE])
        with antipode.reading() as seen:
            await done(posts.find_one({}, session=session))
        assert seen.lineage.is_complete()
        await done(session.end_session())

    with_client(member, is_async, use)
