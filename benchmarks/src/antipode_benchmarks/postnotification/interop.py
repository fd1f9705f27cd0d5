"""Services of every language in one application, in all combinations of writer, relay and reader.

One pair of hosts a language, for region A and for region B, serves them all: between two combinations each relay is
told which writer it calls and where it publishes. Three combinations run at a time, in which each relay has a writer
and a reader of its own, so that whatever a reader gets belongs to one combination.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from antipode_benchmarks.postnotification.hosts import Host, Hosts, RunFailed
from antipode_benchmarks.postnotification.load import Batch, Load, first
from antipode_benchmarks.postnotification.options import REGIONS, Language, Options, Setup
from antipode_benchmarks.postnotification.servers import Servers, prepare_antipode

POLL_S = 0.05
WARMUP = 2
"""Uploads by which each relay meets each writer and each reader before anything is counted."""
ROUNDS = 5
"""How often a combination is tried without Antipode: a machine that stops for the lag hides its violations."""


class Combination(NamedTuple):
    """Who does what, and over what."""

    store: str
    notifier: str
    writer: Language
    relay: Language
    reader: Language


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a combination's uploads in one phase."""

    uploads: int
    violations: int
    """Followers that did not get this very post."""
    early: int
    """Followers that were let pass before the slowest replica could have the post."""
    incomplete: int
    """Barriers that left something unjudged."""
    lineages: int
    """Notifications that carried a lineage."""


class Lane(NamedTuple):
    """One of the combinations that run at the same time."""

    relay: Language
    writer: Language
    reader: Language


def steps(languages: Sequence[Language]) -> Iterator[list[Lane]]:
    """All combinations, in steps of one lane a relay, in which no two lanes share a writer or a reader."""
    count = len(languages)
    for writer, reader in product(range(count), repeat=2):
        yield [
            Lane(relay, languages[(place + writer) % count], languages[(place + reader) % count])
            for place, relay in enumerate(languages)
        ]


def place(reader: Language) -> str:
    """The exchange and the queue of a reader's language: each gets only what is meant for it."""
    return f"notifications-{reader}"


def judged(batch: Batch, options: Options) -> Outcome:
    """Counts what went wrong."""
    pairs = [(upload, batch.deliveries[upload.post]) for upload in batch.uploads]
    lag = options.slowest_lag_ms * 1_000_000
    return Outcome(
        len(pairs),
        len(batch.violations),
        sum(delivery.ready_ns < upload.acknowledged_ns - upload.write_ns + lag for upload, delivery in pairs),
        sum(not delivery.complete for _, delivery in pairs),
        sum(delivery.message_lineage_bytes > 0 for _, delivery in pairs),
    )


class _Application:
    """The services of one lane, which change from step to step; the reader, and so its list of deliveries, stays."""

    def __init__(self, hosts: Hosts, reader: Mapping[str, str]) -> None:
        self._hosts = hosts
        self._reader = reader
        self.addresses: dict[str, str] = {}

    def direct(self, relay: Mapping[str, str], writer: Mapping[str, str]) -> None:
        """Makes it that relay's and that writer's."""
        own = {name: relay[name] for name in ("post-upload", "notifier")}
        self.addresses = {**self._reader, **own, "post-storage-a": writer["post-storage-a"]}

    def check(self) -> None:
        """Raises RunFailed where a process has ended."""
        self._hosts.check()


class Phase:
    """All combinations on one store, either without Antipode or with it."""

    def __init__(self, options: Options, servers: Servers, languages: Sequence[Language], *, antipode: bool) -> None:
        self._options = options
        self._servers = servers
        self._languages = languages
        self._antipode = antipode
        self._hosts = Hosts()
        self._relays: dict[Language, Host] = {}
        self._addresses: dict[tuple[Language, str], dict[str, str]] = {}
        self._applications: dict[Language, _Application] = {}
        self._loads: dict[Language, Load] = {}

    async def run(self, notifiers: Sequence[str]) -> dict[Combination, Outcome]:
        """The outcomes of all combinations; raises RunFailed for any error in any service."""
        if self._antipode:
            await asyncio.to_thread(prepare_antipode, self._servers.posts)
        found: dict[Combination, Outcome] = {}
        async with self._hosts:
            try:
                await self._start()
                for notifier in notifiers:
                    for number, lanes in enumerate(steps(self._languages)):
                        # Those of equal places: each relay meets each writer and each reader.
                        if number % (len(self._languages) + 1) == 0:
                            await self._step(notifier, lanes, "warmup", WARMUP)
                    for lanes in steps(self._languages):
                        found |= await self._uploads(notifier, lanes)
            except RunFailed as error:
                title = "with Antipode" if self._antipode else "without Antipode"
                raise RunFailed(f"{title}: {error}\n{self._hosts.words()}") from error
            finally:
                for load in self._loads.values():
                    load.close()
        return found

    def _setup(self, addresses: Mapping[str, str], notifier: str, exchange: str, queue: str) -> Setup:
        options = replace(self._options, notifier=notifier)
        posts, queues = self._servers
        return Setup(options, self._antipode, dict(addresses), posts.urls, queues, exchange, queue)

    async def _start(self) -> None:
        started: list[tuple[Language, str, Host]] = [
            (language, region, await self._hosts.start(language, services))
            for language in self._languages
            for region, services in REGIONS.items()
        ]
        for language, region, host in started:
            self._addresses[language, region] = await host.bound()
            if region == "a":
                self._relays[language] = host
        for language in self._languages:
            self._applications[language] = application = _Application(self._hosts, self._addresses[language, "b"])
            self._loads[language] = Load(self._options, application, POLL_S)
        await asyncio.gather(
            *(
                host.told(self._setup(self._addresses[language, region], "http", place(language), place(language)))
                for language, region, host in started
            )
        )

    async def _uploads(self, notifier: str, lanes: list[Lane]) -> dict[Combination, Outcome]:
        """What is counted: one round; without Antipode the first in which each combination has a violation."""
        outcomes = await self._step(notifier, lanes, "upload", self._options.requests)
        for _ in range(0 if self._antipode else ROUNDS - 1):
            if all(outcome.violations for outcome in outcomes.values()):
                break
            outcomes = await self._step(notifier, lanes, "upload", self._options.requests)
        return outcomes

    async def _step(self, notifier: str, lanes: list[Lane], name: str, count: int) -> dict[Combination, Outcome]:
        async def one(lane: Lane) -> tuple[Combination, Outcome]:
            combination = Combination(self._options.post_storage, notifier, lane.writer, lane.relay, lane.reader)
            application = self._applications[lane.reader]
            application.direct(self._addresses[lane.relay, "a"], self._addresses[lane.writer, "a"])
            setup = self._setup(application.addresses, notifier, place(lane.reader), place(lane.relay))
            try:
                await self._relays[lane.relay].told(setup)
                batch = await self._loads[lane.reader].run(name, count, lambda answered, batch: None)
            except RunFailed as error:
                raise RunFailed(f"{' '.join(combination)}: {error}") from error
            return combination, judged(batch, self._options)

        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(one(lane)) for lane in lanes]
        except* RunFailed as failed:
            raise first(failed) from None
        return dict(task.result() for task in running)


def table(without: Mapping[Combination, Outcome], with_it: Mapping[Combination, Outcome]) -> Table:
    """A row for each writer, relay and reader; what failed with Antipode, and without it, on each store and carrier."""
    over = list(dict.fromkeys((combination.store, combination.notifier) for combination in with_it))
    shown = Table(title="violations with barrier() (and without Antipode) of all uploads")
    for title in ("writer", "relay", "reader"):
        shown.add_column(title)
    for store, notifier in over:
        shown.add_column(f"{store}\n{notifier}", justify="right")
    for writer, relay, reader in dict.fromkeys(combination[2:] for combination in sorted(with_it)):
        cells = []
        for store, notifier in over:
            combination = Combination(store, notifier, writer, relay, reader)
            one = with_it[combination]
            cells.append(f"{one.violations} ({without[combination].violations}) of {one.uploads}")
        shown.add_row(writer, relay, reader, *cells)
    return shown


def save(path: Path, without: Mapping[Combination, Outcome], with_it: Mapping[Combination, Outcome]) -> None:
    """Writes the outcomes: a list of objects, one a combination, with `without` and `with` as `Outcome` has them."""
    rows = [
        {**combination._asdict(), "without": asdict(without[combination]), "with": asdict(outcome)}
        for combination, outcome in with_it.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
