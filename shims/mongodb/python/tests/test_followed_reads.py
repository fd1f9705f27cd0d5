"""Dry-run's records of reads of a server that lags, by cursors and by commands (REC)."""

from __future__ import annotations

from pathlib import Path

import antipode
from antipode.testing.recorded import Recorded
from mongodb_regions import DATABASE, STORE, Posts


def test_reads_of_a_server_that_lags_are_found(posts: Posts, name: str, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-13: nothing waits, also where a read would."""
    reader = posts.wrap(posts.lab.client("b1"), wait_on_read=True, timeout=30.0)[DATABASE]["posts"]
    recorded = Recorded(tmp_path)
    posts.lab.partition("b1")
    with antipode.scope():
        posts.posts.insert_one({"_id": name, "v": 1})
        assert reader.find_one({"_id": name}) is None
        assert reader.count_documents({"_id": name}) == 0
    recorded.looked()
    assert recorded.count("followed_reads") == 2
    posts.lab.heal("b1")
    for record in recorded.findings(2, timeout=30):
        assert (record["store"], record["store_kind"]) == (STORE, "mongodb")
        assert record["site"].startswith("tests/test_followed_reads.py:")
        assert record["visible_after"] > 0
    assert name not in str(recorded.lines())
