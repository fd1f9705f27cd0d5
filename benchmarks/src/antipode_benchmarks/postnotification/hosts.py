"""One host of services: a process of any language, as benchmarks/services.md says."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from antipode_benchmarks.postnotification.options import Language, Setup

START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 10.0
HOST = "antipode_benchmarks.postnotification.host"
ROOT: Final = Path(__file__).parents[4]
JAVA: Final = ROOT / "java/antipode-services/target/antipode-services.jar"
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
"""Ready in half the time; all that is asked of it is short."""
CPP: Final = ROOT / "build/cpp/examples/services/antipode_services"


class RunFailed(Exception):
    """The run cannot give a result: a service failed, or a notification never came. The message says which."""


def command(language: Language) -> list[str]:
    """How a language's host is started; raises RunFailed where it has not been built."""
    if language == "python":
        return [sys.executable, "-m", HOST]
    told = os.environ.get(f"SERVICES_{language.upper()}")
    if told:
        return shlex.split(told)
    built, words = (JAVA, ["java", *JVM, "-jar", str(JAVA)]) if language == "java" else (CPP, [str(CPP)])
    if not built.exists():
        raise RunFailed(f"there is no {built.relative_to(ROOT)}: run scripts/services {language}")
    return words


class Host:
    """A process and the services in it."""

    def __init__(self, language: Language, services: Sequence[str], process: Process, log: int) -> None:
        self.language = language
        self.services = services
        self.process = process
        self._log = log

    @classmethod
    async def start(cls, language: Language, services: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Starts the process, with these variables beside the command's own; `bound` waits for it."""
        words = command(language)
        log = os.memfd_create("log")  # in no folder: nothing is left of it, however the command ends
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                *services,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,  # Ctrl-C is for the command; they end with their standard input
            )
        except OSError as error:
            os.close(log)
            raise RunFailed(f"{words[0]} cannot be started: {error}") from error
        return cls(language, services, process, log)

    @property
    def name(self) -> str:
        """Its services, for people."""
        return f"{', '.join(self.services)} ({self.language})"

    async def bound(self) -> dict[str, str]:
        """The base URLs of its services."""
        return {
            service: f"http://127.0.0.1:{port}" for service, port in json.loads(await self._line("its ports")).items()
        }

    async def told(self, setup: Setup) -> None:
        """Tells it a setup, and returns when that is in force."""
        assert self.process.stdin is not None
        self.process.stdin.write(setup.to_json().encode() + b"\n")
        line = await self._line("ready")
        if line != "ready\n":
            raise RunFailed(f"{self.name} said {line!r} for ready\n{self.tail()}")

    async def _line(self, wanted: str) -> str:
        """The next line that the process says."""
        assert self.process.stdout is not None
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), START_TIMEOUT_S)
        except TimeoutError:
            raise RunFailed(f"{self.name} did not say {wanted} within {START_TIMEOUT_S:.0f} s\n{self.tail()}") from None
        if not line:
            code = await self.process.wait()
            raise RunFailed(f"{self.name} has ended (code {code})\n{self.tail()}")
        return line.decode()

    def check(self) -> None:
        """Raises RunFailed where the process has ended."""
        if self.process.returncode is not None:
            raise RunFailed(f"{self.name} ended (code {self.process.returncode})\n{self.tail()}")

    def tail(self, lines: int = 30) -> str:
        """The end of what the process wrote to standard error."""
        size = os.fstat(self._log).st_size
        # Where the file is read must not move where the process writes: they share one place in it.
        text = os.pread(self._log, 100_000, max(size - 100_000, 0)).decode(errors="replace")
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
        os.close(self._log)


class Hosts:
    """Processes that are watched and ended together (`async with`)."""

    def __init__(self) -> None:
        self._hosts: list[Host] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.gather(*(host.end() for host in self._hosts))

    async def start(
        self, language: Language, services: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> Host:
        """One more; `environment`: variables that it has beside the command's own."""
        host = await Host.start(language, services, environment or {})
        self._hosts.append(host)
        return host

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts)

    def check(self) -> None:
        """Raises RunFailed where a process has ended."""
        for host in self._hosts:
            host.check()

    def words(self) -> str:
        """What the services wrote to standard error, for the message of a failure."""
        return "\n".join(f"--- {host.name}\n{tail}" for host in self._hosts if (tail := host.tail()))
