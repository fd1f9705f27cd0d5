"""One run: the baseline, then the same with Antipode, on the same servers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from antipode_benchmarks.postnotification.fleet import Fleet
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.load import Batch, Load
from antipode_benchmarks.postnotification.options import BarrierPlace, Options
from antipode_benchmarks.postnotification.report import result
from antipode_benchmarks.postnotification.servers import Servers, prepare_antipode
from antipode_benchmarks.postnotification.statistics import summary


class Run:
    """Runs both phases with a live display."""

    def __init__(
        self,
        options: Options,
        console: Console,
        servers: Servers,
        *,
        title: str = "",
        enforcing: Collection[str] = (),
    ) -> None:
        """`title` names one run of several; its display goes when it has ended. `enforcing`: as a fleet has it."""
        self._options = options
        self._console = console
        self._servers = servers
        self._title = title
        self._enforcing = enforcing

    async def both(self) -> dict[str, Any]:
        """The result of the run; raises RunFailed for any error in any service."""
        started = datetime.now(UTC)
        display = Progress(
            TextColumn("{task.description:<17}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=bool(self._title),
        )
        with display:
            baseline = await self._phase(display, "none")
            antipode = None if self._options.barrier == "none" else await self._phase(display, self._options.barrier)
        return result(self._options, started, baseline, antipode)

    async def _phase(self, display: Progress, barrier: BarrierPlace) -> dict[str, Any]:
        options = self._options
        wrapped = barrier != "none"
        title = f"{self._title} {'with Antipode' if wrapped else 'without Antipode'}".lstrip()
        bar = display.add_task(title, total=options.requests, words="starting the services")

        def show(answered: int, batch: Batch) -> None:
            done = [upload for upload in batch.uploads if upload.post in batch.deliveries]
            failed = sum(batch.violates(upload) for upload in done)
            display.update(bar, completed=len(done), words=f"{answered} uploaded, {failed} violations")

        def warm(answered: int, _: Batch) -> None:
            display.update(bar, words=f"warming up, {answered} of {options.warmup}")

        if wrapped:
            await asyncio.to_thread(prepare_antipode, self._servers.posts)
        posts, queues = self._servers
        async with Fleet(
            options, antipode=wrapped, posts=posts.urls, queues=queues, enforcing=self._enforcing
        ) as fleet:
            load = Load(options, fleet)
            try:
                warmup = await load.run("warmup", options.warmup, warm)
                batch = await load.run("upload", options.requests, show)
                traffic = await load.traffic()
            except RunFailed as error:
                raise RunFailed(f"{title}: {error}\n{fleet.words()}") from error
            finally:
                load.close()
        return summary(options, batch, warmup, traffic, barrier=barrier)
