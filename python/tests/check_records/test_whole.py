"""From a service in dry-run to the answer: the command reads what the SDK writes (CHECK-3, CHECK-7, CHECK-11)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode._diagnostics.dryrun import following, records
from commands import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "follower-notify")
    antipode.configure(mode="dry-run", records=tmp_path / "records", region="b")
    return runner(monkeypatch, capsys)


def follow(store: antipode.memory.Store, times: int, region: str) -> None:
    """Posts, and a follower of each in `region`, who asks a barrier."""
    writer = store.client("a")
    store.client(region)
    for number in range(times):
        with antipode.scope():
            writer.set(f"post:{number}", b"hi")
            message = antipode.serialize()
        with antipode.message_scope(message) as scope:
            scope.queue = "notifications"  # what a queue's shim does
            antipode.barrier()


def await_looks() -> None:
    """Dry-run asks the servers in the background."""
    deadline = time.monotonic() + 20
    while not following.all_looked_at():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def answer_of(run: Run, tmp_path: Path) -> tuple[int, dict[str, Any]]:
    await_looks()
    assert records.flush()
    ran = run("check", "--json", str(tmp_path / "records"))
    return ran.code, json.loads(ran.out)


def test_a_barrier_that_would_have_waited_is_found(run: Run, tmp_path: Path) -> None:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0)
    store.freeze("b")
    follow(store, 20, "b")
    await_looks()  # what comes later than the look is none of its answers
    store.heal("b")
    records.end()
    code, answer = answer_of(run, tmp_path)
    assert code == 1
    [found] = answer["findings"]
    assert (found["kind"], found["store"], found["service"]) == ("late", "blog-posts", "follower-notify")
    assert (found["count"], found["of"]) == (20, 20)
    assert found["origin"]["store"] == "notifications"
    assert found["site"].startswith("check_records/test_whole.py:")
    [suggested] = answer["suggestions"]
    assert (suggested["move"], suggested["at"]) == ("enforce_barrier", found["site"])


def test_a_system_without_lag_is_clean(run: Run, tmp_path: Path) -> None:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0)
    follow(store, 20, "a")
    code, answer = answer_of(run, tmp_path)
    assert (code, answer["judged"], answer["findings"]) == (0, 20, [])


def test_what_was_written_nowhere_is_a_doubt(run: Run, tmp_path: Path) -> None:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0)
    store.client("a").set("post:1", b"outside any scope")
    follow(store, 1, "a")
    code, answer = answer_of(run, tmp_path)
    assert (code, [found["kind"] for found in answer["findings"]]) == (2, ["orphan"])
