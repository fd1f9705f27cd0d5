"""PartiQL's comments and literals are no words of a statement (SHIM-43)."""

from __future__ import annotations

import time

import antipode
import pytest
from antipode_dynamodb.statements import reads_index
from dynamodb_regions import Posts, requests_of


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT * FROM "t"."i"',
        "select * from t . i WHERE a = 1",
        "SELECT * FROM /* c */ t -- x\n.i",
        'SELECT * FROM t-- c\n . "i"',
        'SELECT * FROM "a--b"."i"',
        'SELECT * FROM "a""b" /**/ . /* . */ "i"',
        "SELECT * FROM t-1.i-2",
        "EXISTS(SELECT * FROM t.i WHERE a = 'x')",
    ],
)
def test_an_index_is_read(statement: str) -> None:
    assert reads_index(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE a = 'x FROM t.i'",
        "SELECT * FROM t WHERE a = 'it''s' AND b = ' FROM t.i'",
        "SELECT * FROM t /* FROM t.i */",
        "SELECT * FROM t -- FROM t.i",
        'SELECT "x FROM t.i" FROM t',
        "SELECT `FROM t.i` FROM t",
        "SELECT * FROM t WHERE a.b = 1",
        "SELECT a.b FROM t",
        "",
    ],
)
def test_no_index_is_read(statement: str) -> None:
    assert not reads_index(statement)


@pytest.mark.parametrize(
    "text", ["/*", "'", '"', "`", "FROM ", "FROM a", "-", "/*a*/", "FROM t.", "FROM 't", "/*'\"", "FROM \n"]
)
def test_hostile_text_takes_time_in_proportion(text: str) -> None:
    """SHIM-43: quadratic time would be hours."""
    began = time.monotonic()
    reads_index(text * 200_000)
    assert time.monotonic() - began < 20


def test_a_comment_does_not_make_a_read_an_indexs(posts: Posts) -> None:
    """SHIM-12, SHIM-43: it stays strongly consistent, and shows nothing that was deleted."""
    client = posts.wrap("a", tables=["sorted"], consistent_reads="always")
    with antipode.scope():
        client.put_item(TableName="sorted", Item={"who": {"S": "deleter"}, "when": {"N": "1"}, "v": {"S": "x"}})
        client.delete_item(TableName="sorted", Key={"who": {"S": "deleter"}, "when": {"N": "1"}})
    with requests_of(client) as sent:
        found = client.execute_statement(Statement="SELECT v FROM \"sorted\" /* FROM s.i */ WHERE who = 'deleter'")
    assert found["Items"] == []
    assert sent[0][1]["ConsistentRead"] is True
    with requests_of(client) as sent:
        found = client.execute_statement(Statement="SELECT v FROM \"sorted\" WHERE who = 'FROM s.i'")
    assert sent[0][1]["ConsistentRead"] is True


def test_a_comment_does_not_hide_that_an_index_is_read(posts: Posts) -> None:
    """SHIM-2: the application's statement is not spoilt."""
    client = posts.wrap("a", tables=["sorted"])
    with antipode.scope():
        thing = {"who": {"S": "you"}, "when": {"N": "1"}, "kind": {"S": "k"}}
        client.put_item(TableName="sorted", Item=thing)
    text = 'SELECT * FROM "sorted" -- by kind\n . "by-kind" WHERE kind = \'k\''
    with requests_of(client) as sent:
        assert client.execute_statement(Statement=text)["Items"] == [thing]
    assert sent[0][1]["Statement"] == text
    assert "ConsistentRead" not in sent[0][1]
