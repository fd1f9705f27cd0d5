"""The services' processes: started together, watched while they run, ended with the run."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from antipode_benchmarks.postnotification.options import SERVICES, Options, Setup

START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
HOST = "antipode_benchmarks.postnotification.host"


class RunFailed(Exception):
    """The run cannot give a result: a service failed, or a notification never came. The message says which."""


class _Host:
    """One process and the services in it."""

    def __init__(self, services: Sequence[str], process: Process, log: int) -> None:
        self.services = services
        self.process = process
        self.log = log

    @property
    def name(self) -> str:
        return ", ".join(self.services)

    async def line(self) -> str:
        """The next line that the process says."""
        assert self.process.stdout is not None
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), START_TIMEOUT_S)
        except TimeoutError:
            raise RunFailed(f"{self.name} did not start within {START_TIMEOUT_S:.0f} s\n{self.tail()}") from None
        if not line:
            code = await self.process.wait()
            raise RunFailed(f"{self.name} ended at its start (code {code})\n{self.tail()}")
        return line.decode()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def tail(self, lines: int = 30) -> str:
        """The end of what the process wrote to standard error."""
        size = os.fstat(self.log).st_size
        # Where the file is read must not move where the process writes: they share one place in it.
        text = os.pread(self.log, 100_000, max(size - 100_000, 0)).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    async def end(self) -> None:
        """Closes its standard input, which ends it; kills it where that takes too long."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), END_TIMEOUT_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


class Fleet:
    """All services, for one phase of a run (`async with`)."""

    def __init__(
        self,
        options: Options,
        *,
        antipode: bool,
        posts: dict[str, str] | None = None,
        queues: dict[str, str] | None = None,
    ) -> None:
        self._options = options
        self._antipode = antipode
        self._posts = posts or {}
        self._queues = queues or {}
        self._hosts: list[_Host] = []
        self._logs = ExitStack()
        self.addresses: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _start(self) -> None:
        groups = [SERVICES] if self._options.embedded else [(service,) for service in SERVICES]
        for services in groups:
            log = os.memfd_create("log")  # in no folder: nothing is left of it, however the command ends
            self._logs.callback(os.close, log)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                HOST,
                *services,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the command; they end with their standard input
            )
            self._hosts.append(_Host(services, process, log))
        for host in self._hosts:
            for service, port in json.loads(await host.line()).items():
                self.addresses[service] = f"http://127.0.0.1:{port}"
        setup = Setup(self._options, self._antipode, self.addresses, self._posts, self._queues)
        for host in self._hosts:
            host.tell(setup.to_json())
        for host in self._hosts:
            await host.line()

    def check(self) -> None:
        """Raises RunFailed where a process has ended."""
        for host in self._hosts:
            if host.process.returncode is not None:
                raise RunFailed(f"{host.name} ended (code {host.process.returncode})\n{host.tail()}")

    def words(self) -> str:
        """What the services wrote to standard error, for the message of a failure."""
        return "\n".join(f"--- {host.name}\n{tail}" for host in self._hosts if (tail := host.tail()))

    async def _end(self) -> None:
        await asyncio.gather(*(host.end() for host in self._hosts))
        self._logs.close()
