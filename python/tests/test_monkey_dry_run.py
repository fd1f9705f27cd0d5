"""Monkey mode in dry-run: what is only recorded or read again leaves the replica as it is (spec MONKEY)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode.memory import StaleRead, Store
from antipode.testing.recorded import DryRunRecording


@pytest.mark.parametrize("versions", ["position", "object", "opaque"])
def test_a_barrier_applies_nothing_of_what_is_only_recorded(versions: Any) -> None:
    """What dry-run follows at the same replica is nobody's wait (MONKEY-5, MONKEY-6)."""
    store = Store("s", versions=versions, monkey=lambda read: read.most)
    a = store.client("a")
    store.register("b")
    with antipode.scope() as awaited:
        a.set("k", "1")
    with antipode.scope():
        a.set("later", "1")
        antipode.barrier(dry_run=True)
    assert antipode.barrier(awaited.lineage, timeout=10).satisfied
    assert store.look("b", "k") == b"1"
    assert store.look("b", "later") is None


def test_what_dry_run_reads_again_chooses_nothing(tmp_path: Path) -> None:
    """The same calls have the same answers, however many of them are followed (MONKEY-6, MONKEY-8)."""
    reads: list[StaleRead] = []

    def choose(read: StaleRead) -> int:
        reads.append(read)
        return 1

    recorded = DryRunRecording(tmp_path)
    store = Store("s", monkey=choose)
    a, b = store.client("a"), store.client("b")
    with antipode.scope():
        a.set("k", "1")
        assert b.get("k") is None
        recorded.looked()
        store.put("k", "2")
        assert b.get("k") == b"1"
    [found] = recorded.findings()
    assert (found["kind"], found["confirmed"]) == ("stale", "repeat")
    assert len(reads) == 2
    assert store.look("b", "k") == b"1"
