"""Writer, relay and reader in every combination of languages, on real servers: benchmarks/services.md.

The lineage gets to the relay only by the response of the writer, and to the reader only by the relay's request or
message: so each combination shows the writing of one language, the propagation of another and the barrier of a third.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import cast

import pytest
from antipode_benchmarks.postnotification.hosts import RunFailed, command
from antipode_benchmarks.postnotification.interop import Combination, Outcome, Phase, place, save, steps, table
from antipode_benchmarks.postnotification.options import SHARED_NOTIFIERS, SHARED_STORES, Language, Options
from antipode_benchmarks.postnotification.servers import Servers, servers
from antipode_lab import Lab
from rich.console import Console
from test_postnotification import check, run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

LANGUAGES = cast("list[Language]", os.environ.get("INTEROP_LANGUAGES", "python java cpp").split())
"""Fewer for who works at one of them; `make test` has all."""
UPLOADS = 5
RESULT = Path("results/interop.json")
WAYS = list(product(LANGUAGES, repeat=3))


def options_of(store: str) -> Options:
    """Lags that are long beside all that a notification does, also on a machine that does other work."""
    return Options(
        post_storage=store,
        notifier="http",
        requests=UPLOADS,
        rate=25,
        lags_ms=(500, 600),
        timeout=20,
        consumers=UPLOADS,
    )


class Outcomes:
    """What came of each store's combinations; a store is run when it is first asked for."""

    def __init__(self, queues: dict[str, str]) -> None:
        self._queues = queues
        self.without: dict[Combination, Outcome] = {}
        self.with_it: dict[Combination, Outcome] = {}
        self._failed: dict[str, RunFailed] = {}

    def of(self, store: str) -> None:
        """Runs a store's combinations where that has not been done; raises RunFailed where it went wrong, each time."""
        if store in self._failed:
            raise self._failed[store]
        if not any(combination.store == store for combination in self.with_it):
            try:
                self._run(store)
            except RunFailed as error:
                self._failed[store] = error
                raise

    def _run(self, store: str) -> None:
        options = options_of(store)
        with servers(options, Console(quiet=True)) as started:
            both = [
                asyncio.run(
                    Phase(options, Servers(started.posts, self._queues), LANGUAGES, antipode=antipode).run(
                        SHARED_NOTIFIERS
                    )
                )
                for antipode in (False, True)
            ]
        self.without |= both[0]
        self.with_it |= both[1]


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> Iterator[Outcomes]:
    """All outcomes, with one broker for both stores; the table is printed and the result kept at the end."""
    for language in LANGUAGES:
        command(language)  # built, or an error that says how
    names = {place(language): "fanout" for language in LANGUAGES}
    settings = {"exchanges": names, "queues": {name: name for name in names}, "one_broker": True}
    with Lab("rabbitmq", options={"rabbitmq": settings}, replicas=1, lag=0.01, queue_lag=0.01) as lab:
        found = Outcomes({name: server.url for name, server in lab.endpoints.stores["rabbitmq"].servers.items()})
        yield found
    if found.with_it:
        save(RESULT, found.without, found.with_it)
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print()
            Console(width=120).print(table(found.without, found.with_it))
            print(f"result: {RESULT}")


def test_the_command_with_services_of_several_languages(tmp_path: Path) -> None:
    """What `make demo WRITER=java READER=cpp` runs: a table of services in three languages."""
    code, output, result = run(
        tmp_path,
        *("--writer", LANGUAGES[len(LANGUAGES) // 2], "--reader", LANGUAGES[-1]),
        *("--post-storage", "redis", "--notifier", "http"),
        *("--lag", "900ms,1000ms", "--timeout", "20s", "--requests", "10", "--rate", "5", "--warmup", "6"),
        timeout=600,
    )
    assert code == 0, output
    check(result, 10)


def test_the_steps_have_every_combination_once_and_share_no_service() -> None:
    """What a reader gets in a step is of one combination."""
    every = [lane for lanes in steps(LANGUAGES) for lane in lanes]
    assert sorted(every) == sorted(WAYS)
    for lanes in steps(LANGUAGES):
        assert len({lane.writer for lane in lanes}) == len({lane.reader for lane in lanes}) == len(LANGUAGES)


@pytest.mark.parametrize("notifier", SHARED_NOTIFIERS)
@pytest.mark.parametrize(("writer", "relay", "reader"), WAYS)
@pytest.mark.parametrize("store", sorted(SHARED_STORES, reverse=True))
def test_combination(
    outcomes: Outcomes, store: str, writer: Language, relay: Language, reader: Language, notifier: str
) -> None:
    """Violations without Antipode, none with it, and no barrier that passed early or judged less than all."""
    outcomes.of(store)
    combination = Combination(store, notifier, writer, relay, reader)
    without, with_it = outcomes.without[combination], outcomes.with_it[combination]
    assert with_it == Outcome(UPLOADS, violations=0, early=0, incomplete=0, lineages=UPLOADS)
    assert without.uploads == UPLOADS
    assert without.violations > 0
    assert without.lineages == 0
