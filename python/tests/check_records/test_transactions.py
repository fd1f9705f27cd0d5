"""A message that is published inside a transaction, from the service in dry-run to the answer (SCOPE-18, CHECK-3)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode._diagnostics.dryrun import records
from antipode._model.write_id import Ordered
from commands import Run, runner
from scopes import positions

ORDERS = "orders"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "order-upload")
    antipode.configure(mode="dry-run", records=tmp_path / "records", region="a")
    return runner(monkeypatch, capsys)


def site(line_of: str) -> str:
    """Where a line of this file is, as records have it."""
    lines = Path(__file__).read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if line.strip().endswith(f"# {line_of}")]
    return f"check_records/{Path(__file__).name}:{number}"


def upload(times: int, *, inside: bool) -> list[str | None]:
    """Orders that are written in a transaction, and a message about each; inside of it or behind its commit."""
    orders = positions(ORDERS)
    sent: list[str | None] = []
    for number in range(times):
        with antipode.scope():
            with orders.writing() as write:  # the insert
                message = antipode.serialize() if inside else None  # the publish
                write.record(Ordered("e", number + 1))
            sent.append(message or antipode.serialize())
    return sent


def recorded(tmp_path: Path) -> str:
    """All that is on disk by now."""
    assert records.flush()
    return "".join(path.read_text() for path in (tmp_path / "records").glob("*.jsonl"))


def answer_of(run: Run, tmp_path: Path) -> tuple[int, dict[str, Any]]:
    records.end()
    ran = run("check", "--json", str(tmp_path / "records"))
    return ran.code, json.loads(ran.out)


def test_a_publish_inside_a_transaction_is_found_and_named_as_such(run: Run, tmp_path: Path) -> None:
    """CHECK-3, CHECK-11."""
    upload(7, inside=True)
    code, answer = answer_of(run, tmp_path)
    assert code == 1
    [found] = answer["findings"]
    assert (found["kind"], found["service"], found["store"]) == ("published_before_commit", "order-upload", ORDERS)
    assert (found["site"], found["written_at"]) == (site("the publish"), site("the insert"))
    assert found["count"] == 7
    assert "before the commit of orders" in found["sentence"]
    [proposed] = answer["suggestions"]
    assert (proposed["move"], proposed["at"], proposed["prevents"]) == ("publish_after_commit", found["site"], 7)
    assert "publishes before the commit of orders" in run("check", str(tmp_path / "records")).out


def test_published_behind_the_commit_it_is_gone(run: Run, tmp_path: Path) -> None:
    """CHECK-8; a barrier of the same service is judged, as otherwise nobody could tell."""
    posts = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0)
    upload(7, inside=False)
    with antipode.scope():
        posts.client("a").set("post:1", b"hi")
        antipode.barrier(stores=["blog-posts"])
    deadline = time.monotonic() + 20
    while '"barrier"' not in recorded(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)  # its servers are asked in the background
    code, answer = answer_of(run, tmp_path)
    assert (code, [finding["sentence"] for finding in answer["findings"]]) == (0, [])
