"""DynamoDB Local, fetched once through Maven, with a start of our own that listens on loopback alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antipode_lab.cache import cache_folder, locked
from antipode_lab.errors import InstallError

VERSION: Final = "2.6.1"
_LAUNCHER: Final = Path(__file__).with_name("DynamoDbLoopback.java")
_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dev.antipode.lab</groupId><artifactId>dynamodb-local</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True, slots=True)
class DynamoDbLocal:
    """AWS's DynamoDB Local: its jars (its own, free licence; fetched, never passed on) and our launcher."""

    name: str = f"DynamoDB Local {VERSION}"
    cost: str = "about a minute, once"

    @property
    def path(self) -> Path:
        """The folder with `lib` and `classes`."""
        return cache_folder() / f"dynamodb-local-{VERSION}"

    def ready(self) -> bool:
        """Whether it was fetched, and the launcher compiled from the source that is here."""
        source = self.path / _LAUNCHER.name
        return source.exists() and source.read_bytes() == _LAUNCHER.read_bytes()

    def command(self, port: int, data: Path, heap_mib: int) -> list[str]:
        """Starts a server on this port, with its data in this folder."""
        lib = self.path / "lib"
        return [
            self._find("java"),
            f"-Xmx{heap_mib}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # start-up counts here, not the last third of speed
            f"-Djava.library.path={lib}",
            "-cp",
            f"{self.path / 'classes'}:{lib}/*",
            _LAUNCHER.stem,
            "-dbPath",
            str(data),
            "-port",
            str(port),
            "-disableTelemetry",
        ]

    def install(self) -> Path:
        """Fetches it unless it is in the cache; returns its folder.

        Raises:
            InstallError: without Maven and a JDK, without a folder to write to, or if the download fails.
        """
        if self.ready():
            return self.path
        maven, javac = self._find("mvn"), self._find("javac")
        target = self.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InstallError(
                f"cannot make {target.parent} ({error}); name another folder in ANTIPODE_CACHE"
            ) from error
        with locked(target.with_name(target.name + ".lock")):
            if not self.ready():  # or another process fetched it meanwhile
                self._fetch(maven, javac, target)
        return target

    def _fetch(self, maven: str, javac: str, target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as build:
            folder = Path(build) / "made"
            folder.mkdir()
            (Path(build) / "pom.xml").write_text(_POM)
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"]
            self._run([maven, "-B", "-q", *goal], build)
            self._run([javac, "-cp", f"{folder / 'lib'}/*", "-d", str(folder / "classes"), str(_LAUNCHER)], build)
            shutil.copy(_LAUNCHER, folder)  # last: `ready` looks for it
            shutil.rmtree(target, ignore_errors=True)
            os.replace(folder, target)

    def _run(self, command: list[str], folder: str) -> None:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InstallError(f"getting {self.name} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def _find(self, program: str) -> str:
        found = shutil.which(program)
        if found is None:
            raise InstallError(
                f"{self.name} needs `{program}` on the PATH. Install Maven and a JDK (17 or newer), then run: "
                "antipode-lab install dynamodb"
            )
        return found
