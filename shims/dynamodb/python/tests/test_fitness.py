"""What is unfit says what to change: at the wrapping, or as unproven (SHIM-3); and what waiting costs."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

import antipode
import antipode_dynamodb
import boto3
import pytest
from antipode import Verdict
from antipode._model.errors import ConfigurationError, UnfitStoreError
from antipode.shim.administration import InitRequest, Level
from antipode_dynamodb import DynamoDbShim
from antipode_dynamodb.plain import for_questions
from antipode_lab.stores.dynamodb import ACCESS_KEY
from dynamodb_regions import STORE, TABLE, Posts, answering, denied, item, key, until


def test_a_table_that_is_not_there(posts: Posts) -> None:
    """A wrong region, or no replica: the tables of another region are not seen."""
    elsewhere = boto3.client(
        "dynamodb",
        region_name="eu-west-3",
        endpoint_url=posts.lab.url("a"),
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=ACCESS_KEY,
    )
    with pytest.raises(UnfitStoreError, match=r"eu-west-3.*correct region_name="):
        antipode_dynamodb.wrap(elsewhere, store="lost", tables=[TABLE])
    antipode_dynamodb.wrap(elsewhere, store="lost", tables=[TABLE], on_unfit="unproven")
    with antipode.scope() as scope:
        antipode_dynamodb.wrap(posts.plain["a"], store="lost").put_item(TableName=TABLE, Item=item("lost"))
        assert scope.lineage.is_complete()

        def reason() -> str:
            result = antipode.barrier(stores=["lost"], timeout=0.5, on_timeout="proceed")
            assert result.stores["lost"].verdict is Verdict.TIMED_OUT
            return result.stores["lost"].reason

        until(lambda: "add a replica" in reason(), "the reason says so")


def test_no_time_to_live(posts: Posts, caplog: pytest.LogCaptureFixture) -> None:
    """SHIM-16, SHIM-52: deletions are unproven, and the reason has the cure; what is written later proves nothing."""
    caplog.set_level("INFO", "antipode")
    client = posts.wrap("a", tables=["lasting"])
    assert "update-time-to-live --table-name lasting" in caplog.text
    with antipode.scope():
        client.put_item(TableName="lasting", Item=item("gone"))
    with antipode.scope() as scope:
        assert "Attributes" not in client.delete_item(TableName="lasting", Key=key("gone"))
        deleted = scope.lineage
        client.delete_item(TableName="lasting", Key=key("never there"))
        assert scope.lineage == deleted
    assert "Item" not in posts.plain["a"].get_item(TableName="lasting", Key=key("gone"))
    until(lambda: posts.verdict(deleted, 1.0) is Verdict.UNPROVEN, "the deletion is unproven")
    until(lambda: "Enable time to live" in posts.look(deleted, 1.0).stores[STORE].reason, "the reason says so")
    with antipode.scope() as scope:
        client.put_item(TableName="lasting", Item=item("gone"))
        assert posts.look(scope.lineage).complete
    assert posts.verdict(deleted) is Verdict.UNPROVEN
    with pytest.raises(UnfitStoreError, match="update-time-to-live"):
        posts.wrap("a", tables=["lasting"], tombstones=True)
    assert "Item" not in posts.plain["a"].get_item(TableName=TABLE, Key=key("no tombstone"))
    without = posts.wrap("a", tombstones=False)
    with antipode.scope():
        without.put_item(TableName=TABLE, Item=item("no tombstone"))
        without.delete_item(TableName=TABLE, Key=key("no tombstone"))
    assert posts.raw("a", "no tombstone") is None


def test_missing_rights(posts: Posts, caplog: pytest.LogCaptureFixture) -> None:
    """DynamoDB Local has no rights: a handler of botocore refuses in its place."""
    client = posts.lab.client("a", timeout=40)
    with answering(client, "DescribeTable", denied), pytest.raises(UnfitStoreError, match="dynamodb:DescribeTable"):
        antipode_dynamodb.wrap(client, store="rights", tables=[TABLE])
    with answering(client, "DescribeTimeToLive", denied):
        antipode_dynamodb.wrap(client, store="rights", tables=[TABLE])
    assert "dynamodb:DescribeTimeToLive" in caplog.text
    wrapped = posts.wrap("a", client)
    with answering(wrapped._antipode.low, "BatchGetItem", denied), antipode.scope() as scope:
        wrapped.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": item("rights")}}]})
        assert scope.lineage.incomplete == {STORE}
    assert "dynamodb:BatchGetItem" in caplog.text
    assert posts.shows("a", "rights") == "v"


def test_rights_missing_where_it_waits(posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = ExitStack()

    def refused(client: Any, timeout: float) -> Any:
        made = for_questions(client, timeout)
        refusals.enter_context(answering(made, "BatchGetItem", denied))
        return made

    monkeypatch.setattr("antipode_dynamodb.shim.for_questions", refused)
    result = posts.look(posts.write("denied"))
    assert result.stores[STORE].verdict is Verdict.UNPROVEN
    assert "dynamodb:BatchGetItem" in result.stores[STORE].reason


def test_hashed_keys_are_unproven(posts: Posts) -> None:
    """DynamoDB is asked by the key itself."""
    result = posts.look(_hashed(posts))
    assert result.stores[STORE].verdict is Verdict.UNPROVEN
    assert "hash_keys=False" in result.stores[STORE].reason


def _hashed(posts: Posts) -> antipode.Lineage:
    client = posts.wrap("a", hash_keys=True)
    with antipode.scope() as scope:
        client.put_item(TableName=TABLE, Item=item("hashed"))
        return scope.lineage


@pytest.mark.parametrize("wrong", [{"rest": "envelope"}, {"consistent_reads": "sometimes"}, {"tables": TABLE}])
def test_options_that_cannot_be(posts: Posts, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        antipode_dynamodb.wrap(posts.plain["a"], store="wrong", **wrong)


def test_what_is_no_client() -> None:
    with pytest.raises(TypeError, match="boto3"):
        antipode_dynamodb.wrap(object(), store="wrong")
    for url in ("dynamodb://", "redis://x", "dynamodb+http://127.0.0.1:1"):
        with pytest.raises(ConfigurationError, match="no address of DynamoDB"):
            antipode_dynamodb.register("wrong", replicas=[url])


def test_what_may_write_and_carries_no_version(posts: Posts, caplog: pytest.LogCaptureFixture) -> None:
    """PartiQL, the old parameters and the application's own tokens: done as they came, and incomplete."""
    client = posts.wrapped["a"]
    put = {"Put": {"TableName": TABLE, "Item": item("token")}}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("execute_statement", {"Statement": f"INSERT INTO {TABLE} VALUE {{'id': 'partiql'}}"}),
        ("batch_execute_statement", {"Statements": [{"Statement": f"DELETE FROM {TABLE} WHERE id = 'partiql'"}]}),
        ("put_item", {"TableName": TABLE, "Item": item("old"), "Expected": {"id": {"Exists": False}}}),
        ("transact_write_items", {"TransactItems": [put], "ClientRequestToken": "the application's"}),
    ]
    for kind, params in calls:
        with antipode.scope() as scope:
            getattr(client, kind)(**params)
            assert scope.lineage.incomplete == {STORE}, kind
            assert not scope.pending
    assert "use PutItem" in caplog.text
    with antipode.scope() as scope:
        found = client.execute_statement(Statement=f"SELECT * FROM {TABLE} WHERE id = 'token'")
        assert found["Items"] == [item("token")]
        assert scope.lineage.is_complete()


def test_requests_while_many_wait(posts: Posts) -> None:
    """Single flight: a thousand waiters ask no more often than one."""
    assert posts.look(posts.write("before")).satisfied
    posts.lab.partition("b1")
    lineage = posts.write("many")
    for other in range(9):
        lineage |= posts.write(f"many-{other}")
    session: Any = None
    asked: list[float] = []
    server = next(one for one in antipode.stores()[0].servers() if posts.lab.url("b1")[7:] in one.address)
    session = server.session
    session.ask.meta.events.register("before-call.dynamodb.BatchGetItem", lambda **_: asked.append(0.0))
    results: list[bool] = []

    def wait() -> None:
        results.append(posts.look(lineage, 50.0).satisfied)

    threads = [threading.Thread(target=wait) for _ in range(100)]
    for thread in threads:
        thread.start()
    until(lambda: antipode.stores()[0].parked_threads == 100, "all wait")
    before, began = len(asked), time.monotonic()
    until(lambda: len(asked) >= before + 10, "the region is asked")
    rate = (len(asked) - before) / (time.monotonic() - began)
    assert rate <= 1 / (0.9 * antipode.settings().poll) + 10, "as many as one waiter asks, at most"
    posts.lab.heal(wait=False)
    for thread in threads:
        thread.join(60)
    assert results == [True] * 100


# What the command line asks


def test_doctor_and_init(posts: Posts) -> None:
    address = antipode.stores()[0].servers()[0].address.replace("://", f"://{ACCESS_KEY}:{ACCESS_KEY}@")
    findings = {finding.what: finding for finding in DynamoDbShim.diagnose(address)}
    assert findings["posts: time to live by _apx, so deletions leave tombstones"].level is Level.OK
    assert findings["lasting: no time to live"].level is Level.UNPROVEN
    assert "--table-name lasting" in findings["lasting: no time to live"].cure
    assert "sorted: time to live by expires, which tombstones set too" in findings
    nobody = DynamoDbShim.diagnose("dynamodb+http://a:b@127.0.0.1:9/eu-west-3")
    assert [finding.level for finding in nobody] == [Level.UNKNOWN]
    steps = DynamoDbShim.preparations(address, InitRequest("blog-posts", options={"table": "posts, lasting"}))
    assert [step.tool for step in steps] == ["aws", "aws", "aws iam", "aws iam"]
    assert steps[0].run is not None
    assert steps[0].run() == "there already, by _apx"
    assert "table/lasting" in steps[3].text
    posts.lab.create_table("prepared", time_to_live=None)
    [step, _] = DynamoDbShim.preparations(address, InitRequest("prepared"))
    assert step.run is not None
    assert step.run() == "enabled"
    antipode_dynamodb.wrap(posts.plain["b1"], store="prepared", tombstones=False)
