"""Dry-run's records of reads of a replica that lags, on MariaDB and MySQL, by both clients (REC)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import antipode
import pytest
from antipode.testing.recorded import Recorded
from sql_regions import Posts


@pytest.mark.parametrize("client", ["pymysql", "connector"])
def test_reads_of_a_replica_that_lags_are_found(any_posts: Posts, client: str, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-13: also where a read would wait, which none does here; nothing is asked beside it."""
    plain = (any_posts.pymysql if client == "pymysql" else any_posts.connector)("b1", autocommit=True)
    reader = any_posts.wrap(plain, wait_on_read=True, timeout=30.0)
    recorded, key = Recorded(tmp_path), f"followed-{uuid4().hex}"
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
    assert record["site"].startswith("tests/test_followed_reads.py:")
    assert record["visible_after"] > 0
    assert key not in str(recorded.lines())
