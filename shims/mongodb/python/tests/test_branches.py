"""Branches whose rows are in FerretDB: clients of their own, partitions, dead tasks, lost rows (spec BRANCH)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import antipode
import antipode_mongodb
import pytest
from antipode import Lineage, UnfitStoreError
from antipode.administration import Level, Wanted
from antipode.branch_ids import BRANCHES, BranchId
from antipode.branch_table import CLOSED
from antipode.errors import ConfigurationError
from antipode.result import BarrierResult
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.mongodb import MongoStore
from antipode_mongodb import MongoShim, branch_rows
from mongodb_regions import DATABASE, SLACK_S, STORE, Posts, prepare, until
from pymongo import AsyncMongoClient
from pymongo.errors import NetworkTimeout, ServerSelectionTimeoutError, WTimeoutError


def make_branches(lab: MongoStore) -> None:
    """What `antipode init --set branches=yes` makes, run as it says."""
    for step in MongoShim.preparations(lab.mongo_url(lab.primary), Wanted(STORE, options={"branches": "yes"})):
        if step.text == branch_rows.CREATE:
            assert step.run is not None
            step.run()
    lab.wait_links()


@pytest.fixture
def rows(posts: Posts) -> Iterator[Posts]:
    """The store of posts, with the collection."""
    make_branches(posts.lab)
    antipode.configure(branches=posts.wrapped["a"])
    yield posts
    posts.lab.heal()


def hand_over(within: float = 30.0) -> tuple[str, Lineage]:
    with antipode.scope() as scope:
        with antipode.branch(within=within):
            task = antipode.serialize()
        return task, scope.lineage


def run(posts: Posts, task: str, key: str, *, at: str = "a") -> None:
    with antipode.message_scope(task):
        posts.wrapped[at][DATABASE]["posts"].update_one({"_id": key}, {"$set": {"body": "v"}}, upsert=True)
        antipode.close()


def shown(posts: Posts, key: str) -> bool:
    return all(posts.raw(key, at=name) is not None for name in posts.readers)


def look(lineage: Lineage, timeout: float) -> BarrierResult:
    CLOSED._held.clear()  # as another process, which has seen nothing yet
    began = time.monotonic()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    assert time.monotonic() - began < timeout + SLACK_S, "past its deadline"
    return result


def verdict(result: BarrierResult) -> str:
    return str(result.stores[BRANCHES].verdict)


def test_a_barrier_waits_until_the_secondary_shows_the_close_and_the_write(rows: Posts, name: str) -> None:
    """BRANCH-12, BRANCH-13."""
    task, lineage = hand_over()
    assert verdict(look(lineage, 0.1)) == "timed_out"
    for each in rows.readers:
        rows.lab.partition(each)
    run(rows, task, name)
    assert verdict(look(lineage, 0.3)) == "timed_out"
    rows.lab.heal(wait=False)
    until(lambda: look(lineage, 2.0).complete, "the close arrives")
    assert shown(rows, name)


def test_a_barrier_that_waits_already_ends_with_the_close(rows: Posts, name: str) -> None:
    """BRANCH-12, BRANCH-14."""
    task, lineage = hand_over()
    thread = threading.Timer(0.3, run, (rows, task, name))
    thread.start()
    result = look(lineage, 20.0)
    thread.join()
    assert result.complete
    assert result.waited > 0.2
    assert shown(rows, name)


def test_the_async_client_is_served_alike(rows: Posts, name: str) -> None:
    """BRANCH-9, BRANCH-11."""

    async def tasks() -> BarrierResult:
        plain: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(rows.lab.mongo_url("a"))
        client = rows.wrap(plain)
        antipode.configure(branches=client)
        with antipode.scope() as scope:
            with antipode.branch(within=30):
                task = antipode.serialize()
            lineage = scope.lineage
        with antipode.message_scope(task):
            await client[DATABASE]["posts"].insert_one({"_id": name})
            await antipode.close_async()
        CLOSED._held.clear()
        result = await antipode.barrier_async(lineage, timeout=20.0)
        await plain.close()
        return result

    with isolated():
        assert asyncio.run(tasks()).complete
    assert shown(rows, name)


def test_a_task_waits_for_whom_it_calls_and_nobody_for_himself(rows: Posts, name: str) -> None:
    """BRANCH-6, BRANCH-7."""
    task, lineage = hand_over()
    with antipode.message_scope(task):
        rows.posts.insert_one({"_id": name})
        assert antipode.barrier(timeout=20.0).complete
        assert antipode.barrier(lineage, timeout=20.0).complete
        antipode.close()
    assert look(lineage, 20.0).complete


TASK = """
import sys, time, antipode, antipode_mongodb, pymongo
client = antipode_mongodb.wrap(pymongo.MongoClient(sys.argv[1]), store="blog-posts")
posts = client["blog"]["posts"]
with antipode.message_scope(sys.argv[2]):
    posts.update_one({"_id": sys.argv[4] + "-half"}, {"$set": {"body": "v"}}, upsert=True)
    print("half", flush=True)
    if sys.argv[3] == "dies":
        time.sleep(60)
    posts.insert_one({"_id": sys.argv[4]})
    antipode.close()
"""


def test_a_task_that_is_killed_never_passes_and_its_second_try_does(rows: Posts, name: str) -> None:
    """BRANCH-15: a process of its own, killed between its two writes."""
    task, lineage = hand_over(within=2.0)
    words = [sys.executable, "-c", TASK, rows.lab.mongo_url("a"), task]
    with subprocess.Popen([*words, "dies", name], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.kill()
    result = look(lineage, 20.0)
    assert verdict(result) == "unproven"
    assert "abandoned" in result.stores[BRANCHES].reason
    assert result.waited < 10
    subprocess.run([*words, "lives", name], check=True, timeout=60, stdout=subprocess.PIPE)
    until(lambda: look(lineage, 2.0).complete, "the second try's close arrives")
    assert shown(rows, name)


@pytest.mark.parametrize("closes", [True, False])
def test_a_hundred_nested_branches_end(rows: Posts, name: str, closes: bool) -> None:
    """BRANCH-12: with the last close, and without it with the deadline."""
    task, first = hand_over()
    for depth in range(100):
        with antipode.message_scope(task):
            if depth % 10 == 9:
                rows.posts.insert_one({"_id": f"{name}-{depth}"})
            if depth < 99:
                with antipode.branch(within=30):
                    task = antipode.serialize()
            if closes or depth < 99:
                antipode.close()
    rows.lab.wait_links()
    result = look(first, 30.0 if closes else 3.0)
    if closes:
        assert result.complete
        assert all(shown(rows, f"{name}-{depth}") for depth in range(9, 100, 10))
    else:
        assert verdict(result) == "timed_out"


def test_the_first_close_stands_and_rows_whose_time_is_over_go(rows: Posts, name: str) -> None:
    """BRANCH-10, BRANCH-22."""
    kept = rows.plain["a"][branch_rows.DATABASE][branch_rows.COLLECTION]
    over = datetime.now(UTC) - timedelta(hours=1)
    kept.insert_many([{"_id": f"old{number}", "l": "1", "x": over} for number in range(25)])
    kept.insert_one({"_id": "due", "l": "1", "x": datetime.now(UTC) + timedelta(seconds=30)})
    for number in range(3):
        task, lineage = hand_over()
        run(rows, task, f"{name}-first-{number}")
        first = kept.find_one({"_id": _id(lineage)})
        run(rows, task, f"{name}-second-{number}")
        assert kept.find_one({"_id": _id(lineage)}) == first
        assert look(lineage, 20.0).complete
    assert kept.count_documents({"_id": {"$regex": "^old"}}) == 0
    assert kept.count_documents({"_id": "due"}) == 1
    kept.delete_one({"_id": "due"})
    assert first is not None
    left = first["x"].replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24, seconds=31)


def _id(lineage: Lineage) -> str:
    [entry] = lineage.of_store(BRANCHES)
    branch = BranchId.of(entry)
    assert branch is not None
    return branch.id


def test_the_store_may_be_named_by_what_is_wrapped_of_it(rows: Posts) -> None:
    """BRANCH-24: a database or a collection, too."""
    client, plain = rows.wrapped["a"], rows.plain["a"]
    wrapped = (client[DATABASE], client[DATABASE]["posts"], rows.wrap(plain[DATABASE]), rows.wrap(plain[DATABASE]["x"]))
    for part in wrapped:
        assert antipode.configure(branches=part).branches == STORE
    with pytest.raises(ConfigurationError, match="want a wrapped client"):
        antipode.configure(branches=plain[DATABASE])


def test_closes_side_by_side_write_one_row(rows: Posts) -> None:
    """BRANCH-10: one of them says that it was first."""
    table = rows.wrapped["a"]._antipode.store.shim
    branch = BranchId.new(STORE, 30)
    said: list[tuple[bool, str]] = []
    late: list[Exception] = []

    def close(text: str) -> None:
        try:
            said.append((table.close_branch(branch.id, text, 30.0), text))
        except (NetworkTimeout, ServerSelectionTimeoutError, WTimeoutError) as error:  # as of a busy machine
            late.append(error)

    threads = [threading.Thread(target=close, args=(text,)) for text in ("1", "1~s..e.1") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) + len(late) == 8
    first = [text for is_first, text in said if is_first]
    assert len(first) == 1 or (late and not first), "the first one may not have had its answer"
    kept = rows.plain["a"][branch_rows.DATABASE][branch_rows.COLLECTION]
    until(lambda: kept.count_documents({"_id": branch.id}) == 1, "one row")
    assert not first or [row[branch_rows.TEXT] for row in kept.find({"_id": branch.id})] == first


def test_after_a_fork_the_child_has_clients_of_its_own(rows: Posts) -> None:
    """BRANCH-10: those of its parent are in use there."""
    table = rows.wrapped["a"]._antipode.store.shim
    ids = [BranchId.new(STORE, 30).id for _ in range(3)]
    assert table.close_branch(ids[0], "1", 30.0)
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os._exit(0 if table.close_branch(ids[1], "1", 30.0) and not table.close_branch(ids[0], "1", 30.0) else 1)
        os._exit(2)
    assert table.close_branch(ids[2], "1", 30.0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kept = rows.plain["a"][branch_rows.DATABASE][branch_rows.COLLECTION]
    assert kept.count_documents({"_id": {"$in": ids}}) == 3


def test_a_secondary_alone_closes_nothing(rows: Posts) -> None:
    """BRANCH-10: what is to be done about it is said; and nothing of FerretDB tells that it is one but the refusal."""
    task, _ = hand_over()
    with isolated(), antipode.message_scope(task):
        antipode_mongodb.wrap(rows.plain["b1"], store=STORE)
        with pytest.raises(ConfigurationError, match="wrap a client of that"):
            antipode.close()


def test_without_the_collection_it_is_told_at_once_what_makes_it(posts: Posts) -> None:
    """BRANCH-24, BRANCH-18; and what `antipode init` prints cures it."""
    posts.plain["a"][branch_rows.DATABASE][branch_rows.COLLECTION].drop()
    posts.lab.wait_links()
    with pytest.raises(UnfitStoreError, match=r"antipode init blog-posts .* --set branches=yes"):
        antipode.configure(branches=posts.wrapped["a"])
    result = look(Lineage([BranchId.new(STORE, 30).write_id]), 10.0)
    assert verdict(result) == "unproven"
    assert "no collection antipode.branches" in result.stores[BRANCHES].reason
    assert "--set branches=yes" in _of_branches(posts, "b1")[1]
    make_branches(posts.lab)
    assert antipode.configure(branches=STORE).branches == STORE
    assert _of_branches(posts, "b1") == ("branches: antipode.branches is there", "")


def _of_branches(posts: Posts, server: str) -> tuple[str, str]:
    """What doctor says of them, and the cure."""
    [found] = [each for each in MongoShim.diagnose(posts.lab.mongo_url(server)) if each.what.startswith("branches: ")]
    assert found.level is Level.OK  # most stores keep none
    return found.what, found.cure


def test_it_is_made_at_the_primary_alone(rows: Posts) -> None:
    """SHIM-3"""
    wanted = Wanted(STORE, "bob", {"branches": "yes"})
    [make, grant], [at_a_secondary, _] = (
        [step for step in MongoShim.preparations(rows.lab.mongo_url(server), wanted) if '"antipode"' in step.text]
        for server in ("a", "b1")
    )
    assert make.run is not None
    assert at_a_secondary.run is not None
    assert grant.run is not None
    assert make.run() == at_a_secondary.run() == "there already"
    assert grant.text == 'db.grantRolesToUser("bob", [{role: "readWrite", db: "antipode"}])'
    rows.plain["a"][branch_rows.DATABASE].drop_collection(branch_rows.COLLECTION)
    rows.lab.wait_links()
    with pytest.raises(ValueError, match="name the primary"):
        at_a_secondary.run()
    assert make.run() == "created"


def test_a_connection_that_was_ended_is_made_anew(rows: Posts, name: str) -> None:
    """BRANCH-10: the client's own may have been idle for long."""
    task, lineage = hand_over()
    run(rows, task, f"{name}-1")
    rows.lab.restart("a")
    plain = rows.lab.client("a")
    rows.wrapped["a"] = rows.wrap(plain)
    task, other = hand_over()
    run(rows, task, f"{name}-2")
    plain.close()
    assert look(lineage | other, 30.0).complete


@pytest.mark.timeout(240)
def test_a_row_that_a_failover_lost_is_no_close(lab_factory: LabFactory, name: str) -> None:
    """BRANCH-13, BRANCH-15: and the task, tried again at the new primary, closes it."""
    lab = lab_factory("mongodb", replicas=2, lag="3ms").get(MongoStore)
    prepare(lab)
    make_branches(lab)
    with isolated():
        antipode.configure(replica_out_after=30.0)
        posts = Posts(lab)
        antipode.configure(branches=posts.wrapped["a"])
        task, lineage = hand_over(within=1.0)
        for each in posts.readers:
            lab.partition(each)
        with antipode.message_scope(task):
            antipode.close()
        lab.kill("a")
        lab.heal(wait=False)
        lab.promote("b1")
        result = look(lineage, 10.0)
        assert verdict(result) == "unproven"
        assert "abandoned" in result.stores[BRANCHES].reason
        run(posts, task, name, at="b1")
        until(lambda: look(lineage, 2.0).stores.get(BRANCHES) is None, "the second try's close arrives")
        assert posts.raw(name, at="b1") is not None
        posts.close()
