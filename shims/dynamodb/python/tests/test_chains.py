"""What a greater version proves: of its own chain alone, which conditions kept in order (SHIM-52, SHIM-53)."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from functools import reduce
from operator import or_
from typing import Any

import antipode
import pytest
from antipode import Lineage, Ordered, Verdict, WriteId
from antipode._model.wire import MAX_COUNTER
from antipode._store.hybrid_clock import NODE_BITS, HybridClock, place_number
from antipode_dynamodb.attributes import identity_of, place_of
from antipode_dynamodb.guarding import Failure, GuardedAction, Kind
from antipode_dynamodb.guarding import judge as judge_failure
from antipode_dynamodb.shim import judge
from antipode_dynamodb.tables import Table
from dynamodb_regions import STORE, TABLE, Posts, item, key, requests_of, until


def with_clock(client: Any, clock: HybridClock) -> Any:
    """The client with another clock."""
    client._antipode = copy(client._antipode)
    client._antipode.clock = clock
    return client


def ahead(posts: Posts, table: str = TABLE, at: str = "a", *, seconds: int = 50) -> Any:
    """A client of another process, whose machine's clock is so far ahead."""
    client = posts.wrap(at, tables=[table])
    place = place_number(posts.lab.region(at))
    clock = HybridClock(place=place, time_ns=lambda: time.time_ns() + seconds * 10**9)
    return with_clock(client, clock)


def behind(posts: Posts, table: str = TABLE, at: str = "a") -> Any:
    """A client of another process, which has seen nothing of the others' versions."""
    client = posts.wrap(at, tables=[table])
    return with_clock(client, HybridClock(place=place_number(posts.lab.region(at))))


def put(client: Any, name: str, value: str, table: str = TABLE) -> Lineage:
    with antipode.scope() as scope:
        client.put_item(TableName=table, Item=item(name, value))
        return scope.lineage


def update(client: Any, name: str, value: str, table: str = TABLE) -> Lineage:
    with antipode.scope() as scope:
        client.update_item(
            TableName=table,
            Key=key(name),
            UpdateExpression="SET #v = :v",
            ExpressionAttributeNames={"#v": "value"},
            ExpressionAttributeValues={":v": {"S": value}},
        )
        return scope.lineage


def shown(posts: Posts, at: str, name: str, table: str) -> str | None:
    found = posts.plain[at].get_item(TableName=table, Key=key(name), ConsistentRead=True).get("Item")
    return None if found is None else str(found["value"]["S"])


def assert_passes_only_behind_it(posts: Posts, lineage: Lineage, name: str, value: str, table: str = TABLE) -> None:
    """b1 and b2 show something earlier, of a greater version; the write itself arrives when the links carry."""
    assert lineage.is_complete()
    assert_greater_there(posts, lineage, name, table)
    assert posts.verdict(lineage) is Verdict.UNPROVEN
    posts.lab.heal(wait=False)
    until(lambda: all(shown(posts, at, name, table) == value for at in posts.readers), "it arrives")
    assert posts.look(lineage).complete


def assert_greater_there(posts: Posts, lineage: Lineage, name: str, table: str = TABLE) -> None:
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    for reader in posts.readers:
        held = posts.plain[reader].get_item(TableName=table, Key=key(name), ConsistentRead=True)["Item"]
        assert int(held["_apv"]["N"]) > write_id.version.counter, "else nothing is tested"


def partition(posts: Posts) -> None:
    for reader in posts.readers:
        posts.lab.partition(reader)


def delete_without_tombstone(posts: Posts, name: str) -> None:
    posts.wrap("a", tables=["lasting"]).delete_item(TableName="lasting", Key=key(name))


def delete_without_antipode(posts: Posts, name: str) -> None:
    posts.plain["a"].delete_item(TableName=TABLE, Key=key(name))


def put_without_antipode(posts: Posts, name: str) -> None:
    posts.plain["a"].put_item(TableName=TABLE, Item=item(name, "plain"))


BREAKS = {
    "deleted without a tombstone": ("lasting", delete_without_tombstone),
    "deleted without Antipode": (TABLE, delete_without_antipode),
    "put without Antipode": (TABLE, put_without_antipode),
}


@pytest.mark.parametrize("write", [put, update], ids=["put", "update"])
@pytest.mark.parametrize("how", BREAKS)
def test_a_key_whose_version_is_gone_begins_a_chain(posts: Posts, how: str, write: Callable[..., Lineage]) -> None:
    """SHIM-52: the version that was there, which was greater, proves nothing of what is written now."""
    table, end = BREAKS[how]
    name = f"gone {how} {write.__name__}"
    put(ahead(posts, table), name, "earlier", table)
    until(lambda: all(shown(posts, at, name, table) == "earlier" for at in posts.readers), "the earlier one arrives")
    partition(posts)
    end(posts, name)
    client = behind(posts, table)
    write(client, name, "later", table)
    lineage = update(client, name, "latest", table)
    assert_passes_only_behind_it(posts, lineage, name, "latest", table)


@pytest.mark.parametrize("deletes", [False, True], ids=["put", "delete"])
def test_a_batch_proves_itself_alone(posts: Posts, deletes: bool) -> None:
    """SHIM-52: it takes no conditions, so another writer may come between its look and its write."""
    name = f"batch {deletes}"
    put(posts.wrapped["a"], name, "first")
    client, other = behind(posts), ahead(posts)

    def between(**_: Any) -> None:
        put(other, name, "between")
        until(lambda: all(posts.shows(at, name) == "between" for at in posts.readers), "that one arrives")
        partition(posts)

    low = client._antipode.low
    low.meta.events.register_first("before-call.dynamodb.BatchWriteItem", between)
    request = {"DeleteRequest": {"Key": key(name)}} if deletes else {"PutRequest": {"Item": item(name, "batch")}}
    try:
        with antipode.scope() as scope:
            client.batch_write_item(RequestItems={TABLE: [request]})
            lineage = scope.lineage
    finally:
        low.meta.events.unregister("before-call.dynamodb.BatchWriteItem", between)
    assert lineage.is_complete()
    assert_greater_there(posts, lineage, name)
    assert posts.verdict(lineage) is Verdict.UNPROVEN
    posts.lab.heal(wait=False)
    wanted = None if deletes else "batch"
    until(lambda: all(posts.shows(at, name) == wanted for at in posts.readers), "it arrives")
    assert posts.look(lineage).complete


def test_a_write_behind_another_regions_begins_a_chain(posts: Posts) -> None:
    """SHIM-52: what this region wrote before another one came between is of another chain."""
    posts.lab.clock("b1", 30_000)
    name = "there and back"
    first = put(ahead(posts), name, "a")
    until(lambda: all(posts.shows(at, name) == "a" for at in posts.names), "it arrives")
    with antipode.scope():
        put(posts.wrapped["b1"], name, "b")
    until(lambda: all(posts.shows(at, name) == "b" for at in posts.names), "the other region's wins")
    second = put(behind(posts), name, "a again")
    [one], [other] = first.of_store(STORE), second.of_store(STORE)
    assert isinstance(one.version, Ordered)
    assert isinstance(other.version, Ordered)
    assert one.version.epoch != other.version.epoch


def test_a_greater_version_of_a_chain_proves_a_lesser_one(posts: Posts) -> None:
    """SHIM-30, SHIM-53: writers that know nothing of each other go on with one chain, whatever they write by."""
    name = "chained"
    lineages = [put(posts.wrap("a"), name, "0"), update(posts.wrap("a"), name, "1"), put(posts.wrap("a"), name, "2")]
    with antipode.scope() as scope:
        action = {"Put": {"TableName": TABLE, "Item": item(name, "3")}}
        posts.wrap("a").transact_write_items(TransactItems=[action])
        lineages.append(scope.lineage)
    with antipode.scope() as scope:
        posts.wrap("a").delete_item(TableName=TABLE, Key=key(name))
        lineages.append(scope.lineage)
    lineages.append(put(posts.wrap("a"), name, "last"))
    lineages.append(update(posts.wrap("a"), name, "the last"))
    until(lambda: all(posts.shows(at, name) == "the last" for at in posts.readers), "all arrive")
    partition(posts)  # the last one alone is there
    for lineage in lineages:
        assert posts.look(lineage).complete
    joined = reduce(or_, lineages)
    assert len(joined.of_store(STORE)) == 1


def test_who_wrote_or_read_an_item_writes_it_in_one_request(posts: Posts) -> None:
    """SHIM-7: the chain is known then; else it is one request more."""
    client, stranger, reader = posts.wrap("a"), posts.wrap("a"), posts.wrap("a")
    with requests_of(client) as sent:
        put(client, "counted", "1")
        put(client, "counted", "2")
        update(client, "counted", "3")
    assert len(sent) == 3
    with requests_of(stranger) as sent:
        put(stranger, "counted", "4")
    assert len(sent) == 2
    reader.get_item(TableName=TABLE, Key=key("counted"))
    with requests_of(reader) as sent:
        put(reader, "counted", "5")
    assert len(sent) == 1


def test_writes_of_two_regions_stand_side_by_side(posts: Posts) -> None:
    """SHIM-53: a lineage that joins them waits for both; of the greater one alone it does not pass."""
    name = "two regions"
    partition(posts)
    first = put(posts.wrapped["b1"], name, "from b1")
    second = put(ahead(posts), name, "from a")
    joined = first | second
    assert len(joined.of_store(STORE)) == 2
    assert Lineage.deserialize(joined.serialize()) == joined
    assert not posts.look(joined, 0.5).satisfied


def test_a_version_of_an_earlier_release_proves_itself_alone() -> None:
    """SHIM-53: lineages that are under way have no chain, and items no attribute that names one."""
    now = HybridClock(place=1)
    old, new = now.next(), now.next()
    there = {"_apv": {"N": str(old)}}
    assert judge(WriteId(STORE, b"k", Ordered("", old)), there).verdict is Verdict.VISIBLE
    assert judge(WriteId(STORE, b"k", Ordered("", old)), {"_apv": {"N": str(new)}}).verdict is Verdict.UNPROVEN
    assert identity_of(there) == Ordered(f"{old:x}", old)
    forged = {"_apv": {"N": str(old)}, "_ape": {"N": str(new)}}
    assert identity_of(forged) == identity_of(there)


def add(client: Any, name: str) -> Lineage:
    with antipode.scope() as scope:
        client.update_item(
            TableName=TABLE,
            Key=key(name),
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
        return scope.lineage


def add_in_a_transaction(client: Any, name: str) -> Lineage:
    update = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    with antipode.scope() as scope:
        client.transact_write_items(TransactItems=[{"Update": {"TableName": TABLE, "Key": key(name), **update}}])
        return scope.lineage


@pytest.mark.parametrize("write", [add, add_in_a_transaction], ids=["update", "transaction"])
def test_two_writers_above_a_refused_version_both_write(posts: Posts, write: Callable[..., Lineage]) -> None:
    """SHIM-28, SHIM-29: the second finds the version that it would have given itself, and has not written yet."""
    name = f"above {write.__name__}"
    put(ahead(posts, seconds=600), name, "of a clock ahead")
    one, other = posts.wrap("a"), posts.wrap("a")
    left = [None, None]
    found: list[Lineage] = []

    def between(**_: Any) -> None:
        left.pop()
        if not left:  # at the second try, which is above what was refused
            low.meta.events.unregister(event, between)
            found.append(write(one, name))

    low = other._antipode.low
    event = f"before-call.dynamodb.{'UpdateItem' if write is add else 'TransactWriteItems'}"
    low.meta.events.register_first(event, between)
    found.append(write(other, name))
    assert (posts.raw("a", name) or {})["n"] == {"N": "2"}
    [first], [second] = (lineage.of_store(STORE) for lineage in found)
    assert first.version != second.version


def test_versions_above_a_refused_one_differ(posts: Posts) -> None:
    """SHIM-29: of two batches, which take no conditions, the one's would prove the other's."""
    refused = ahead(posts, seconds=600)._antipode.clock.next()
    binding = posts.wrap("a")._antipode
    given = [binding.version_after(refused)[0] for _ in range(100)]
    assert len(set(given)) == 100
    assert all(place_of(version) == place_of(binding.clock.node) and version > refused for version in given)
    last = MAX_COUNTER - (1 << NODE_BITS)
    assert last < binding.version_after(last)[0] <= MAX_COUNTER


def test_an_equal_counter_of_another_chain_proves_nothing() -> None:
    """SHIM-53"""
    clock = HybridClock(place=1)
    first, counter = clock.next(), clock.next()
    there = {"_apv": {"N": str(counter)}, "_ape": {"N": str(first)}}
    assert judge(WriteId(STORE, b"k", Ordered(f"{counter:x}", counter)), there).verdict is Verdict.UNPROVEN
    assert judge(WriteId(STORE, b"k", Ordered(f"{first:x}", counter)), there).verdict is Verdict.VISIBLE


def test_a_version_that_is_there_already_is_our_own_after_a_lost_answer_alone() -> None:
    """SHIM-29: another writer's has its place otherwise."""
    version = HybridClock(place=1).next()
    table = Table(TABLE, ("id",), None, stream=True, regions=(), showing=frozenset(), lasting=True)
    action = GuardedAction(Kind.UPDATE, {"Key": key("k")}, table, version, "", chain=version - 1)
    there = {**key("k"), "_apv": {"N": str(version)}, "_ape": {"N": str(version - 1)}}
    assert judge_failure(action, there, repeated=True)[0] is Failure.DONE
    assert judge_failure(action, there, repeated=False)[0] is Failure.OURS


def update_if_there(client: Any, name: str) -> Lineage:
    with antipode.scope() as scope:
        client.update_item(
            TableName=TABLE,
            Key=key(name),
            UpdateExpression="ADD n :one",
            ConditionExpression="attribute_exists(id)",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
        return scope.lineage


@pytest.mark.parametrize("write", [put, update, update_if_there], ids=["put", "update", "on a condition"])
@pytest.mark.parametrize("knows", [False, True])
def test_what_an_earlier_release_updated_in_another_region(
    posts: Posts, write: Callable[..., Lineage], knows: bool
) -> None:
    """SHIM-53: it left the chain that was there, of which its version is none."""
    name = f"mixed {write.__name__} {knows}"
    earlier = put(posts.wrapped["b1"], name, "first")
    [first] = earlier.of_store(STORE)
    assert isinstance(first.version, Ordered)
    theirs = behind(posts)._antipode.clock.next()
    there = {**item(name, "by an earlier release"), "_apv": {"N": str(theirs)}}
    there["_ape"] = {"N": str(first.version.counter)}
    posts.plain["a"].put_item(TableName=TABLE, Item=there)
    assert judge(first, there).verdict is Verdict.UNPROVEN
    assert identity_of(there) == Ordered(f"{theirs:x}", theirs)
    client = posts.wrap("a")
    if knows:
        client.get_item(TableName=TABLE, Key=key(name))
    lineage = write(client, name, "next") if write is not update_if_there else write(client, name)
    assert lineage.is_complete()
    [mine] = lineage.of_store(STORE)
    left = posts.raw("a", name)
    assert identity_of(left) == mine.version
    assert identity_of(left) == Ordered(f"{mine.version.counter:x}", mine.version.counter)
    assert "_ape" not in (left or {})


def test_what_gave_up_its_condition_is_of_no_chain() -> None:
    """SHIM-53: also where the application's own condition has it tried again."""
    clock = HybridClock(place=1)
    first, version = clock.next(), clock.next()
    table = Table(TABLE, ("id",), "_apx", stream=True, regions=(), showing=frozenset(), lasting=True)
    params = {"Key": key("k"), "UpdateExpression": "SET a = :a", "ConditionExpression": "attribute_not_exists(id)"}
    action = GuardedAction(Kind.UPDATE, params, table, version, "", chain=first).given_up()
    there = {**key("k"), "_apv": {"N": str(first)}, "_apx": {"N": "1"}}
    failure, again = judge_failure(action, there, repeated=False)
    assert failure is Failure.OURS
    assert (again.chain, again.above, again.unguarded) == (None, True, True)
