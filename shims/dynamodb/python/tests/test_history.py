"""Recorded histories of DynamoDB: what calls change and read, and what a region that lags makes of it (HIST-23 …)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode_dynamodb
import pytest
from antipode.check.history.deciding import Verdict, decide
from antipode.messages import outgoing_message
from antipode.testing.histories import Hands, judge, judged, lines, play
from antipode_dynamodb import noting
from antipode_dynamodb.noting import _digest
from botocore.exceptions import ClientError, ReadTimeoutError
from dynamodb_regions import STORE, TABLE, Posts, item, key


@pytest.fixture
def folder(posts: Posts, tmp_path: Path) -> Path:
    posts.wrapped["a"].delete_item(TableName=TABLE, Key=key("none"))  # the table is known
    antipode.configure(history=tmp_path / "history")
    return tmp_path / "history"


def octets(name: str) -> bytes:
    return f"{TABLE}/S{name}".encode()


def digest(name: str, value: str = "v", **more: Any) -> str:
    return _digest(STORE, octets(name), item(name, value, **more))


# The story


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("kind", ["client", "resource"])
@pytest.mark.parametrize("projected", [False, True])
def test_the_story_with_and_without_a_barrier(
    posts: Posts, folder: Path, waits: bool, kind: str, projected: bool
) -> None:
    """HIST-28, HIST-29: an item says by its version which write it is, also to a read of a part of it."""
    reader = posts.wrapped["b1"]
    if kind == "resource":
        plain = posts.lab.resource("b1").Table(TABLE)
        reader = antipode_dynamodb.wrap(plain, store=STORE, replicas=[posts.plain["b1"]])
    posts.lab.lag("b1", "200ms" if waits else "5s")
    part = {"ProjectionExpression": "#v", "ExpressionAttributeNames": {"#v": "value"}} if projected else {}
    for number in range(3):
        name = f"{kind}-{waits}-{projected}-{number}"
        with antipode.scope():
            posts.wrapped["a"].put_item(TableName=TABLE, Item=item(name, f"body {number}"))
            text = outgoing_message()
        with antipode.message_scope(text):
            if waits:
                antipode.barrier(timeout=30)
            if kind == "resource":
                found = reader.get_item(Key={"id": name}, **part).get("Item")
                assert found == (({} if projected else {"id": name}) | {"value": f"body {number}"} if waits else None)
            else:
                found = reader.get_item(TableName=TABLE, Key=key(name), **part).get("Item")
                whole = item(name, f"body {number}")
                assert found == (({"value": whole["value"]} if projected else whole) if waits else None)
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is (Verdict.CONSISTENT if waits else Verdict.VIOLATED)
    found = [history.operations[each.operation].key for each in decide(history).found]
    assert found == ([] if waits else [octets(f"{kind}-{waits}-{projected}-{number}").decode() for number in range(3)])


def test_an_older_version_a_deletion_and_what_came_are_told_apart(posts: Posts, folder: Path) -> None:
    """HIST-29: of a deleted item the tombstone says which deletion it was."""
    writer, reader = posts.wrapped["a"], posts.wrapped["b1"]
    posts.write("deleted", "one")
    first = posts.write("seen", "one")
    with antipode.scope() as scope:
        writer.delete_item(TableName=TABLE, Key=key("deleted"))
        deletion = scope.lineage
    assert antipode.barrier(first | deletion, timeout=30).satisfied
    posts.lab.partition("b1")
    with antipode.scope(first | deletion):
        assert "Item" not in reader.get_item(TableName=TABLE, Key=key("deleted"))
        writer.update_item(
            TableName=TABLE,
            Key=key("seen"),
            UpdateExpression="SET #v = :v",
            ExpressionAttributeNames={"#v": "value"},
            ExpressionAttributeValues={":v": {"S": "two"}},
        )
        assert reader.get_item(TableName=TABLE, Key=key("seen"))["Item"]["value"] == {"S": "one"}
    posts.lab.heal()
    _, history = judged(folder)
    [violation] = decide(history).found
    assert (violation.pattern, history.operations[violation.operation].key) == ("WriteCORead", "posts/Sseen")
    [deleted] = [each for each in history.operations if each.kind == "read" and each.key == "posts/Sdeleted"]
    assert [each.key for each in history.operations if each.id == deleted.reads_from] == ["posts/Sdeleted"]


# A random run


def _hands(posts: Posts, run: str, *, deletes: bool = False) -> Hands:
    a, b = posts.wrapped["a"], posts.wrapped["b1"]

    def value(client: Any, name: str) -> str | None:
        found = client.get_item(TableName=TABLE, Key=key(run + name)).get("Item")
        return None if found is None else str(found["value"]["S"])

    return Hands(
        write=lambda name, text: a.put_item(TableName=TABLE, Item=item(run + name, text)),
        read=lambda name: value(a, name),
        read_there=lambda name: value(b, name),
        delete=(lambda name: a.delete_item(TableName=TABLE, Key=key(run + name))) if deletes else None,
        lag=lambda on: posts.lab.lag("b1", "5s" if on else "0ms"),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("barriers", [False, True])
def test_a_random_run_has_each_stale_read_and_no_other(posts: Posts, folder: Path, seed: int, barriers: bool) -> None:
    """HIST-29: with barriers it is consistent, without them violated where a read was stale."""
    books = play(seed, _hands(posts, f"{seed}-{barriers}-"), barriers=barriers)
    history, decision, attributed = judge(books, folder)
    assert not history.gaps
    assert attributed == len(books.reads)
    direct = [found for found in decision.found if found.pattern.startswith("WriteCO")]
    assert len(direct) == books.stale
    assert decision.verdict is (Verdict.VIOLATED if decision.found else Verdict.CONSISTENT)
    assert bool(books.stale) is not barriers


@pytest.mark.parametrize("seed", range(3))
def test_a_random_run_with_deletions_attributes_no_read_wrongly(posts: Posts, folder: Path, seed: int) -> None:
    books = play(seed, _hands(posts, f"deleting-{seed}-", deletes=True), barriers=False, requests=12)
    _, _, attributed = judge(books, folder)
    assert attributed >= sum(value is not None for _, value in books.reads) > 0


# What calls change


def _update(client: Any, name: str = "k", **more: Any) -> None:
    client.update_item(TableName=TABLE, Key=key(name), UpdateExpression="SET a = :a", **more)


VALUE = {":a": {"N": "1"}}
WRITES: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "put": (lambda c: c.put_item(TableName=TABLE, Item=item("k")), [{"key": "posts/Sk", "value": digest("k")}]),
    "update": (
        lambda c: _update(c, ExpressionAttributeValues=VALUE),
        [{"key": "posts/Sk", "there": True}],
    ),
    "delete": (lambda c: c.delete_item(TableName=TABLE, Key=key("old")), [{"key": "posts/Sold", "value": None}]),
    "delete of nothing": (lambda c: c.delete_item(TableName=TABLE, Key=key("no")), []),
    "batch": (
        lambda c: c.batch_write_item(
            RequestItems={
                TABLE: [
                    {"PutRequest": {"Item": item("k")}},
                    {"DeleteRequest": {"Key": key("old")}},
                    {"DeleteRequest": {"Key": key("no")}},
                ]
            }
        ),
        [{"key": "posts/Sk", "value": digest("k")}, {"key": "posts/Sold", "value": None}],
    ),
    "transaction": (
        lambda c: c.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": TABLE, "Item": item("k")}},
                {"Delete": {"TableName": TABLE, "Key": key("old")}},
                {
                    "Update": {"TableName": TABLE, "Key": key("l"), "UpdateExpression": "SET a = :a"}
                    | {"ExpressionAttributeValues": VALUE}
                },
                {
                    "ConditionCheck": {"TableName": TABLE, "Key": key("m")}
                    | {"ConditionExpression": "attribute_not_exists(id)"}
                },
            ]
        ),
        [
            {"key": "posts/Sk", "value": digest("k")},
            {"key": "posts/Sold", "value": None},
            {"key": "posts/Sl", "there": True},
        ],
    ),
    "partiql": (
        lambda c: c.execute_statement(Statement=f"UPDATE {TABLE} SET a = 1 WHERE id = 'old'"),
        [{"key": "", "any_key": True}],
    ),
    "another table": (lambda c: c.put_item(TableName="lasting", Item=item("k")), []),
}
_CHANGES = ("key", "value", "there", "expires", "any_key", "nothing")


@pytest.mark.parametrize("write", WRITES)
def test_what_a_write_changed(posts: Posts, folder: Path, write: str) -> None:
    """HIST-28: a put by its digest, every line with the version that the item has."""
    run, wanted = WRITES[write]
    antipode.configure(history="")
    for name in "kl":
        posts.wrapped["a"].delete_item(TableName=TABLE, Key=key(name))
    posts.write("old")
    antipode.configure(history=folder)
    with antipode.scope() as scope:
        run(posts.wrapped["a"])
        entries = len(list(scope.lineage))
    found = lines(folder, "write")
    assert [{name: line[name] for name in _CHANGES if name in line} for line in found] == wanted
    assert len({line["identifier"] for line in found if "identifier" in line}) == entries
    assert entries == (0 if write == "partiql" else len(wanted))


def test_what_may_go_by_itself_is_said(posts: Posts, folder: Path) -> None:
    """HIST-28: items with the table's attribute of time to live, and updates of a table that has one of its own."""
    plain_client = posts.plain["a"]
    client = antipode_dynamodb.wrap(plain_client, store="sorted", tables=["sorted"], replicas=[plain_client])
    plain = {"who": {"S": "me"}, "when": {"N": "1.50"}}
    with antipode.scope():
        client.put_item(TableName="sorted", Item=plain)
        client.put_item(TableName="sorted", Item={**plain, "expires": {"N": "4102444800"}})
        client.update_item(
            TableName="sorted", Key=plain, UpdateExpression="SET a = :a", ExpressionAttributeValues=VALUE
        )
        client.put_item(TableName="sorted", Item=plain)
    found = lines(folder, "write")
    assert [line.get("expires", False) for line in found] == [False, True, True, False]
    assert {line["key"] for line in found} == {"sorted/Sme/N1.5"}


def test_a_write_that_was_refused_is_none(posts: Posts, folder: Path) -> None:
    """HIST-27."""
    with antipode.scope(), pytest.raises(ClientError):
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("k"), ConditionExpression="attribute_exists(nothing)")
    assert lines(folder, "write") == []


def test_a_put_whose_answer_was_lost_counts_where_it_was_read(
    posts: Posts, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HIST-27, HIST-29: by its value, though nobody knows its version."""
    writer = posts.wrapped["a"]
    low = writer._antipode.low
    send = type(low)._make_api_call

    def lose(self: Any, operation: str, params: dict[str, Any]) -> Any:
        answer = send(self, operation, params)
        if operation == "PutItem" and params["Item"]["value"] == {"S": "lost"}:
            raise ReadTimeoutError(endpoint_url="http://nowhere")
        return answer

    monkeypatch.setattr(type(low), "_make_api_call", lose)
    with antipode.scope():
        with pytest.raises(ReadTimeoutError):
            writer.put_item(TableName=TABLE, Item=item("lost", "lost"))
        assert "Item" in writer.get_item(TableName=TABLE, Key=key("lost"))
    _, history = judged(folder)
    [unknown] = [each for each in history.operations if each.recorded and not each.recorded.certain]
    assert [each.reads_from for each in history.operations if each.kind == "read"] == [unknown.id]


# What calls read

K = {"key": "posts/Sk", "value": digest("k")}
VERSIONED = K | {"version": True}
NAMES = {"ProjectionExpression": "#v", "ExpressionAttributeNames": {"#v": "value"}}
READS: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "get": (lambda c: c.get_item(TableName=TABLE, Key=key("k")), [VERSIONED]),
    "get of nothing": (lambda c: c.get_item(TableName=TABLE, Key=key("no")), [{"key": "posts/Sno", "value": None}]),
    "get of what is deleted": (
        lambda c: c.get_item(TableName=TABLE, Key=key("deleted")),
        [{"key": "posts/Sdeleted", "value": None, "version": True}],
    ),
    "get of a part": (
        lambda c: c.get_item(TableName=TABLE, Key=key("k"), **NAMES),
        [{"key": "posts/Sk", "version": True}],
    ),
    "get of what others wrote": (
        lambda c: c.get_item(TableName=TABLE, Key=key("plain")),
        [{"key": "posts/Splain", "value": digest("plain")}],
    ),
    "get of a part of it": (
        lambda c: c.get_item(TableName=TABLE, Key=key("plain"), AttributesToGet=["value"]),
        [{"key": "posts/Splain", "reads_from": "unattributed"}],
    ),
    "batch": (
        lambda c: c.batch_get_item(RequestItems={TABLE: {"Keys": [key("k"), key("no"), key("deleted")]}}),
        [
            VERSIONED,
            {"key": "posts/Sno", "value": None},
            {"key": "posts/Sdeleted", "value": None, "version": True},
        ],
    ),
    "batch without its keys": (
        lambda c: c.batch_get_item(RequestItems={TABLE: {"Keys": [key("k"), key("no")]} | NAMES}),
        [{"key": "posts/Sk", "reads_from": "unattributed"}, {"key": "posts/Sno", "reads_from": "unattributed"}],
    ),
    "transaction": (
        lambda c: c.transact_get_items(
            TransactItems=[{"Get": {"TableName": TABLE, "Key": key(name)}} for name in ("k", "no")]
        ),
        [VERSIONED, {"key": "posts/Sno", "value": None}],
    ),
    "query": (
        lambda c: c.query(
            TableName=TABLE, KeyConditionExpression="id = :k", ExpressionAttributeValues={":k": {"S": "k"}}
        ),
        [VERSIONED, {"key": "posts", "reads_from": "unattributed"}],
    ),
    "count": (
        lambda c: c.scan(TableName=TABLE, Select="COUNT"),
        [{"key": "posts", "reads_from": "unattributed"}],
    ),
    "partiql": (
        lambda c: c.execute_statement(Statement=f"SELECT * FROM {TABLE} WHERE id = 'k'"),
        [{"key": "", "reads_from": "unattributed"}],
    ),
    "another table": (lambda c: c.get_item(TableName="lasting", Key=key("k")), []),
}


@pytest.mark.parametrize("read", READS)
def test_what_a_read_saw(posts: Posts, folder: Path, read: str) -> None:
    run, wanted = READS[read]
    posts.write("k")
    posts.write("deleted")
    posts.wrapped["a"].delete_item(TableName=TABLE, Key=key("deleted"))
    posts.plain["a"].put_item(TableName=TABLE, Item=item("plain"))
    with antipode.scope():
        run(posts.wrapped["a"])
    found = lines(folder, "read")
    said = [{name: line[name] for name in ("key", "value", "reads_from") if name in line} for line in found]
    assert [
        one | ({"version": True} if "version" in line else {}) for one, line in zip(said, found, strict=True)
    ] == wanted


def test_keys_that_were_left_unprocessed_were_not_read(posts: Posts, folder: Path) -> None:
    binding = posts.wrapped["a"]._antipode
    asked = {"RequestItems": {TABLE: {"Keys": [key("k"), key("l")]}}}
    result = {"Responses": {TABLE: []}, "UnprocessedKeys": {TABLE: {"Keys": [key("l")]}}}
    assert [each.key for each in noting._of_batch(binding, asked, result)] == [octets("k")]


def test_a_statement_that_writes_leaves_versions_that_are_none_of_its_items(posts: Posts, folder: Path) -> None:
    """HIST-29: PartiQL changes an item and leaves its version; who reads it has not read the put."""
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("k"))
        posts.wrapped["a"].execute_statement(Statement=f"UPDATE {TABLE} SET a = 1 WHERE id = 'k'")
        posts.wrapped["a"].get_item(TableName=TABLE, Key=key("k"))
    verdict, history = judged(folder)
    assert verdict is Verdict.UNKNOWN
    [read] = [each for each in history.operations if each.kind == "read"]
    assert read.reads_from == "unattributed"


def test_what_goes_wrong_in_telling_is_a_gap(posts: Posts, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HIST-24."""
    monkeypatch.setattr(noting, "_found", lambda *_: 1 / 0)
    monkeypatch.setattr(noting, "_digest", lambda *_: 1 / 0)
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("k"))
        assert "Item" in posts.wrapped["a"].get_item(TableName=TABLE, Key=key("k"))
    told = lines(folder, "gap", "write", "read")
    assert [line["kind"] for line in told] == ["gap", "write", "gap"]
    assert (told[1]["key"], "value" in told[1], "there" in told[1]) == ("posts/Sk", False, False)


def test_an_item_has_one_digest_whoever_wrote_it() -> None:
    """HIST-28: sets have no order, numbers no zeros at their ends, and all of their digits count."""
    more: dict[str, Any] = {
        "ns": {"NS": ["1.0", "2"]},
        "l": {"L": [{"M": {"b": {"B": b"\0"}}}, {"NULL": True}, {"BOOL": False}]},
    }
    again = {"l": more["l"], "ns": {"NS": ["2", "1"]}}
    assert digest("k", **more) == digest("k", **again)
    long = "1234567890123456789012345678901234567"
    assert digest("k", n={"N": long + "1"}) != digest("k", n={"N": long + "2"})
    assert digest("k", n={"N": "1"}) != digest("k", n={"S": "1"})
