"""The result as tables for people, as JSON for programs, and as a verdict."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.options import Options

SCHEMA_VERSION = 1
OK, VIOLATED, NO_EFFECT, FAILED, INTERRUPTED = 0, 1, 3, 4, 130
"""Exit codes: as expected; violations (or lineages in the baseline); the baseline shows none; the run failed; ended."""


def result(
    options: Options, started: datetime, baseline: dict[str, Any], antipode: dict[str, Any] | None
) -> dict[str, Any]:
    """The whole result; its fields are documented in benchmarks/postnotification.md and in the schema."""
    code, reasons = verdict(baseline, antipode)
    return {
        "benchmark": "postnotification",
        "schema": SCHEMA_VERSION,
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "antipode_version": version("antipode-sdk"),
        "machine": machine(),
        "post_storage": options.post_storage,
        "notifier": options.notifier,
        "languages": {"writer": options.writer, "relay": options.relay, "reader": options.reader},
        "barrier": options.barrier,
        "requests": options.requests,
        "rate_per_s": options.rate,
        "post_bytes": options.size,
        "replica_lags_ms": options.replicas,
        "queue_lag_ms": options.queue_lag_ms,
        "notification_delay_ms": options.delay_ms,
        "baseline": baseline,
        "antipode": antipode,
        "consistency_window_ms": (antipode or baseline)["consistency_window_ms"],
        "exit_code": code,
        "reasons": reasons,
    }


def machine() -> dict[str, Any]:
    """What it was run on."""
    return {"cpus": os.cpu_count() or 0, "system": platform.platform(), "python": platform.python_version()}


def verdict(baseline: dict[str, Any], antipode: dict[str, Any] | None) -> tuple[int, list[str]]:
    """The exit code, and in sentences why it is not 0."""
    reasons: list[str] = []
    code = OK
    if baseline["violations"] == 0:
        code = NO_EFFECT
        reasons.append("the baseline shows no violation: these lags show nothing about Antipode")
    if baseline["bytes"]["lineage_of_all_messages"]:
        code = VIOLATED
        reasons.append("the baseline carried lineages: it is none")
    if antipode is not None:
        failed = antipode["violations"] + antipode["warmup"]["violations"]
        if failed:
            code = VIOLATED
            reasons.append(f"{failed} violations with Antipode, the warm-up included")
        if antipode["early_passes"]:
            code = VIOLATED
            reasons.append(f"{antipode['early_passes']} passes came before the data could be there")
        if antipode["incomplete_barriers"]:
            code = VIOLATED
            reasons.append(f"{antipode['incomplete_barriers']} barriers left something unjudged")
    return code, reasons


def save(found: dict[str, Any], path: Path) -> None:
    """Writes the result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")


_PLACES = {
    "follower": "barrier in follower-notify",
    "wait-on-read": "wait on read in post-storage",
    "nowhere": "nobody waits",
}


def show(console: Console, options: Options, found: dict[str, Any]) -> None:
    """Prints the result's tables and its verdict."""
    baseline, antipode = found["baseline"], found["antipode"]
    phases = [baseline] if antipode is None else [baseline, antipode]
    table = Table(title=f"post-notification: {options.post_storage} + {options.notifier}, {options.requests} requests")
    table.add_column("")
    table.add_column("without Antipode", justify="right")
    if antipode is not None:
        place = _PLACES[options.barrier]
        table.add_column(f"with Antipode\n{place}", justify="right")

    def row(name: str, *cells: str, style: str | None = None) -> None:
        table.add_row(name, *cells[: len(phases)], style=style)

    row(
        "violations: the follower did not find the post",
        *(f"{phase['violations']:,} of {phase['requests']:,} ({phase['violations_percent']:g} %)" for phase in phases),
        style="bold",
    )
    for title, name in (
        ("consistency window, ms: p50 / p90 / p99", "consistency_window_ms"),
        ("  the notification's part of it", "notification_ms"),
        ("  the barrier's part of it", "barrier_ms"),
        ("read by way of post-storage, ms", "read_ms"),
        ("writer latency (upload), ms", "writer_latency_ms"),
        ("write to the store, ms", "store_write_ms"),
    ):
        row(title, *(_percentiles(phase[name]) for phase in phases))
    row("throughput, uploads/s", *(f"{phase['throughput_per_s']:.1f}" for phase in phases))
    row("message headers, octets (lineage)", *(_octets(phase["bytes"], "message") for phase in phases))
    row("request headers, octets (lineage)", *(_octets(phase["bytes"], "request") for phase in phases))
    row("response headers, octets (lineage)", *(_octets(phase["bytes"], "response") for phase in phases))
    console.print(table)
    console.print(
        "A post is written in region A, then a message about it; whoever gets that in region B reads the post there.\n"
        "Consistency window: from the writer's acknowledgement until the post is read, with Antipode once it is there."
    )
    lags = ", ".join(f"{name} {lag} ms" for name, lag in options.replicas.items())
    if {options.writer, options.relay, options.reader} != {"python"}:
        console.print(f"Languages: writer {options.writer}, relay {options.relay}, reader {options.reader}.")
    console.print(f"Lag of the replicas in region B: {lags}; of the queue: {options.queue_lag_ms} ms.")
    if antipode is not None:
        which = "the slowest replica" if options.barrier == "follower" else "the replica that is read"
        over = antipode["window_over_lag_ms"]["p50"]
        console.print(f"Consistency window beyond the lag of {which}: median {over:+.1f} ms.")
    for reason in found["reasons"]:
        console.print(f"FAILED: {reason}", style="bold red", highlight=False)


def _percentiles(values: dict[str, float] | None) -> str:
    if values is None:
        return "-"
    return f"{values['p50']:.1f} / {values['p90']:.1f} / {values['p99']:.1f}"


def _octets(values: dict[str, float], what: str) -> str:
    return f"{values[what + '_headers']:.0f} ({values[what + '_lineage']:.0f})"
