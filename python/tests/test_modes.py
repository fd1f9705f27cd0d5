"""Dry-run, off, and the records they leave (spec BAR-48, BAR-49, REC)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import jsonschema
import pytest
from antipode import Lineage, UnprovenKind, Verdict, WriteId
from antipode._diagnostics.dryrun import following, records
from antipode._model.verdict import NOT_YET, VISIBLE, unproven
from antipode.testing import isolated
from fakes import Target, always, fake_store

SCHEMA = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    antipode.configure(records=tmp_path)
    return tmp_path


def written_records(folder: Path, kind: str, at_least: int = 1) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 10
    while True:
        assert records.flush()
        lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
        for line in lines:
            jsonschema.validate(line, SCHEMA)
        found = [line for line in lines if line["kind"] == kind]
        if len(found) >= at_least:
            return found
        assert time.monotonic() < deadline, lines


def test_dry_run_waits_for_nothing_and_records_how_long_it_would_have_been(folder: Path) -> None:
    antipode.configure(mode="dry-run", region="b")
    store = antipode.memory.Store("blog-posts", lag=0.2)
    writer, reader = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        began = time.monotonic()
        result = antipode.barrier(timeout=5)
        assert time.monotonic() - began < 0.1
        assert reader.get("k") is None
    assert result.dry_run
    assert str(result).startswith("dry run, nothing was waited for: blog-posts not yet: ")
    assert result.satisfied, "code that asks for it goes on as without a barrier"
    assert not result.complete
    assert result.stores["blog-posts"].verdict is Verdict.NOT_YET
    [record] = written_records(folder, "barrier")
    assert record["region"] == "b"
    assert record["site"].startswith("tests/test_modes.py:")
    [seen] = record["stores"]
    assert seen["verdict"] == "not_yet"
    assert 0.1 < seen["visible_after"] < 5
    assert not record["satisfied"]


def test_dry_run_records_what_was_there_as_visible(folder: Path) -> None:
    antipode.configure(mode="dry-run")
    fake_store("s", Target("s1", always(VISIBLE)))
    antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))]))
    [record] = written_records(folder, "barrier")
    assert record["satisfied"]
    assert record["stores"][0]["verdict"] == "visible"


def test_dry_run_of_one_site(folder: Path) -> None:
    fake_store("s", Target("s1", always(NOT_YET)))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    assert antipode.barrier(lineage, dry_run=True).dry_run
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(lineage, timeout=0.05)


def test_a_job_that_ends_at_once_leaves_its_record(tmp_path: Path) -> None:
    program = """
import antipode, antipode.memory
store = antipode.memory.Store("blog-posts", lag=300)
writer, reader = store.client("a"), store.client("b")
with antipode.scope():
    writer.set("k", "v")
    antipode.barrier()
"""
    environment = os.environ | {"ANTIPODE_MODE": "dry-run", "ANTIPODE_RECORDS": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    found = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    record, _ = found
    assert record["satisfied"] is False
    assert record["stores"][0]["visible_after"] is None, "given up (REC-5)"


def test_code_cannot_undo_the_environments_dry_run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("ANTIPODE_MODE", "dry-run")
    antipode.configure(mode="enforce")
    fake_store("s", Target("s1", always(NOT_YET)))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    assert antipode.barrier(lineage, dry_run=False, timeout=5).dry_run


def test_dry_run_still_refuses_mistakes() -> None:
    antipode.configure(mode="dry-run")
    with pytest.raises(antipode.ConfigurationError):
        antipode.barrier()


def test_published_before_commit_is_a_finding_with_both_sites(folder: Path) -> None:
    """SCOPE-18."""
    antipode.configure(mode="dry-run")
    store = fake_store("posts", Target("s1", always(VISIBLE)))
    with antipode.scope() as scope:
        write = store.begin("k")
        antipode.serialize()
        write.abandon()
        assert not scope.pending
    [record] = written_records(folder, "published_before_commit")
    assert record["store"] == "posts"
    assert record["site"].startswith("tests/test_modes.py:")
    assert record["written_at"].startswith("tests/test_modes.py:")


def test_a_vacuous_barrier_is_a_finding(folder: Path) -> None:
    antipode.configure(mode="dry-run")
    fake_store("s", Target("s1", always(VISIBLE)))
    antipode.barrier(Lineage([WriteId.position("elsewhere", "e", 1)]))
    [record] = written_records(folder, "vacuous")
    assert record["lineage_stores"] == ["elsewhere"]
    assert record["registered"] == ["s"]


def test_a_folder_that_cannot_be_written_never_reaches_the_application(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    antipode.configure(mode="dry-run", records=blocked)
    fake_store("s", Target("s1", always(VISIBLE)))
    before = records._writer.dropped
    assert antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))])).satisfied
    assert records.flush()
    deadline = time.monotonic() + 5
    while records._writer.dropped == before:
        assert time.monotonic() < deadline
        records.flush()


def test_off_passes_everything_through_and_refuses_nothing() -> None:
    antipode.configure(mode="off")
    assert antipode.barrier().satisfied, "no scope and no store, and still no error in an emergency"
    store = antipode.memory.Store("s", lag=30)
    writer, _ = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        assert antipode.serialize() == "1"
        result = antipode.barrier()
        assert not result.complete
    assert str(result) == result.explain() == "switched off (mode=off): nothing was looked at or waited for"


def test_a_store_that_is_off_is_named_and_never_said_to_be_nothing_to_wait_for() -> None:
    """BAR-49: it was not judged, so the result says so."""
    fake_store("off", Target("t1", always(NOT_YET)), mode="off")
    fake_store("kept", Target("k1", always(VISIBLE)))
    off, kept = (WriteId.position(name, "e", 1) for name in ("off", "kept"))
    with antipode.scope(Lineage([off, kept])):
        for _ in range(2):  # the second one by the free path
            result = antipode.barrier()
            assert (result.satisfied, result.complete) == (True, False)
            assert str(result).endswith("kept visible; off switched off (its mode), not looked at")
    alone = antipode.barrier(Lineage([off]))
    assert str(alone).endswith(": off switched off (its mode), not looked at")


def test_the_kill_switch_works_while_barriers_run() -> None:
    store = antipode.memory.Store("s", lag=30)
    writer, _ = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)
        antipode.configure(mode="off")
        antipode.barrier(timeout=0.05)
        antipode.configure(mode="enforce")
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)


def test_one_store_in_dry_run_is_recorded_and_not_waited_for(folder: Path) -> None:
    fake_store("tried", Target("t1", always(NOT_YET)), mode="dry-run")
    fake_store("kept", Target("k1", always(VISIBLE)))
    lineage = Lineage([WriteId(name, "k", antipode.Ordered("", 1)) for name in ("tried", "kept")])
    following.FOLLOW_S, before = 0.05, following.FOLLOW_S  # type: ignore[misc]
    try:
        result = antipode.barrier(lineage, timeout=1)
        [record] = written_records(folder, "barrier")
    finally:
        following.FOLLOW_S = before  # type: ignore[misc]
    assert result.satisfied
    assert not result.complete
    assert result.stores["tried"].verdict is Verdict.NOT_YET
    assert record["stores"][0]["store"] == "tried"
    assert record["stores"][0]["visible_after"] is None


def test_read_or_fallback_reads_here_or_there() -> None:
    """BAR-46."""
    store = antipode.memory.Store("s", lag=0.05)
    a, b = store.client("a"), store.client("b")
    with antipode.scope():
        a.set("k", "v")
        assert antipode.read_or_fallback(lambda: b.get("k"), lambda: b"primary", timeout=2) == b"v"
        store.freeze("b")
        a.set("k", "w")
        assert antipode.read_or_fallback(lambda: b.get("k"), lambda: a.get("k"), timeout=0.05) == b"w"


def test_at_most_so_many_fallbacks_run() -> None:
    antipode.configure(max_fallbacks=1)
    fake_store("s", Target("s1", always(NOT_YET)))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    running, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        running.set()
        assert go_on.wait(10)
        return "primary"

    results: list[str] = []

    def run() -> None:
        results.append(antipode.read_or_fallback(lambda: "here", slow, lineage=lineage, timeout=0.02))

    thread = threading.Thread(target=run)
    thread.start()
    assert running.wait(10)
    with pytest.raises(antipode.BarrierTimeout, match="no fallback"):
        antipode.read_or_fallback(lambda: "here", lambda: "there", lineage=lineage, timeout=0.02)
    go_on.set()
    thread.join(10)
    assert results == ["primary"]
    assert antipode.read_or_fallback(lambda: "here", lambda: "there", lineage=lineage, timeout=0.02) == "there"


async def test_read_or_fallback_for_asyncio() -> None:
    store = antipode.memory.Store("s", lag=0.05)
    a, b = store.client("a"), store.client("b")

    async def here() -> bytes | None:
        return b.get("k")

    async def there() -> bytes | None:
        return b"there"

    with antipode.scope():
        a.set("k", "v")
        assert await antipode.read_or_fallback_async(here, there, timeout=2) == b"v"
        store.freeze("b")
        a.set("k", "w")
        assert await antipode.read_or_fallback_async(here, there, timeout=0.02) == b"there"


def lagging_posts() -> tuple[antipode.memory.Store, Any, Any]:
    store = antipode.memory.Store("posts")
    writer, reader = store.client("a"), store.client("b")
    store.freeze("b")
    writer.set("k", "v")
    return store, writer, reader


def test_the_place_that_is_fallen_back_to_is_judged() -> None:
    """BAR-46: there, too, the write may be missing; and what is read counts for the reading round it."""
    store, writer, _ = lagging_posts()
    with antipode.scope() as scope:
        writer.set("k", "w")
        wanted = scope.lineage
        with antipode.reading() as seen:
            assert antipode.read_or_fallback(lambda: b"here", lambda: writer.get("k"), timeout=0.02) == b"w"
        assert seen.lineage >= wanted
        other = store.client("b")  # a fallback that lags as well
        antipode.configure(timeout=0.05)
        with pytest.raises(antipode.BarrierTimeout, match="wait on read"):
            antipode.read_or_fallback(lambda: b"here", lambda: other.get("k"), timeout=0.02)
        with antipode.scope():  # outside of what was judged nothing waits
            assert other.get("k") is None


@pytest.mark.parametrize("kind", UnprovenKind)
async def test_what_is_unproven_falls_back_only_where_the_call_says_so(kind: UnprovenKind) -> None:
    """BAR-46."""
    fake_store("s", Target("s1", always(unproven("the test says so", kind))))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    asked: list[str] = []

    async def there() -> str:
        asked.append("there")
        return "there"

    with pytest.raises(antipode.BarrierUnproven, match="the test says so"):
        await asyncio.to_thread(antipode.read_or_fallback, lambda: None, lambda: asked.append("there"), lineage=lineage)
    with pytest.raises(antipode.BarrierUnproven, match="the test says so"):
        await antipode.read_or_fallback_async(there, there, lineage=lineage)
    assert not asked
    read = await antipode.read_or_fallback_async(there, there, lineage=lineage, on_unproven="proceed")
    assert (read, asked) == ("there", ["there"])
    with pytest.raises(antipode.ConfigurationError, match="want raise or proceed"):
        antipode.read_or_fallback(lambda: 1, lambda: 2, lineage=lineage, on_unproven="as_timeout")  # type: ignore[arg-type]


def frozen_read() -> tuple[bytes | None, float]:
    """Reads a write of the scope at a frozen replica by a client that waits; the value, and how long it took."""
    store = antipode.memory.Store("posts", regions=("a", "b"))
    writer, reader = store.client("a"), store.client("b", wait_on_read=True)
    store.freeze("b")
    try:
        with antipode.scope():
            writer.set("k", "v")
            began = time.monotonic()
            return reader.get("k"), time.monotonic() - began
    finally:
        store.heal("b")


def test_a_read_of_the_embedded_store_that_waits_obeys_the_mode_and_the_policy() -> None:
    """BAR-48, BAR-50: a double that raised where the real store goes on would hide what dry-run is for."""
    with isolated():
        antipode.configure(timeout=0.2)
        with pytest.raises(antipode.BarrierTimeout, match="wait on read"):
            frozen_read()
    with isolated():
        antipode.configure(timeout=0.2, on_timeout="proceed")
        assert frozen_read()[0] is None
    with isolated():
        antipode.configure(timeout=20, mode="dry-run")
        value, took = frozen_read()
        assert value is None
        assert took < 10, "it only looked"
