"""Runs many pairs of store and notifier one after another, each server started once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from antipode_lab.errors import LabError
from rich.console import Console

from antipode_benchmarks.postnotification.experiments.scale import Scale
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.interruption import raise_if_terminated
from antipode_benchmarks.postnotification.options import Options
from antipode_benchmarks.postnotification.run import Run
from antipode_benchmarks.postnotification.servers import Servers, posts_servers, queue_servers


class Bench:
    """The servers of an experiment, and its runs: `with bench.store(name): bench.run(options)`."""

    def __init__(self, console: Console, scale: Scale) -> None:
        self.scale = scale
        self.failures: dict[str, str] = {}
        """What could not be run, and why."""
        self._console = console
        self._ends = ExitStack()
        self._queues: dict[str, dict[str, str]] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def start(self, notifiers: Sequence[str], places: Collection[str] = ()) -> None:
        """Starts the notifiers' servers, which stay until the end; one that does not start is a failure of its runs.

        `places`: as `queue_servers` has them.
        """
        for name in notifiers:
            options = self.scale.options("memory", name)
            try:
                started = queue_servers(options, self._console, one_broker=True, places=places)
                self._queues[name] = self._ends.enter_context(started)
            except (LabError, RunFailed) as error:
                self.failed(name, error)

    @contextmanager
    def store(self, name: str) -> Iterator[Store]:
        """The servers of one store, for its runs."""
        options = self.scale.options(name, "memory")
        with ExitStack() as ends:
            try:
                place = ends.enter_context(posts_servers(options, self._console))
            except (LabError, RunFailed) as error:
                self.failed(name, error)
                place = None
            yield Store(self, None if place is None else Servers(place, {}))
        raise_if_terminated()  # its result is kept, and the experiment does not look whole

    def queue(self, notifier: str) -> dict[str, str] | None:
        """A notifier's servers; None where they did not start."""
        return self._queues.get(notifier)

    def servers(self, posts: Servers | None, notifier: str) -> Servers | None:
        """A store's servers and a notifier's together; None where one of them did not start."""
        if posts is None or notifier not in self._queues:
            return None
        return Servers(posts.posts, self._queues[notifier])

    def run(self, servers: Servers, options: Options, title: str) -> dict[str, Any] | None:
        """One run's result; None where it failed, which is said at the end. KeyboardInterrupt after a SIGTERM."""
        raise_if_terminated()
        own = self.servers(servers, options.notifier)
        if own is None:
            return None
        try:
            return asyncio.run(Run(options, self._console, own, title=title).both())
        except (RunFailed, LabError) as error:
            self.failed(title, error)
            return None

    def failed(self, what: str, error: Exception) -> None:
        """Notes a failure, and goes on."""
        self.failures[what] = str(error)
        self._console.print(f"{what} failed: {error}", markup=False)


class Store:
    """One store with its servers up."""

    def __init__(self, bench: Bench, servers: Servers | None) -> None:
        self._bench = bench
        self.servers = servers

    def run(self, options: Options, title: str) -> dict[str, Any] | None:
        """One run's result; None where it failed."""
        return None if self.servers is None else self._bench.run(self.servers, options, title)
