"""An experiment's result: as JSON, and its verdict."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.report import FAILED, OK, VIOLATED, machine

SCHEMA_VERSION = 1


class Report:
    """Gathers an experiment's rows, and writes them: at once and with each row, so that an interruption loses none.

    `path` is where the result goes, in place of an older one; without it that is made of the name and the time.
    """

    def __init__(self, name: str, bench: Bench, path: Path | None) -> None:
        self.name = name
        self.rows: list[dict[str, Any]] = []
        self._bench = bench
        self._started = datetime.now(UTC)
        stamp = self._started.strftime("%Y%m%dT%H%M%SZ")
        self._path = path or Path("results") / f"postnotification-{name}-{stamp}.json"
        self._write(complete=False)

    @property
    def exit_code(self) -> int:
        """0; 1 with violations or early passes under Antipode; 4 where a run failed."""
        if any(wrong(row) for row in self.rows):
            return VIOLATED
        return FAILED if self._bench.failures or not self.rows else OK

    def add(self, row: dict[str, Any]) -> None:
        """One run more."""
        self.rows.append(row)
        self._write(complete=False)

    def save(self) -> Path:
        """Writes the whole result; where to."""
        return self._write(complete=True)

    def _write(self, *, complete: bool) -> Path:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        found = {
            "benchmark": f"postnotification-{self.name}",
            "schema": SCHEMA_VERSION,
            "started": self._started.isoformat(timespec="seconds"),
            "duration_s": round((datetime.now(UTC) - self._started).total_seconds(), 1),
            "antipode_version": version("antipode-sdk"),
            "machine": machine(),
            "scale": asdict(self._bench.scale),
            "complete": complete,
            "rows": self.rows,
            "failures": self._bench.failures,
            "exit_code": self.exit_code,
        }
        part = self._path.with_name(self._path.name + ".part")
        part.write_text(json.dumps(found, indent=2) + "\n")
        part.replace(self._path)  # an interruption finds the last result or this one
        return self._path


def wrong(row: dict[str, Any]) -> bool:
    """Whether a run with Antipode let somebody read too early, or left something unjudged."""
    phase = row.get("antipode")
    if phase is None:
        return False
    return bool(
        phase["violations"] or phase["warmup"]["violations"] or phase["early_passes"] or phase["incomplete_barriers"]
    )
