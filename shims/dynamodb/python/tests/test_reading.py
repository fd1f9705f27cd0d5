"""Reads: what they wait for, what they depend on, and that they show what a barrier has proved (SHIM-12 to SHIM-14)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import antipode
import pytest
from antipode import Lineage
from antipode._model.result import BarrierTimeout
from antipode_dynamodb.partiql import may_read, may_write
from dynamodb_regions import STORE, TABLE, Posts, item, key, requests_of


def test_a_read_after_a_barrier_is_strongly_consistent(posts: Posts) -> None:
    """A barrier proves what such a read shows; the application need not ask for it, and may say otherwise."""
    lineage = posts.write("strong")
    reader = posts.wrapped["b1"]
    reads: list[tuple[str, dict[str, Any]]] = [
        ("get_item", {"TableName": TABLE, "Key": key("strong")}),
        ("scan", {"TableName": TABLE}),
        (
            "query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "id = :k",
                "ExpressionAttributeValues": {":k": {"S": "strong"}},
            },
        ),
    ]
    for kind, params in reads:
        with antipode.scope(lineage), requests_of(reader) as sent:
            posts.look(lineage)
            getattr(reader, kind)(**params)
            getattr(reader, kind)(**params, ConsistentRead=False)
        assert [request.get("ConsistentRead") for _, request in sent] == [True, False]
        with antipode.scope(), requests_of(reader) as sent:
            getattr(reader, kind)(**params)  # the barrier's lineage may have been given to it
            posts.wrapped["b1"]._antipode.store.shim.proved_at = -1e9
            getattr(reader, kind)(**params)
        assert [request.get("ConsistentRead") for _, request in sent] == [True, None]
    with antipode.scope(lineage), requests_of(reader) as sent:
        reader.batch_get_item(RequestItems={TABLE: {"Keys": [key("strong")]}})
    assert sent[0][1]["RequestItems"][TABLE]["ConsistentRead"] is True
    with antipode.scope(lineage), requests_of(posts.wrap("b1", consistent_reads="never")) as sent:
        reader.get_item(TableName=TABLE, Key=key("strong"))
    assert not sent


def test_wait_on_read(posts: Posts) -> None:
    """The read itself waits, and says so where it waits in vain."""
    reader = posts.wrap("b1", wait_on_read=True, timeout=50.0)
    posts.lab.lag("b1", "150ms")
    lineage = posts.write("waits")
    with antipode.scope(lineage):
        assert reader.get_item(TableName=TABLE, Key=key("waits"))["Item"] == item("waits")
    posts.lab.partition("b1")
    lineage = posts.write("never")
    impatient = posts.wrap("b1", wait_on_read=True, timeout=0.15)
    with antipode.scope(lineage), pytest.raises(BarrierTimeout, match="wait on read"):
        impatient.get_item(TableName=TABLE, Key=key("never"))


PARTIQL = {
    "behind a line of comment": f"-- x\nSELECT * FROM {TABLE} WHERE id = 'stale'",
    "behind comments": f" /* x */ /* -- */ SELECT * FROM {TABLE} WHERE id = 'stale'",
    "a deletion that returns": f"DELETE FROM {TABLE} WHERE id = 'stale' RETURNING ALL OLD *",
    "what nobody knows": f"(SELECT * FROM {TABLE} WHERE id = 'stale')",
}


@pytest.mark.parametrize("statement", PARTIQL.values(), ids=PARTIQL)
def test_statements_that_may_read_wait(posts: Posts, statement: str) -> None:
    """SHIM-43, SHIM-44: what is unsure is both."""
    impatient = posts.wrap("b1", wait_on_read=True, timeout=0.15)
    posts.lab.partition("b1")
    with antipode.scope(posts.write("stale")):
        with pytest.raises(BarrierTimeout, match="wait on read"):
            impatient.execute_statement(Statement=statement)
        with pytest.raises(BarrierTimeout, match="wait on read"):
            impatient.batch_execute_statement(Statements=[{"Statement": statement}])


def test_a_statement_behind_a_comment_reads_and_hides_what_is_ours(posts: Posts) -> None:
    """SHIM-12, SHIM-43"""
    client = posts.wrapped["a"]
    posts.write("commented")
    with antipode.scope() as scope, antipode.reading() as seen:
        found = client.execute_statement(Statement=f"-- x\nSELECT * FROM {TABLE} WHERE id = 'commented'")
        assert found["Items"] == [item("commented")]
        assert not scope.lineage
    assert seen.lineage.incomplete == {STORE}
    with antipode.scope() as scope:
        client.execute_statement(Statement=f"-- x\nINSERT INTO {TABLE} VALUE {{'id': 'inserted'}}")
        assert scope.lineage.incomplete == {STORE}


def test_a_text_that_looks_like_the_end_of_a_comment_is_none(posts: Posts) -> None:
    """SHIM-43: the first comment's end is its end."""
    insert = f"/* 1 */ DELETE FROM {TABLE} WHERE id = '*/ INSERT' RETURNING ALL OLD *"
    assert may_write(insert)
    assert may_read(insert)
    posts.write("looks")
    update = f"/* 1 */ UPDATE {TABLE} SET body = 'see /* x */ select' WHERE id = 'looks'"
    with antipode.scope() as scope:
        posts.wrapped["a"].execute_statement(Statement=update)
        assert scope.lineage.incomplete == {STORE}


@pytest.mark.parametrize("judge", [may_write, may_read])
def test_many_comments_cost_little(judge: Callable[[str], bool]) -> None:
    """SHIM-43: each of them is looked at once."""
    for comments in (20, 40):
        began = time.process_time()
        assert judge("/**/" * comments + "UPDATE")
        assert time.process_time() - began < 0.01


def test_what_was_deleted_is_hidden_from_a_statement_behind_a_comment(posts: Posts) -> None:
    """SHIM-12"""
    client = posts.wrapped["a"]
    posts.write("gone")
    client.delete_item(TableName=TABLE, Key=key("gone"))
    for statement in ("SELECT id", "/* x */ SELECT id", "-- x\nSELECT /* x */ id", "/* x */ SELECT *"):
        assert client.execute_statement(Statement=f"{statement} FROM {TABLE} WHERE id = 'gone'")["Items"] == []


def test_reading_after_a_lineage(posts: Posts) -> None:
    posts.lab.lag("b1", "150ms")
    lineage = posts.write("after")
    antipode.configure(timeout=50.0)
    with antipode.scope(), antipode.reading(after=lineage):
        assert "Item" in posts.wrapped["b1"].get_item(TableName=TABLE, Key=key("after"))


def test_every_kind_of_read_says_what_it_depends_on(posts: Posts) -> None:
    """SHIM-13: the lineage beside each value, and the value's own version."""
    beside = antipode.WriteId.position("other", "e", 7)
    client = posts.wrapped["a"]
    with antipode.scope(Lineage([beside])) as scope:
        client.put_item(TableName=TABLE, Item=item("seen", more={"N": "1"}))
        [own] = scope.lineage.of_store(STORE)
    reads: list[tuple[str, dict[str, Any]]] = [
        ("get_item", {"TableName": TABLE, "Key": key("seen")}),
        ("get_item", {"TableName": TABLE, "Key": key("seen"), "ProjectionExpression": "more"}),
        ("get_item", {"TableName": TABLE, "Key": key("seen"), "AttributesToGet": ["more"]}),
        ("batch_get_item", {"RequestItems": {TABLE: {"Keys": [key("seen")]}}}),
        ("transact_get_items", {"TransactItems": [{"Get": {"TableName": TABLE, "Key": key("seen")}}]}),
        (
            "query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "id = :k",
                "ExpressionAttributeValues": {":k": {"S": "seen"}},
            },
        ),
        (
            "scan",
            {
                "TableName": TABLE,
                "FilterExpression": "id = :k",
                "ExpressionAttributeValues": {":k": {"S": "seen"}},
            },
        ),
    ]
    for kind, params in reads:
        with antipode.scope() as scope:
            plain = getattr(client, kind)(**params)
            with antipode.reading() as seen:
                found = getattr(client, kind)(**params)
            del plain["ResponseMetadata"], found["ResponseMetadata"]
            assert found == plain
            assert "_ap" not in str(found)
            assert not scope.lineage, "a read adds nothing by itself"
        assert Lineage([beside, own]) <= seen.lineage, kind
        assert seen.lineage.is_complete()


def test_a_read_that_cannot_tell_says_so(posts: Posts) -> None:
    """A projection of the table's key-less part, by query; PartiQL; an item written without Antipode, in part."""
    client = posts.wrapped["a"]
    posts.write("part")
    posts.plain["a"].put_item(TableName=TABLE, Item=item("bare"))
    reads: list[tuple[str, dict[str, Any]]] = [
        (
            "query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "id = :k",
                "ExpressionAttributeValues": {":k": {"S": "part"}},
                "ProjectionExpression": "#v",
                "ExpressionAttributeNames": {"#v": "value"},
            },
        ),
        ("execute_statement", {"Statement": f"SELECT id FROM {TABLE} WHERE id = 'part'"}),
        ("get_item", {"TableName": TABLE, "Key": key("bare"), "ProjectionExpression": "id"}),
    ]
    for kind, params in reads:
        with antipode.scope(), antipode.reading() as seen:
            found = getattr(client, kind)(**params)
        assert seen.lineage.incomplete == {STORE}, kind
        assert "_ap" not in str(found)


def test_automatic_merging(posts: Posts) -> None:
    antipode.configure(auto_merge=True)
    posts.write("merged")
    with antipode.scope() as scope:
        posts.wrapped["a"].get_item(TableName=TABLE, Key=key("merged"))
        assert [one.key for one in scope.lineage.of_store(STORE)] == [b"posts/Smerged"]


def test_a_malformed_lineage_at_rest_is_incomplete(posts: Posts) -> None:
    posts.plain["a"].put_item(TableName=TABLE, Item=item("malformed", _apl={"S": "1~"}, _apv={"N": "5"}))
    with antipode.scope(), antipode.reading() as seen:
        posts.wrapped["a"].get_item(TableName=TABLE, Key=key("malformed"))
    assert seen.lineage.incomplete == {STORE}


def test_sort_keys_indexes_and_a_table_with_its_own_time_to_live(posts: Posts) -> None:
    client = posts.wrap("a", tables=["sorted"])
    reader = posts.wrap("b1", tables=["sorted"])
    name = {"who": {"S": "a/b"}, "when": {"N": "1.50"}}
    with antipode.scope() as scope:
        client.put_item(TableName="sorted", Item={**name, "kind": {"S": "k"}, "expires": {"N": "99999999999"}})
        assert [one.key for one in scope.lineage.of_store(STORE)] == [b"sorted/Sa%2Fb/N1.5"]
        assert posts.look(scope.lineage).complete
        assert "Item" in reader.get_item(TableName="sorted", Key=name)
        by_kind: dict[str, Any] = {
            "TableName": "sorted",
            "IndexName": "by-kind",
            "KeyConditionExpression": "kind = :k",
            "ExpressionAttributeValues": {":k": {"S": "k"}},
        }
        assert client.query(**by_kind)["Count"] == 1
        client.delete_item(TableName="sorted", Key=name)
        assert posts.look(scope.lineage).complete
    left = posts.plain["a"].get_item(TableName="sorted", Key=name)["Item"]
    assert left["expires"] == left["_apx"], "the table's own attribute of time to live takes the tombstone away"
    with antipode.scope():
        assert client.query(**by_kind)["Count"] == 0
        asked = {"KeyConditionExpression": "who = :w", "ExpressionAttributeValues": {":w": {"S": "a/b"}}}
        assert client.query(TableName="sorted", **asked)["Items"] == []
        assert client.query(TableName="sorted", Select="COUNT", **asked)["Count"] == 0
        client.update_item(
            TableName="sorted",
            Key=name,
            UpdateExpression="SET kind = :k",
            ExpressionAttributeValues={":k": {"S": "again"}},
        )
        now = {"who": {"S": "a/b"}, "when": {"N": "1.5"}, "kind": {"S": "again"}}
        assert client.get_item(TableName="sorted", Key=name)["Item"] == now
    assert not {"_apx", "expires"} & posts.plain["a"].get_item(TableName="sorted", Key=name)["Item"].keys()


def test_a_deleted_item_is_read_as_deleted(posts: Posts) -> None:
    """That nothing is there depends on the deletion (SHIM-13)."""
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("deleted"))
    with antipode.scope() as scope:
        posts.wrapped["a"].delete_item(TableName=TABLE, Key=key("deleted"))
        with antipode.reading() as seen:
            assert "Item" not in posts.wrapped["a"].get_item(TableName=TABLE, Key=key("deleted"))
        assert scope.lineage <= seen.lineage


def test_dry_run_never_waits(posts: Posts) -> None:
    antipode.configure(mode="dry-run")
    reader = posts.wrap("b1", wait_on_read=True, timeout=100.0)
    posts.lab.partition("b1")
    with antipode.scope(posts.write("followed")):
        assert "Item" not in reader.get_item(TableName=TABLE, Key=key("followed"))


@pytest.mark.parametrize("operation", ["query", "scan"])
def test_items_that_are_only_counted(posts: Posts, operation: str) -> None:
    """SHIM-13: a number of items depends on them, and none of them comes to say on what."""
    posts.write("counted")
    wanted: dict[str, Any] = {"ExpressionAttributeValues": {":k": {"S": "counted"}}}
    wanted["KeyConditionExpression" if operation == "query" else "FilterExpression"] = "id = :k"
    with antipode.scope(), antipode.reading() as seen:
        found = getattr(posts.wrapped["a"], operation)(TableName=TABLE, Select="COUNT", **wanted)
    assert found["Count"] == 1
    assert not seen.lineage.is_complete()
