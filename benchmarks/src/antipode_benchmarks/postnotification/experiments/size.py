"""`size`: by how much objects and messages grow (paper table 3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import antipode
from antipode.testing import isolated
from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.octets import stored
from antipode_benchmarks.postnotification.experiments.paper import TABLE_3
from antipode_benchmarks.postnotification.experiments.report import Report
from antipode_benchmarks.postnotification.options import Options, Setup
from antipode_benchmarks.postnotification.servers import prepare_antipode
from antipode_benchmarks.postnotification.stores import Place, open_posts

DEPENDS = antipode.Lineage([antipode.WriteId.position("user-acl", "8371ab90c2d4e6f1", 8371)])
"""What each post depends on: a write to another store."""
TRACKING = ("activemq", "rabbitmq", "sns")
"""The notifiers whose messages can be writes themselves."""


def run(console: Console, bench: Bench, stores: Sequence[str], notifiers: Sequence[str], path: Path | None) -> int:
    """Measures each, shows and saves it; the exit code."""
    report = Report("size", bench, path)
    bench.start(notifiers)
    for name in stores:
        with bench.store(name) as store:
            if store.servers is not None:
                report.add(asyncio.run(_objects(bench.scale.options(name, "memory"), store.servers.posts)))
            if name == stores[0]:
                for notifier in notifiers:
                    for track in (False, True) if notifier in TRACKING else (False,):
                        title = f"{name} + {notifier}{', tracked' if track else ''}"
                        found = store.run(bench.scale.options(name, notifier, track=track), title)
                        if found is not None:
                            report.add(_messages(found, notifier, track=track))
    saved = report.save()
    table = Table(title=f"octets, without and with Antipode; posts of {bench.scale.size:,} octets")
    for column in ("", "without", "with", "growth", "paper"):
        table.add_column(column, justify="right" if column else "left")
    for row in report.rows:
        papers = TABLE_3.get(row["kind"])
        told = "" if papers is None or row["track"] else f"+{papers:,}"
        table.add_row(row["name"], f"{row['without']:,.1f}", f"{row['with']:,.1f}", f"{row['growth']:+,.1f}", told)
    console.print(table)
    names = [row["name"] for row in report.rows]
    drawn = plot.bars(
        saved.with_suffix(".png"), "Growth", "octets", names, {"octets": [row["growth"] for row in report.rows]}
    )
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    return report.exit_code


def _row(name: str, kind: str, without: float, with_it: float, *, track: bool = False) -> dict[str, Any]:
    growth = round(with_it - without, 1)
    return {"name": name, "kind": kind, "track": track, "without": without, "with": with_it, "growth": growth}


async def _objects(options: Options, place: Place) -> dict[str, Any]:
    """The mean size of a post, written plain and then wrapped, where it depends on a write to another store."""
    plain = Setup(options, antipode=False, addresses={}, posts=place.urls)
    sizes: dict[bool, list[int]] = {False: [], True: []}
    for wrapped, found in sizes.items():
        with isolated():
            if wrapped:
                await asyncio.to_thread(prepare_antipode, place)
            posts = open_posts(replace(plain, antipode=wrapped), "a", None)
            for _ in range(options.requests):
                key = uuid4().hex
                with antipode.scope(DEPENDS):
                    await posts.write(key, os.urandom(options.size))
                found.append(await asyncio.to_thread(stored, plain, key))
    without, with_it = (sum(found) / len(found) for found in sizes.values())
    return _row(f"{options.post_storage}, a post", options.post_storage, round(without, 1), round(with_it, 1))


def _messages(found: dict[str, Any], notifier: str, *, track: bool) -> dict[str, Any]:
    """The mean size of a notification's headers."""
    without, with_it = (found[phase]["bytes"]["message_headers"] for phase in ("baseline", "antipode"))
    return _row(f"{notifier}, a message{', tracked' if track else ''}", notifier, without, with_it, track=track)
