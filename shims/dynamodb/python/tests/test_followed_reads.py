"""Dry-run's records of reads: an item that has not come, and one whose older version was read (REC)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import antipode
import pytest
from antipode._model.wire import hashed_key
from antipode.testing.recorded import DryRunRecording
from antipode_dynamodb.hiding import _may_be_in
from antipode_dynamodb.tables import Tables
from botocore.exceptions import ClientError
from dynamodb_regions import STORE, TABLE, Posts, item, key


def test_an_item_that_has_not_come_is_stale_by_a_repeat(posts: Posts, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-14; a query does not say which keys it reads, and is behind."""
    recorded = DryRunRecording(tmp_path)
    posts.lab.partition("b1")
    reader = posts.wrapped["b1"]
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("private-key"))
        assert "Item" not in reader.get_item(TableName=TABLE, Key=key("private-key"))
        assert "Item" not in reader.get_item(TableName=TABLE, Key=key("another"))
        reader.scan(TableName=TABLE)
    assert recorded.count("followed_reads") == 2, "the lineage has no entry of the other item"
    recorded.looked()
    posts.lab.heal()
    got, scanned = recorded.findings(2, timeout=30)
    assert (got["kind"], got["confirmed"], scanned["kind"]) == ("stale", "repeat", "behind")
    assert (got["store"], got["store_kind"]) == (STORE, "dynamodb")
    assert got["site"].startswith("tests/test_followed_reads.py:")
    assert "private-key" not in str(recorded.lines())


def test_an_older_version_is_stale_by_its_own_version(posts: Posts, tmp_path: Path) -> None:
    """REC-14: the item carries it, exactly."""
    posts.write("k")
    assert antipode.barrier(posts.write("k"), timeout=30).satisfied
    recorded = DryRunRecording(tmp_path)
    posts.lab.partition("b1")
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("k"))
        assert "Item" in posts.wrapped["b1"].get_item(TableName=TABLE, Key=key("k"))
    recorded.looked()
    posts.lab.heal()
    [record] = recorded.findings(timeout=30)
    assert (record["kind"], record["confirmed"]) == ("stale", "version")
    assert int(record["seen"]["counter"]) < int(record["wanted"]["counter"])


def test_the_applications_connections_and_time_are_its_own(
    posts: Posts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-13, REC-14: what is read again has a connection of ours, with one attempt and a short deadline."""
    recorded = DryRunRecording(tmp_path)
    posts.lab.partition("b1")
    reader = posts.wrapped["b1"]
    session = reader._endpoint.http_session
    send, sent = session.send, []

    def note(request: Any) -> Any:
        sent.append(request.headers["X-Amz-Target"].decode().rpartition(".")[2])
        return send(request)

    monkeypatch.setattr(session, "send", note)
    with antipode.scope():
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("new"))
        assert "Item" not in reader.get_item(TableName=TABLE, Key=key("new"))
    recorded.looked()
    posts.lab.heal()
    [record] = recorded.findings(timeout=30)
    assert (record["kind"], record["confirmed"]) == ("stale", "repeat")
    assert sent.count("GetItem") == 1


def test_a_table_that_may_not_be_asked_for_is_not_asked_for_more_often(
    posts: Posts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-13: what follows a read asks nothing in the application's thread."""
    asked: list[str] = []

    def denied(self: Tables, name: str) -> Any:
        asked.append(name)
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeTable")

    reader = posts.wrapped["b1"]
    lineage = posts.write("k")
    monkeypatch.setattr(Tables, "_ask", denied)
    monkeypatch.setattr(reader._antipode.tables, "_known", {})

    def times() -> int:
        asked.clear()
        with antipode.scope(lineage):
            reader.get_item(TableName=TABLE, Key=key("k"))
        return len(asked)

    plain = times()
    DryRunRecording(tmp_path)
    assert times() == plain


def test_a_query_is_of_one_table(posts: Posts) -> None:
    """REC-13: entries of other tables are none of those that it reads."""
    [entry] = posts.write("k").of_store(STORE)
    asked = [_may_be_in(table, key) for key in (entry.key, hashed_key(entry.key)) for table in (TABLE, "another")]
    assert asked == [True, False, True, True]
