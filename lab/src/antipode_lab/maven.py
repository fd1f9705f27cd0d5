"""Programs in Java that Maven fetches once into the cache, started by a launcher of ours, compiled beside them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError


@dataclass(frozen=True, slots=True)
class MavenProgram:
    """Jars, fetched with all that they need, and a launcher: a folder of the cache with `lib` and `classes`."""

    name: str
    """For a person, with the version: `DynamoDB Local 2.6.1`."""
    folder: str
    """In the cache; its name holds the version."""
    dependencies: tuple[str, ...]
    """`group:artifact:version`."""
    launcher: Path
    """A Java source with the `main`, in no package."""
    store: str
    """The lab's store that needs it."""
    cost: str = "about a minute, once"

    @property
    def path(self) -> Path:
        """The folder with `lib` and `classes`."""
        return cache_folder() / self.folder

    def ready(self) -> bool:
        """Whether it was fetched, and the launcher compiled from the source that is here."""
        source = self.path / self.launcher.name
        return source.exists() and source.read_bytes() == self.launcher.read_bytes()

    def java(self, heap_mib: int, *options: str) -> list[str]:
        """The command up to the launcher's arguments."""
        return [
            self._find("java"),
            f"-Xmx{heap_mib}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # start-up counts here, not the last third of speed
            *options,
            "-cp",
            f"{self.path / 'classes'}:{self.path / 'lib'}/*",
            self.launcher.stem,
        ]

    def install(self) -> Path:
        """Fetches it unless it is in the cache; returns its folder.

        Raises:
            InstallError: without Maven and a JDK, without a folder to write to, or if the download fails.
        """
        if self.ready():
            return self.path
        maven, javac = self._find("mvn"), self._find("javac")
        return made_once(self.path, lambda build: self._fetch(maven, javac, build), self.ready)

    def _pom(self) -> str:
        def dependency(text: str) -> str:
            group, artifact, version = text.split(":")
            inner = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            return f"    <dependency>{inner}</dependency>"

        return "\n".join(
            [
                '<project xmlns="http://maven.apache.org/POM/4.0.0">',
                "  <modelVersion>4.0.0</modelVersion>",
                f"  <groupId>dev.antipode.lab</groupId><artifactId>{self.store}</artifactId><version>1</version>",
                "  <packaging>pom</packaging>",
                "  <dependencies>",
                *map(dependency, self.dependencies),
                "  </dependencies>",
                "</project>",
                "",
            ]
        )

    def _fetch(self, maven: str, javac: str, build: Path) -> Path:
        folder = build / "made"
        folder.mkdir()
        (build / "pom.xml").write_text(self._pom())
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"]
        self._run([maven, "-B", "-q", *goal], build)
        self._run([javac, "-cp", f"{folder / 'lib'}/*", "-d", str(folder / "classes"), str(self.launcher)], build)
        shutil.copy(self.launcher, folder)  # last: `ready` looks for it
        return folder

    def _run(self, command: list[str], folder: Path) -> None:
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
                f"antipode-lab install {self.store}"
            )
        return found
