"""One run: workers in every language, requests at once, faults meanwhile; then what the recorded history says."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import httpx
from antipode._propagation.carriers import LINEAGE_HEADER

from antipode_benchmarks.postnotification.hosts import Hosts, RunFailed
from antipode_benchmarks.postnotification.options import Language, Options, Setup
from antipode_benchmarks.workload.books import Found
from antipode_benchmarks.workload.judging import Judged
from antipode_benchmarks.workload.plan import Plans, Visit
from antipode_benchmarks.workload.stage import REGIONS, SERVERS, Stage, worker

REQUESTS = 6
"""Of each of a run's two parts, between which a primary may move."""
AT_ONCE = 3
PATIENCE_S = 60.0
BARRIER_S = 20.0
LOSING_BARRIER_S = 3.0
"""Of a run that loses writes: whoever waits for one waits in vain."""
DOOMED = 4
"""Requests whose writes to a store are lost."""
CONSUMERS = 4
POLL_S = 0.02
ENVIRONMENT = {
    "ANTIPODE_AUTO_MERGE": "true",
    # A server of a busy machine that is silent for two seconds would be left out, and its reader not waited for.
    "ANTIPODE_ON_REPLICA_OUT": "fail",
    "ANTIPODE_REPLICA_OUT_AFTER_MS": "60000",
}


class Run:
    """A run on a stage. The seed says all that is chance but for what happens at the same time."""

    def __init__(
        self,
        stage: Stage,
        seed: int,
        languages: Sequence[Language],
        folder: Path,
        *,
        barriers: bool,
        losses: bool = False,
    ) -> None:
        """`folder`: where the history is recorded; nothing else is to be there. Fewer languages than regions repeat.

        `losses`: between the two parts a promotion loses writes, and requests go on that depend on them.
        """
        self._stage = stage
        self._random = random.Random(seed)
        self._folder = folder
        self._barriers = barriers
        self._losses = losses
        self._lost: frozenset[int] = frozenset()
        self._lineages: dict[str, str] = {}
        """What the response to a request brought, by its first visit."""
        self._shares = seed % 2 == 0
        self._clients: Literal["blocking", "asynchronous"] = "asynchronous" if seed & 2 else "blocking"
        regions = list(permutations(REGIONS))[seed % 6]
        self._languages: dict[str, Language] = {
            region: languages[number % len(languages)] for number, region in enumerate(regions)
        }
        self._hosts = Hosts()
        self._addresses: dict[str, str] = {}
        self._results: dict[str, list[dict[str, Any]]] = {}
        self._plans = Plans(
            [worker(region) for region in REGIONS],
            lambda store: stage.stores[store].primary,
            list(SERVERS),
            uuid4().hex[:8],
            barriers,
            self._shares,
            LOSING_BARRIER_S if losses else None,
        )

    async def play(self) -> Judged:
        """Plays it, and judges.

        Raises:
            RunFailed: a service failed, or did not finish in time; or the folder has another run's history.
        """
        if list(self._folder.glob("*")):
            raise RunFailed(f"{self._folder} is not empty")
        await asyncio.to_thread(self._stage.clear)
        requests: list[Visit] = []
        async with self._hosts, httpx.AsyncClient(timeout=PATIENCE_S) as http:
            try:
                await self._start()
                requests += await self._part(http, self._link_fails)
                doomed: list[Visit] = []
                if self._losses:
                    doomed, waiting = await self._lose(http)
                    requests += waiting
                elif self._random.random() < 0.5:
                    await asyncio.to_thread(self._stage.promote, *self._replica())
                requests += doomed
                requests += await self._part(http, self._lag_changes, doomed)
            except (RunFailed, httpx.HTTPError, TimeoutError) as error:
                raise RunFailed(f"{type(error).__name__}: {error}\n{self._hosts.words()}") from error
        found = Found(lost=self._lost)
        found.enter(requests, self._results)
        return Judged.of(self._folder, found, barriers=self._barriers, shares=self._shares)

    async def _start(self) -> None:
        environment = ENVIRONMENT | {"ANTIPODE_HISTORY": str(self._folder)}
        hosts = {
            region: await self._hosts.start(
                language, ["worker"], environment | {"OTEL_SERVICE_NAME": f"{language}-{region}"}
            )
            for region, language in self._languages.items()
        }
        for region, host in hosts.items():
            self._addresses[worker(region)] = (await host.bound())["worker"]
        options = Options("redis", "rabbitmq", "nowhere", timeout=BARRIER_S, consumers=CONSUMERS)
        await asyncio.gather(
            *(
                host.told(
                    Setup(
                        options,
                        antipode=True,
                        addresses=self._addresses,
                        queues=self._stage.queues,
                        queue=worker(region),
                        stores=self._stage.addresses(region),
                        # Who reads what another request wrote depends on what that had seen, which only the value says.
                        rest="envelope" if self._shares else "none",
                        clients=self._clients,
                    )
                )
                for region, host in hosts.items()
            )
        )

    async def _part(
        self, http: httpx.AsyncClient, fault: Callable[[], None], after: Sequence[Visit] = ()
    ) -> list[Visit]:
        """Some requests at once, while a fault comes and goes; all is over when it returns.

        `after`: requests that are over, each of which one of them comes after.
        """
        before = [*after, *[None] * (REQUESTS - len(after))]
        requests = [self._plans.request(random.Random(self._random.random()), each) for each in before]
        failing = asyncio.create_task(asyncio.to_thread(fault))
        try:
            await self._ask(http, requests)
        finally:
            await failing
        return requests

    async def _ask(self, http: httpx.AsyncClient, requests: Sequence[Visit]) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(visit: Visit) -> None:
            async with places:
                headers = {LINEAGE_HEADER: self._lineages[visit.after]} if visit.after else {}
                url = f"{self._addresses[visit.worker]}/visits"
                answer = (await http.post(url, json=visit.to_json(), headers=headers)).raise_for_status()
                self._lineages[visit.name] = answer.headers.get(LINEAGE_HEADER, "")

        await asyncio.gather(*(ask(visit) for visit in requests))
        await self._over(http, {visit.name for request in requests for visit in request.all()})

    async def _lose(self, http: httpx.AsyncClient) -> tuple[list[Visit], list[Visit]]:
        """A replica becomes the primary without what requests have written to its store, and what others wait for.

        Returns the ones and the others.
        """
        name, server = self._replica()
        here = worker(next(region for region, its in SERVERS[name].items() if its == server))
        requests = [self._plans.writing(random.Random(self._random.random())) for _ in range(DOOMED)]
        # These wait at the replica while it becomes the primary, or read there.
        waiting = [self._plans.reading(random.Random(self._random.random()), here, each) for each in requests]
        loop = asyncio.get_running_loop()
        parked: list[asyncio.Task[None]] = []

        async def doomed() -> None:
            await self._ask(http, requests)
            parked.append(asyncio.create_task(self._ask(http, waiting)))

        def write() -> None:
            asyncio.run_coroutine_threadsafe(doomed(), loop).result()

        try:
            await asyncio.to_thread(self._stage.lose, name, server, write)
        finally:
            await asyncio.gather(*parked)
        self._lost = frozenset(number for request in requests for number in request.writes(name))
        if there := self._lost & await asyncio.to_thread(self._stage.values, name, self._plans.run):
            raise RunFailed(f"these writes to {name} were to be lost, and are there: {sorted(there)}")
        return requests, waiting

    async def _over(self, http: httpx.AsyncClient, names: set[str]) -> None:
        """Returns when the workers have done all these visits, also those that came by message."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for address in self._addresses.values():
                told = (await http.get(f"{address}/-/visits")).json()
                if told["failure"]:
                    raise RunFailed(told["failure"])
                self._results |= {visit["visit"]: visit["results"] for visit in told["visits"]}
            if names <= self._results.keys():
                return
            self._hosts.check()
            if time.monotonic() > deadline:
                raise RunFailed(f"these visits are not over: {sorted(names - self._results.keys())}")
            await asyncio.sleep(POLL_S)

    def _replica(self) -> tuple[str, str]:
        name = self._random.choice(list(SERVERS))
        return name, self._random.choice(self._stage.stores[name].replicas)

    def _link_fails(self) -> None:
        self._stage.part(*self._replica(), silent=self._random.random() < 0.5)

    def _lag_changes(self) -> None:
        name, server = self._replica()
        self._stage.stores[name].lag(server, f"{self._random.randint(1, 3)}00ms")
