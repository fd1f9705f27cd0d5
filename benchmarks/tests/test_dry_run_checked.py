"""`antipode check` on post-notification's records: what it proposes, and that followed it leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECK = [sys.executable, "-c", "from antipode.cli import main; main()", "check", "--json"]
AS_PROPOSED = ("--barrier", "follower", "--enforce", "follower-notify")
"""The barrier where the check puts it; that service waits, and the others go on looking."""
READERS = [
    ("java", "postnotification/RedisPosts.java:", "postnotification/RabbitNotifications.java:", "/Site.java:"),
    ("cpp", "services/redis_client.cpp:", "services/queue_wrapped.cpp:", "/http.cpp:"),
]
"""Where a reader's services read posts, take messages, and call one another."""
REQUESTS = 40
WARMUP = 5


def dry_run(folder: Path, *options: str, codes: set[int], timeout: float = 150.0) -> None:
    """Runs post-notification in dry-run, every read followed; what is recorded goes to `folder`."""
    folder.mkdir()
    command = [sys.executable, "-m", "antipode_benchmarks.postnotification", *options]
    settings = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_SAMPLE": "1", "ANTIPODE_RECORDS": str(folder / "records")}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr


def checked(folder: Path) -> tuple[int, dict[str, Any]]:
    """The command's exit code and answer."""
    done = subprocess.run([*CHECK, str(folder / "records")], capture_output=True, text=True, timeout=100, check=False)
    assert not done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


def lagged(*options: str) -> tuple[str, ...]:
    return ("--requests", str(REQUESTS), "--warmup", str(WARMUP), "--rate", "8", "--lag", "900ms,1000ms", *options)


def assert_proposed(folder: Path, read_at: str, entered_at: str, passed_on_at: str = "/follower_notify.py:") -> None:
    """CHECK-3, CHECK-9, CHECK-11: the read and its stores, and the barrier where the paper has it."""
    code, answer = checked(folder)
    assert (code, answer["verdict"]) == (1, "violated")
    [stale] = [finding for finding in answer["findings"] if finding["confirmed"]]
    assert (stale["kind"], stale["store"]) == ("stale", "blog-posts")
    assert stale["site"].startswith(read_at)
    assert stale["entry"]["queue"] == "notifications"
    assert stale["of"] >= REQUESTS
    assert stale["count"] > REQUESTS / 2
    [proposed] = answer["suggestions"]
    assert (proposed["move"], proposed["after"]) == ("place_barrier", "notifications")
    assert proposed["at"].startswith(entered_at)
    [before] = proposed["before"]
    assert passed_on_at in before
    assert (proposed["stores"], proposed["prevents"]) == (["blog-posts"], stale["count"])


def assert_none_left(folder: Path, reads: int) -> None:
    """CHECK-8: and not because nobody looked."""
    code, answer = checked(folder)
    assert (code, answer["findings"], answer["suggestions"], answer["doubts"]) == (0, [], [], [])
    assert answer["judged"] >= reads


def test_the_proposal_is_the_papers(tmp_path: Path) -> None:
    dry_run(tmp_path / "one", *lagged("--barrier", "nowhere"), codes={1})
    assert_proposed(tmp_path / "one", "stores/memory.py:", "queues/memory.py:")


def test_followed_it_leaves_nothing(tmp_path: Path) -> None:
    """Each service is a process here, so that one waits while the others are in dry-run."""
    dry_run(tmp_path / "two", *lagged("--post-storage", "redis", "--notifier", "http", *AS_PROPOSED), codes={0})
    assert_none_left(tmp_path / "two", REQUESTS + WARMUP)


@pytest.mark.stores
@pytest.mark.timeout(600)
def test_on_the_same_servers_it_is_found_followed_and_gone(tmp_path: Path) -> None:
    servers = lagged("--post-storage", "redis", "--notifier", "rabbitmq", "--one-broker")
    dry_run(tmp_path / "one", *servers, "--barrier", "nowhere", codes={1}, timeout=280)
    assert_proposed(tmp_path / "one", "stores/redis.py:", "queues/rabbitmq.py:")
    dry_run(tmp_path / "two", *servers, *AS_PROPOSED, codes={0}, timeout=280)
    assert_none_left(tmp_path / "two", REQUESTS + WARMUP)


@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("language", "read_at", "entered_at", "passed_on_at"), READERS)
def test_a_reader_in_another_language_is_found_followed_and_gone(
    tmp_path: Path, language: str, read_at: str, entered_at: str, passed_on_at: str
) -> None:
    """follower-notify and the post-storage that it asks are of that language, the others Python's."""
    servers = lagged("--post-storage", "redis", "--notifier", "rabbitmq", "--one-broker", "--reader", language)
    dry_run(tmp_path / "one", *servers, "--barrier", "nowhere", codes={1}, timeout=280)
    assert_proposed(tmp_path / "one", read_at, entered_at, passed_on_at)
    dry_run(tmp_path / "two", *servers, *AS_PROPOSED, codes={0}, timeout=280)
    assert_none_left(tmp_path / "two", REQUESTS + WARMUP)


@pytest.mark.stores
@pytest.mark.timeout(2400)
def test_of_ten_thousand_requests_with_barriers_none_is_a_finding(tmp_path: Path) -> None:
    """CHECK-8, REC-13: no false alarm."""
    load = ("--requests", "10000", "--rate", "60", "--lag", "30ms,50ms")
    # 3: on a slow machine the baseline may miss none, with so little lag.
    servers = ("--post-storage", "redis", "--notifier", "http")
    dry_run(tmp_path / "long", *servers, *load, *AS_PROPOSED, codes={0, 3}, timeout=2000)
    assert_none_left(tmp_path / "long", 10_000)
