"""Dry-run's records of reads of a replica that lags, on MariaDB and MySQL, by all clients (REC)."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import antipode
import pytest
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.dryrun.followed_reads import FollowedRead
from antipode.testing.recorded import DryRunRecording
from sql_regions import Posts, until

pytestmark = pytest.mark.parametrize("client", ["pymysql", "connector", "aio"])


def test_reads_of_a_replica_that_lags_are_found(any_posts: Posts, client: str, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-13: also where a read would wait, which none does here; nothing is asked beside it."""
    reader = any_posts.wrap(any_posts.open(client, "b1", autocommit=True), wait_on_read=True, timeout=30.0)
    recorded, key = DryRunRecording(tmp_path), f"followed-{uuid4().hex}"
    any_posts.lab.partition("b1")
    with antipode.scope(any_posts.write(key)), closing(reader.cursor()) as cursor:
        cursor.execute("SELECT body FROM posts WHERE id = %s", (key,))
        assert not cursor.fetchall()
        cursor.execute("SELECT 1")
        cursor.fetchall()
    assert recorded.count("reads") == recorded.count("followed_reads") == 1
    recorded.looked()
    any_posts.lab.heal("b1")
    [record] = recorded.findings(timeout=30)
    caller = "aio_client" if client == "aio" else "test_followed_reads"  # the loop runs the coroutine
    assert record["site"].startswith(f"tests/{caller}.py:")
    assert (record["kind"], "confirmed" in record) == ("behind", False)
    assert record["visible_after"] > 0
    assert key not in str(recorded.lines())


def test_at_the_end_of_the_process_it_is_behind(any_posts: Posts, client: str, tmp_path: Path) -> None:
    """REC-15."""
    reader = any_posts.wrap(any_posts.open(client, "b1", autocommit=True))
    recorded, key = DryRunRecording(tmp_path), f"end-{uuid4().hex}"
    any_posts.lab.partition("b1")
    try:
        with antipode.scope(any_posts.write(key)), closing(reader.cursor()) as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = %s", (key,))
            assert not cursor.fetchall()
        recorded.looked()
        records.end()
        [record] = recorded.findings()
    finally:
        any_posts.lab.heal("b1")
    assert (record["kind"], record["visible_after"]) == ("behind", None)


def test_the_server_is_looked_at_when_the_reply_has_come(
    any_posts: Posts, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-13: what arrived while the read was under way was there for it. The read waits behind a locked table."""
    reader = any_posts.wrap(any_posts.open(client, "b1", autocommit=True))
    recorded, unlocked, looked = DryRunRecording(tmp_path), threading.Event(), []
    over = FollowedRead.over

    def looking(followed: FollowedRead, *args: Any, **options: Any) -> None:
        looked.append(unlocked.is_set())
        over(followed, *args, **options)

    monkeypatch.setattr(FollowedRead, "over", looking)
    any_posts.lab.run("a", "CREATE TABLE IF NOT EXISTS held (i INT)")
    any_posts.lab.wait_links()
    lineage = any_posts.write(f"held-{uuid4().hex}")

    def read() -> None:
        with antipode.scope(lineage), closing(reader.cursor()) as cursor:
            cursor.execute("SELECT i FROM held")
            assert not cursor.fetchall()

    thread = threading.Thread(target=read)
    with any_posts.lab.client("b1") as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLES held WRITE")
        thread.start()
        waiting = "SELECT 1 FROM information_schema.processlist WHERE info = 'SELECT i FROM held'"
        until(lambda: any_posts.lab.run("b1", waiting))
        unlocked.set()
        cursor.execute("UNLOCK TABLES")
    thread.join(20)
    assert recorded.count("reads") == 1
    assert looked == [True]
