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

    def __init__(self, stage: Stage, seed: int, languages: Sequence[Language], folder: Path, *, barriers: bool) -> None:
        """`folder`: where the history is recorded; nothing else is to be there. Fewer languages than regions repeat."""
        self._stage = stage
        self._random = random.Random(seed)
        self._folder = folder
        self._barriers = barriers
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
                if self._random.random() < 0.5:
                    await asyncio.to_thread(self._stage.promote, *self._replica())
                requests += await self._part(http, self._lag_changes)
            except (RunFailed, httpx.HTTPError, TimeoutError) as error:
                raise RunFailed(f"{type(error).__name__}: {error}\n{self._hosts.words()}") from error
        found = Found()
        found.enter(requests, self._results)
        return Judged.of(self._folder, found, barriers=self._barriers)

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

    async def _part(self, http: httpx.AsyncClient, fault: Callable[[], None]) -> list[Visit]:
        """Some requests at once, while a fault comes and goes; all is over when it returns."""
        requests = [self._plans.request(random.Random(self._random.random())) for _ in range(REQUESTS)]
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(visit: Visit) -> None:
            async with places:
                url = f"{self._addresses[visit.worker]}/visits"
                (await http.post(url, json=visit.to_json())).raise_for_status()

        failing = asyncio.create_task(asyncio.to_thread(fault))
        try:
            await asyncio.gather(*(ask(visit) for visit in requests))
        finally:
            await failing
        await self._over(http, {visit.name for request in requests for visit in request.all()})
        return requests

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
