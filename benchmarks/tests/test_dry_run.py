"""Dry-run on post-notification without a barrier: the records name the read, and where a barrier belongs (REC)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMA = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())
REQUESTS = 40


def dry_run(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Runs the services with nobody waiting, every trace followed; what they recorded."""
    command = [sys.executable, "-m", "antipode_benchmarks.postnotification", "--barrier", "nowhere"]
    command += ["--requests", str(REQUESTS), "--warmup", "5", "--rate", "8", "--lag", "900ms,1000ms", *options]
    settings = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_SAMPLE": "1", "ANTIPODE_RECORDS": str(folder / "records")}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 1, f"nobody waits, so followers miss posts:\n{done.stdout}{done.stderr}"
    lines = [line for path in (folder / "records").glob("*.jsonl") for line in path.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    for record in found:
        jsonschema.validate(record, SCHEMA)
    return found


@pytest.mark.parametrize(
    ("stores", "read_at"),
    [
        ((), "stores/memory.py:"),
        pytest.param(("--post-storage", "redis", "--notifier", "http"), "stores/redis.py:", marks=pytest.mark.stores),
    ],
    ids=["memory", "redis"],
)
def test_the_read_the_pair_of_stores_and_the_place_for_a_barrier_are_found(
    tmp_path: Path, stores: tuple[str, ...], read_at: str
) -> None:
    """REC-6, REC-12, REC-18: post-storage reads stale posts; their lineage came through follower-notify's call."""
    found = dry_run(tmp_path, *stores)
    stale = [record for record in found if record["kind"] == "stale"]
    assert len(stale) > REQUESTS / 2
    assert not [record for record in found if record["kind"] in {"published_before_commit", "incomplete", "late_write"}]
    passed = {
        record["trace_id"]: record
        for record in found
        if record["kind"] == "passed_on" and "follower_notify.py:" in record["site"]
    }
    for record in stale:
        assert record["site"].startswith(read_at)
        assert (record["store"], record["confirmed"]) == ("blog-posts", "repeat")
        assert record["origin"] == {"scope": "request", "opened_by": "GET /posts/{post}"}
        assert 0 < record["visible_after"] < 10
        follower = passed[record["trace_id"]]
        if not stores:
            assert follower["origin"]["scope"] == "message"
            assert follower["origin"]["store"] == "notifications"
    [site] = {record["site"] for record in passed.values()}
    assert "/follower_notify.py:" in site
    counted = [count for record in found if record["kind"] == "summary" for count in record["counts"]]
    followed = sum(count["count"] for count in counted if count["what"] == "followed_reads")
    assert followed >= REQUESTS
    assert sum(count["count"] for count in counted if count["what"] == "stale") == len(stale)
