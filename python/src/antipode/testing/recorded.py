"""What dry-run has recorded, for tests of shims and services: waited for, never slept for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antipode._diagnostics.dryrun import counts, following, records, repeats
from antipode._facade.configuration import configure


class DryRunRecording:
    """Dry-run into a folder, with every read followed; what came of it."""

    def __init__(self, folder: Path, *, sample: float = 1.0) -> None:
        """Switches dry-run on, in a test that isolates Antipode (`antipode_isolated`)."""
        self._folder = folder
        configure(mode="dry-run", records=folder, sample=sample)
        counts.reset()

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        """The records so far of these kinds, or all."""
        assert records.flush()
        lines = [line for path in self._folder.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
        found = [json.loads(line) for line in lines]
        return [line for line in found if not kinds or line["kind"] in kinds]

    def count(self, what: str) -> int:
        """How many there were of what summaries count."""
        return sum(count for counted, count in counts.snapshot().items() if counted.what == what)

    def looked(self, timeout: float = 15.0) -> None:
        """Waits until each read that is followed has been looked at: what comes after that is too late for it."""
        _wait_for(following.all_looked_at, timeout, "a server did not answer")

    def ended(self, timeout: float = 15.0) -> None:
        """Waits until nothing is followed any more: each read has the record that it gets, or gets none."""
        _wait_for(following.nothing_is_followed, timeout, "something is followed still")
        _wait_for(repeats.nothing_waits, timeout, "something is to be read again")

    def findings(self, count: int = 1, timeout: float = 15.0) -> list[dict[str, Any]]:
        """Waits for so many reads that were behind or stale, and returns them in the order of the reads."""
        deadline = time.monotonic() + timeout
        while len(found := self.lines("behind", "stale")) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} findings came: {found}"
            time.sleep(0.005)
        assert len(found) == count, found
        return sorted(found, key=lambda line: float(line["time"]))


def _wait_for(holds: Callable[[], bool], timeout: float, otherwise: str) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.005)
