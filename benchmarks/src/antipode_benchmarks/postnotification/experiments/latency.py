"""`latency`: what a write costs its writer, and how soon after a write is visible its barrier is over, on each store.

Plain and wrapped clients write by turns, in one process: whatever else the machine does meets both. Where a post is
visible, another process sees, which reads it over and over.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import uuid4

import antipode
from antipode._base.settings import settings
from antipode.testing import isolated
from rich.console import Console
from rich.table import Table

from antipode_benchmarks.micro.figures import rank
from antipode_benchmarks.postnotification import queues
from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.overhead import estimate
from antipode_benchmarks.postnotification.experiments.report import Report
from antipode_benchmarks.postnotification.experiments.size import DEPENDS, TRACKING
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.options import Options, Setup
from antipode_benchmarks.postnotification.servers import prepare_antipode
from antipode_benchmarks.postnotification.stores import Place, Posts, module_of, open_posts
from antipode_benchmarks.postnotification.stores._blocking import BlockingPosts

WARM: Final = 30
"""Writes of each way, and barriers, before those that count."""
SEEN_TIMEOUT_S: Final = 30.0

Write = Callable[..., Awaitable[None] | None]
"""Takes a body, and of a store the post's key where that matters."""


def run(console: Console, bench: Bench, stores: Sequence[str], notifiers: Sequence[str], path: Path | None) -> int:
    """Measures each, shows and saves it; the exit code."""
    report = Report("latency", bench, path)
    for name in stores:
        with bench.store(name) as store:
            if store.servers is not None:
                options = bench.scale.options(name, "memory")
                try:
                    report.add(asyncio.run(_store(options, store.servers.posts)))
                except RunFailed as error:
                    bench.failed(name, error)
    for name in notifiers:
        bench.start([name])
        found = bench.queue(name)
        for track in (False, True) if name in TRACKING else (False,):
            if found is not None:
                options = bench.scale.options("memory", name, track=track)
                report.add(asyncio.run(_queue(options, found)))
    saved = report.save()
    _show(console, report.rows)
    drawn = plot.bars(
        saved.with_suffix(".png"),
        "A write through the wrapped client, times that of the plain one",
        "times",
        [row["name"] for row in report.rows],
        {"times": [row["ratio"]["median"] for row in report.rows]},
        shape="{:.2f}",
    )
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    return report.exit_code


async def _store(options: Options, place: Place) -> dict[str, Any]:
    plain = Setup(options, antipode=False, addresses={}, posts=place.urls)
    wrapped = replace(plain, antipode=True)
    with isolated():
        await asyncio.to_thread(prepare_antipode, place)
        ours, theirs = (_writer(open_posts(setup, "a", None)) for setup in (wrapped, plain))
        row = await _by_turns(options, ours, theirs)
    with isolated():
        module_of(options.post_storage).register(wrapped)
        ours = _writer(open_posts(wrapped, "a", None))
        wake_up = [each async for each in _wake_ups(options, plain, ours)]
    return {
        "name": options.post_storage,
        **row,
        "wake_up_ms": {f"p{share}": round(rank(wake_up, share / 100), 3) for share in (50, 90, 99)},
        "poll_ms": settings().poll * 1000,
    }


async def _queue(options: Options, urls: dict[str, str]) -> dict[str, Any]:
    plain = Setup(options, antipode=False, addresses={}, queues=urls)
    module = queues.module_of(options.notifier)
    with isolated():
        ours, theirs = (module.open_notifications(setup) for setup in (replace(plain, antipode=True), plain))
        row = await _by_turns(options, lambda body: ours.publish({}, body), lambda body: theirs.publish({}, body))
    return {"name": f"{options.notifier}{', tracked' if options.track else ''}", **row}


def _writer(posts: Posts) -> Write:
    """Writes a post at the primary; where the client blocks in this thread, for a change of threads is not measured."""
    if isinstance(posts, BlockingPosts):
        client = posts.connect(posts.setup.posts["a"])
        return lambda body, key="": posts.put(client, key or uuid4().hex, body)
    return lambda body, key="": posts.write(key or uuid4().hex, body)


async def _by_turns(options: Options, ours: Write, theirs: Write) -> dict[str, Any]:
    """Both ways' times of a write; the order changes each time."""
    times: dict[Write, list[float]] = {ours: [], theirs: []}
    for number in range(WARM + options.requests):
        for write in (ours, theirs) if number % 2 else (theirs, ours):
            body = os.urandom(options.size).hex().encode()[: options.size]  # a text, as SNS wants it
            with antipode.scope(DEPENDS):
                begun = time.perf_counter_ns()
                done = write(body)
                if inspect.isawaitable(done):
                    await done
                took = (time.perf_counter_ns() - begun) / 1e6
            if number >= WARM:
                times[write].append(took)
    return {
        "without_ms": round(median(times[theirs]), 3),
        "with_ms": round(median(times[ours]), 3),
        "ratio": estimate([one / other for one, other in zip(times[ours], times[theirs], strict=True)]),
    }


async def _wake_ups(options: Options, plain: Setup, write: Write) -> AsyncIterator[float]:
    """How long after the replica has shown a post to a reader its barrier was over, in ms."""
    with _watcher(plain) as watcher:
        for number in range(WARM + options.requests // 2):
            key = uuid4().hex
            with antipode.scope() as scope:
                done = write(os.urandom(options.size), key)
                if inspect.isawaitable(done):
                    await done
                watcher.send(key)
                await antipode.barrier_async(timeout=options.timeout)
                over = time.monotonic_ns()
                assert scope.lineage
            if not await asyncio.to_thread(watcher.poll, SEEN_TIMEOUT_S):
                raise RunFailed(f"{options.post_storage}: a post that its barrier has waited for was never seen")
            if number >= WARM:
                yield (over - watcher.recv()) / 1e6
            else:
                watcher.recv()


@contextmanager
def _watcher(plain: Setup) -> Iterator[Connection]:
    """A process that is sent keys, and says of each when it was there."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_watch, args=(plain.to_json(), there), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(SEEN_TIMEOUT_S):
            raise RunFailed("the process that reads did not start")
        here.recv()
        yield here
    finally:
        here.close()
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def _watch(setup: str, keys: Connection) -> None:
    plain = Setup.from_json(setup)
    posts = open_posts(plain, "b", None)

    async def watch() -> None:
        keys.send(None)
        while True:
            key = await asyncio.to_thread(keys.recv)
            until = time.monotonic() + SEEN_TIMEOUT_S
            while (await _read(key)) is None and time.monotonic() < until:
                pass
            keys.send(time.monotonic_ns())

    async def _read(key: str) -> bytes | None:
        if isinstance(posts, BlockingPosts):
            return posts._read("b1", key)
        return (await posts.read(key))[0]

    try:
        asyncio.run(watch())
    except (EOFError, OSError):
        return  # whoever asked has gone


def _show(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    table = Table(title="ms, medians; times: of pairs, with 95 % of confidence; wake-up after a reader saw it")
    for column in ("", "plain", "wrapped", "times", "wake-up p50 / p90 / p99", "poll interval"):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        ratio, woken = row["ratio"], row.get("wake_up_ms")
        table.add_row(
            row["name"],
            f"{row['without_ms']:.2f}",
            f"{row['with_ms']:.2f}",
            f"{ratio['median']:.2f} ({ratio['from']:.2f} to {ratio['to']:.2f})",
            " / ".join(f"{woken[share]:.1f}" for share in ("p50", "p90", "p99")) if woken else "",
            f"{row['poll_ms']:g}" if woken else "",
        )
    console.print(table)
