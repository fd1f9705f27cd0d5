"""Versions: growing, unlike, joined with what rests beside an item; last writers (SHIM-10, SHIM-24 to SHIM-30)."""

from __future__ import annotations

import threading
import time
from typing import Any

import antipode
import antipode_dynamodb
import pytest
from antipode import Lineage, Opaque, Ordered, Verdict, WriteId
from antipode._model.errors import UnfitStoreError
from antipode._store.hybrid_clock import HybridClock, place_number
from antipode_dynamodb.attributes import as_if_absent, both, edited_update
from antipode_dynamodb.keys import key_octets, parse_key
from antipode_dynamodb.shim import judge
from dynamodb_regions import STORE, TABLE, Posts, item, key, until
from hypothesis import given
from hypothesis import strategies as st


def counter(lineage: Lineage) -> int:
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    return write_id.version.counter


def test_versions_grow_across_deletion(posts: Posts) -> None:
    """SHIM-10: also where another process's clock is far behind."""
    seen = []
    behind = HybridClock(node=1, time_ns=lambda: time.time_ns() - 10**10)
    posts.wrapped["a"]._antipode.store.shim._clocks[posts.lab.region("a")] = behind
    other = posts.wrap("a")
    for client in (posts.wrapped["a"], other, posts.wrapped["a"], other):
        with antipode.scope() as scope:
            client.put_item(TableName=TABLE, Item=item("grow"))
            seen.append(counter(scope.lineage))
        with antipode.scope() as scope:
            client.delete_item(TableName=TABLE, Key=key("grow"))
            seen.append(counter(scope.lineage))
    assert seen == sorted(set(seen))


def test_every_kind_of_write_has_an_id(posts: Posts) -> None:
    """SHIM-6: and each is waited for, in the other region."""
    client = posts.wrapped["a"]
    names = [f"each-{number}" for number in range(8)]
    with antipode.scope() as scope:
        client.put_item(TableName=TABLE, Item=item(names[0], "0"))
        client.update_item(
            TableName=TABLE,
            Key=key(names[1]),
            UpdateExpression="SET #v = :v",
            ExpressionAttributeNames={"#v": "value"},
            ExpressionAttributeValues={":v": {"S": "1"}},
        )
        client.batch_write_item(
            RequestItems={TABLE: [{"PutRequest": {"Item": item(name, name[-1])}} for name in names[2:5]]}
        )
        client.transact_write_items(
            TransactItems=[{"Put": {"TableName": TABLE, "Item": item(name, name[-1])}} for name in names[5:]]
        )
        lineage = scope.lineage
    assert len(lineage.of_store(STORE)) == 8
    assert lineage.is_complete()
    assert posts.look(lineage).complete
    for reader in posts.readers:
        for name in names:
            assert posts.shows(reader, name) == name[-1]
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        client.batch_write_item(RequestItems={TABLE: [{"DeleteRequest": {"Key": key(names[2])}}]})
        client.transact_write_items(TransactItems=[{"Delete": {"TableName": TABLE, "Key": key(names[5])}}])
        client.delete_item(TableName=TABLE, Key=key(names[0]))
        deleted = scope.lineage
    assert len(deleted.of_store(STORE)) == 3
    for write_id in deleted.of_store(STORE):
        assert posts.verdict(Lineage([write_id]), 0.1) is Verdict.TIMED_OUT
    posts.lab.heal(wait=False)
    assert posts.look(deleted).complete
    for name in (names[0], names[2], names[5]):
        assert posts.shows("b1", name) is None


def test_writers_at_once_never_share_a_version(posts: Posts) -> None:
    """SHIM-29: four threads and one key, by put, update and transaction; the greatest is what stays."""
    found: list[int] = []
    lock = threading.Lock()

    def write(number: int) -> None:
        client = posts.wrap("a", timeout=5)
        for turn in range(12):
            with antipode.scope() as scope:
                if (number + turn) % 2:
                    client.put_item(TableName=TABLE, Item=item("shared", str(turn)))
                else:
                    put = {"TableName": TABLE, "Item": item("shared", str(turn))}
                    try:
                        client.transact_write_items(TransactItems=[{"Put": put}])
                    except client.exceptions.TransactionCanceledException:
                        continue  # DynamoDB's own: another transaction was at it
                with lock:
                    found.append(counter(scope.lineage))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == len(set(found)) >= 24
    assert int((posts.raw("a", "shared") or {})["_apv"]["N"]) == max(found)


def test_the_later_of_two_regions_supersedes(posts: Posts) -> None:
    """SHIM-30, SHIM-52: both wrote the key in a partition. The winner's passes; of the loser nobody can tell by clocks
    that it came before, so a lineage that joins both does not pass."""
    posts.lab.clock("b1", 30_000)  # on a busy machine a region's stream may show its write later than the other's
    posts.lab.partition("b1")
    first = posts.write("both", "from a", at="a")
    second = posts.write("both", "from b1", at="b1")
    assert counter(second) > counter(first)
    assert not posts.look(first, 0.1).satisfied
    posts.lab.heal(wait=False)
    until(lambda: all(posts.shows(name, "both") == "from b1" for name in posts.names), "the later one wins")
    assert posts.look(second).complete
    assert posts.verdict(first) is Verdict.UNPROVEN
    assert posts.verdict(first | second) is Verdict.UNPROVEN


def test_a_loser_by_the_stores_clock_never_passes(posts: Posts) -> None:
    """The store's own clocks may prefer the write with the smaller version: the other one is nowhere, and says so."""
    posts.lab.clock("a", 30_000)
    posts.lab.partition("b1")
    first = posts.write("wrong clock", "from a", at="a")
    second = posts.write("wrong clock", "from b1", at="b1")
    assert counter(second) > counter(first)
    posts.lab.heal(wait=False)
    until(lambda: all(posts.shows(name, "wrong clock") == "from a" for name in posts.names), "region a's wins")
    assert posts.look(first).satisfied
    until(lambda: "passed over" in posts.look(second, 0.3).stores[STORE].reason, "the reason says so")
    assert posts.verdict(second, 0.3) is Verdict.TIMED_OUT


def test_a_greater_version_of_another_region_proves_nothing(posts: Posts) -> None:
    """SHIM-52: region a's machine is ahead, region b's write is later, and a barrier on it asks where a's is."""
    ahead = HybridClock(place=place_number(posts.lab.region("a")), time_ns=lambda: time.time_ns() + 5 * 10**9)
    posts.wrapped["a"]._antipode.store.shim._clocks[posts.lab.region("a")] = ahead
    wrapped = posts.wrap("a")
    posts.lab.partition("b2")
    with antipode.scope() as scope:
        wrapped.put_item(TableName=TABLE, Item=item("two clocks", "from a"))
        first = scope.lineage
    second = posts.write("two clocks", "from b2", at="b2")
    assert counter(second) < counter(first)
    until(lambda: posts.shows("b1", "two clocks") == "from a", "the first one is there")
    until(lambda: "another region" in posts.look(second, 0.5).stores[STORE].reason, "the reason says so")
    assert posts.verdict(second, 0.5) is Verdict.UNPROVEN


@pytest.mark.parametrize(
    ("there", "wanted", "verdict"),
    [
        ((1, 0), (1, 0), Verdict.VISIBLE),
        ((1, 1), (1, 0), Verdict.UNPROVEN),  # of another chain; test_chains.py has those of one
        ((2, 1), (1, 0), Verdict.UNPROVEN),
        ((2, 3599), (1, 0), Verdict.UNPROVEN),
        ((2, 3601), (1, 0), Verdict.VISIBLE),  # no clock is so far off
        ((2, 0), (1, 1), Verdict.NOT_YET),
    ],
)
def test_what_a_version_proves_of_another(there: tuple[int, int], wanted: tuple[int, int], verdict: Verdict) -> None:
    """SHIM-31, SHIM-52: pairs of a region's number and seconds."""

    def version(place: int, seconds: int) -> int:
        return HybridClock(place=place, time_ns=lambda: (1_800_000_000 + seconds) * 10**9).next()

    held = version(*there)
    asked = held if there == wanted else version(*wanted)
    found = judge(WriteId(STORE, b"k", Ordered("", asked)), {"_apv": {"N": str(held)}})
    assert found.verdict is verdict
    if verdict is not Verdict.NOT_YET and held != asked:
        gone = judge(WriteId(STORE, b"k", Opaque(f"d{asked}")), {"_apv": {"N": str(held)}})
        assert gone.verdict is verdict


def test_a_dependent_write_has_the_greater_version(posts: Posts) -> None:
    """SHIM-26: in another region, whose clock is behind, too."""
    first = posts.write("cause", at="a")
    store = posts.wrapped["b1"]._antipode.store
    late = HybridClock(node=1, time_ns=lambda: time.time_ns() - 20 * 10**9)
    store.shim._clocks[posts.lab.region("b1")] = late
    client = posts.wrap("b1")
    with antipode.scope(first) as scope:
        client.put_item(TableName=TABLE, Item=item("effect"))
        [effect] = [one for one in scope.lineage.of_store(STORE) if one.key.endswith(b"effect")]
    assert isinstance(effect.version, Ordered)
    assert effect.version.counter > counter(first)


def test_a_forged_version_is_passed_for_its_key_alone(posts: Posts) -> None:
    """SHIM-27, SHIM-28: the clock stays where it is, and the write happens."""
    far = (int(time.time()) + 10**6) * 256_000 << 14
    for name, version, complete in (("forged", far, True), ("greatest", 2**64 - 1, False)):
        posts.plain["a"].put_item(TableName=TABLE, Item=item(name, "old", _apv={"N": str(version)}))
        with antipode.scope() as scope:
            posts.wrapped["a"].put_item(TableName=TABLE, Item=item(name, "new"))
            assert scope.lineage.is_complete() is complete
            if complete:
                assert counter(scope.lineage) > version
                assert posts.look(scope.lineage).complete
        assert posts.shows("a", name) == "new"
    assert counter(posts.write("afterwards")) < far


def test_an_update_keeps_what_earlier_values_depend_on(posts: Posts) -> None:
    """What rests beside an item is the join of all who wrote to it (SHIM-9)."""
    ids = [antipode.WriteId.position(f"other-{number}", "e", number) for number in (1, 2, 3)]
    for number, write_id in enumerate(ids):
        with antipode.scope(Lineage([write_id])):
            posts.wrapped["a"].update_item(
                TableName=TABLE,
                Key=key("joined"),
                UpdateExpression="SET #p = :v",
                ExpressionAttributeNames={"#p": f"part{number}"},
                ExpressionAttributeValues={":v": {"N": "1"}},
            )
    with antipode.scope(), antipode.reading() as seen:
        found = posts.wrapped["a"].get_item(TableName=TABLE, Key=key("joined"))["Item"]
    assert set(found) == {"id", "part0", "part1", "part2"}
    assert Lineage(ids) <= seen.lineage
    with antipode.scope(Lineage(ids[:1])):
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("joined"))
    with antipode.scope(), antipode.reading() as seen:
        posts.wrapped["a"].get_item(TableName=TABLE, Key=key("joined"))
    assert seen.lineage.of_store("other-1")
    assert not seen.lineage.of_store("other-2")


def test_a_repetition_after_a_lost_answer_is_the_same_write(posts: Posts) -> None:
    """botocore sends a request again whose answer was lost; the first attempt had been done."""
    lost = iter([0.0])

    def lose(**_: Any) -> float | None:
        return next(lost, None)

    client = posts.lab.client("a", timeout=30, attempts=3)
    wrapped = posts.wrap("a", client)
    client._endpoint._event_emitter.register_first("needs-retry.dynamodb.UpdateItem", lose)
    try:
        with antipode.scope() as scope:
            found = wrapped.update_item(
                TableName=TABLE,
                Key=key("again"),
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="ALL_NEW",
            )
            assert found["Attributes"] == {**key("again"), "n": {"N": "1"}}
            assert not scope.pending
            assert scope.lineage.is_complete()
            assert posts.look(scope.lineage).complete
    finally:
        client._endpoint._event_emitter.unregister("needs-retry.dynamodb.UpdateItem", lose)
    assert next(lost, None) is None, "no answer was lost"
    assert (posts.raw("a", "again") or {})["n"] == {"N": "1"}


def test_what_a_lost_answer_gave_back_nobody_knows(posts: Posts) -> None:
    """SHIM-44: the write is the same one; what was there before it is not there any more."""
    posts.write("given")
    lost = iter([0.0])

    def lose(**_: Any) -> float | None:
        return next(lost, None)

    client = posts.lab.client("a", timeout=30, attempts=3)
    wrapped = posts.wrap("a", client)
    wrapped.get_item(TableName=TABLE, Key=key("given"))  # its chain is known
    client._endpoint._event_emitter.register_first("needs-retry.dynamodb.UpdateItem", lose)
    try:
        with antipode.scope(), antipode.reading() as seen:
            found = wrapped.update_item(
                TableName=TABLE,
                Key=key("given"),
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="ALL_OLD",
            )
    finally:
        client._endpoint._event_emitter.unregister("needs-retry.dynamodb.UpdateItem", lose)
    assert next(lost, None) is None, "no answer was lost"
    assert "Attributes" not in found
    assert seen.lineage.incomplete == {STORE}
    assert (posts.raw("a", "given") or {})["n"] == {"N": "1"}


def test_a_refusal_behind_a_lost_answer_leaves_the_outcome_unknown(posts: Posts) -> None:
    """SCOPE-17: the first attempt was done, another writer wrote over it, and the condition refuses the repetition."""
    left = [True]

    def lose(**_: Any) -> float | None:
        if not left:
            return None
        left.clear()
        posts.write("raced", "by another")
        return 0.0

    client = posts.lab.client("a", timeout=30, attempts=3)
    wrapped = posts.wrap("a", client)
    client._endpoint._event_emitter.register_first("needs-retry.dynamodb.PutItem", lose)
    try:
        with antipode.scope() as scope:
            with pytest.raises(client.exceptions.ConditionalCheckFailedException):
                wrapped.put_item(
                    TableName=TABLE, Item=item("raced", "mine"), ConditionExpression="attribute_not_exists(id)"
                )
            assert [write.unknown for write in scope.pending] == [True]
            assert scope.lineage.incomplete == {STORE}
    finally:
        client._endpoint._event_emitter.unregister("needs-retry.dynamodb.PutItem", lose)
    assert not left, "no answer was lost"


def test_what_a_batch_leaves_is_given_back_as_it_came(posts: Posts) -> None:
    requests = [{"PutRequest": {"Item": item("left")}}, {"PutRequest": {"Item": item("done")}}]

    def some_left(parsed: dict[str, Any], **_: Any) -> None:
        sent = {"PutRequest": {"Item": {**item("left"), "_apv": {"N": "1"}}}}
        parsed["UnprocessedItems"] = {TABLE: [sent]}

    client = posts.wrapped["a"]
    low = client._antipode.low
    low.meta.events.register("after-call.dynamodb.BatchWriteItem", some_left)
    try:
        with antipode.scope() as scope:
            found = client.batch_write_item(RequestItems={TABLE: requests})
            assert found["UnprocessedItems"] == {TABLE: [requests[0]]}
            assert [one.key for one in scope.lineage.of_store(STORE)] == [b"posts/Sdone"]
            assert not scope.pending
    finally:
        low.meta.events.unregister("after-call.dynamodb.BatchWriteItem", some_left)


def test_a_server_error_leaves_the_outcome_unknown(posts: Posts) -> None:
    """SCOPE-17: an error of the server's own may come after the write."""
    client = posts.lab.client("a", timeout=20, attempts=1)
    wrapped = posts.wrap("a", client)

    def broken(**_: Any) -> Any:
        class Http:
            status_code = 500

        error = {"Code": "InternalServerError", "Message": "by the test"}
        return Http(), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 500}}

    low = wrapped._antipode.low
    low.meta.events.register_first("before-call.dynamodb.PutItem", broken)
    with antipode.scope() as scope:
        with pytest.raises(client.exceptions.InternalServerError):
            wrapped.put_item(TableName=TABLE, Item=item("broken"))
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}


def test_two_regions_with_one_number_are_refused(posts: Posts) -> None:
    """SHIM-29: with the option that cures it."""
    taken = place_number(posts.lab.region("a"))
    with pytest.raises(UnfitStoreError, match=r"places="):
        posts.wrap("b1", places={posts.lab.region("b1"): taken})
    antipode_dynamodb.wrap(posts.plain["a"], store="numbered", places={posts.lab.region("a"): 7})
    client = antipode_dynamodb.wrap(posts.plain["a"], store="numbered")
    with antipode.scope() as scope:
        client.put_item(TableName=TABLE, Item=item("numbered"))
        [write_id] = scope.lineage.of_store("numbered")
    assert isinstance(write_id.version, Ordered)
    assert (write_id.version.counter & 0x3FFF) >> 6 == 7


def test_a_size_of_64_bytes(posts: Posts) -> None:
    """What a lineage of one store adds to an item, as DynamoDB counts: names, numbers by pairs of digits, texts."""
    position = antipode.WriteId.position("blog-users", "8371ab90c2d4e6f1", 1042)
    with antipode.scope(Lineage([position])):
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("size"))
    found = posts.raw("a", "size") or {}
    ours = {name: value for name, value in found.items() if name.startswith("_ap")}
    assert set(ours) == {"_apv", "_apl"}
    size = sum(map(len, ours)) + (len(ours["_apv"]["N"]) + 1) // 2 + 1 + len(ours["_apl"]["S"])
    assert size <= 64


# Small parts


@given(st.sampled_from("SNB"), st.text(max_size=20), st.one_of(st.none(), st.binary(min_size=1, max_size=20)))
def test_keys_have_one_canonical_form(kind: str, text: str, second: bytes | None) -> None:
    """SHIM-21: equal for equal keys, and to be taken apart again."""
    value: Any = {"S": text} if kind == "S" else {"N": str(len(text))} if kind == "N" else {"B": text.encode()}
    names = ["k"] if second is None else ["k", "r"]
    attributes = {"k": value, "r": {"B": second}}
    octets = key_octets("blog-posts", names, attributes)
    assert parse_key(octets) == ("blog-posts", [attributes[name] for name in names])


@pytest.mark.parametrize(
    ("number", "spelled"),
    [("1", "1"), ("1.0", "1"), ("-0", "0"), ("0.10", "0.1"), ("1E3", "1000"), ("1e-3", "0.001"), ("+7", "7")],
)
def test_equal_numbers_are_equal_keys(number: str, spelled: str) -> None:
    assert key_octets("t", ["k"], {"k": {"N": number}}) == f"t/N{spelled}".encode()


def test_keys_are_not_mixed_up() -> None:
    first = key_octets("t", ["a", "b"], {"a": {"S": "x/Sy"}, "b": {"S": "z"}})
    second = key_octets("t", ["a", "b"], {"a": {"S": "x"}, "b": {"S": "y/Sz"}})
    assert first == b"t/Sx%2FSy/Sz"
    assert first != second


@pytest.mark.parametrize(
    ("expression", "edited"),
    [
        (None, "SET #v = :v REMOVE #x"),
        ("SET a = :a", "SET #v = :v, a = :a REMOVE #x"),
        ("remove b  set a=:a", "remove #x, b  set #v = :v, a=:a"),
        ("ADD #set :a DELETE tags :t", "ADD #set :a DELETE tags :t SET #v = :v REMOVE #x"),
    ],
)
def test_update_expressions_take_more(expression: str | None, edited: str) -> None:
    assert edited_update(expression, to_set=["#v = :v"], to_remove=["#x"]) == edited


def test_conditions_join_without_double_parentheses() -> None:
    assert both(None, "x") == "x"
    assert both("a OR b", "x") == "(a OR b) AND x"
    assert both("(a OR b)", "x") == "(a OR b) AND x"
    assert both("(a) OR (b)", "x") == "((a) OR (b)) AND x"


def test_a_tombstones_key_is_not_seen_by_conditions() -> None:
    text, names = as_if_absent("attribute_not_exists(id) AND #n > :id AND a.id = :x", {"#n": "id"}, ["id"])
    assert text == "attribute_not_exists(#ap0) AND #n > :id AND a.id = :x"
    assert names == {"#n": "_ap0", "#ap0": "_ap0"}
