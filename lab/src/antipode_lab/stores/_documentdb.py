"""What the lab's MongoDB is made of where no mongod is at hand: FerretDB, and PostgreSQL 18 with DocumentDB."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError
from antipode_lab.unpacked import UnpackedPackage

VERSION: Final = "2.7.0"
BIN: Final = "usr/lib/postgresql/18/bin"
POSTGRESQL: Final = UnpackedPackage(
    name="PostgreSQL 18 with DocumentDB",
    cost="150 MB of packages, a minute, once",
    folder="postgresql-18-documentdb",
    package="postgresql-18-documentdb",
    program=f"{BIN}/postgres",
    store="mongodb",
    public=True,
    # They start one another, so each has to find its loader by itself.
    programs=tuple(f"{BIN}/{name}" for name in ("postgres", "initdb", "pg_basebackup")),
    libraries=("usr/lib/postgresql/18/lib", "usr/lib/*/blas", "usr/lib/*/lapack"),
    links=(("usr/share/postgresql/18/extension/postgis.control", "postgis-3.control"),),
)
_SOURCE: Final = Path(__file__).with_name("_ferretdb")
_FILES: Final = ("main.go", "go.mod", "go.sum")


@dataclass(frozen=True, slots=True)
class FerretDB:
    """FerretDB, built once into the cache from a few lines of ours and its module."""

    name: str = f"FerretDB {VERSION}"
    cost: str = "four minutes, once"

    @property
    def path(self) -> Path:
        """The program: another one for other sources."""
        text = b"".join((_SOURCE / file).read_bytes() for file in _FILES)
        return cache_folder() / f"ferretdb-{VERSION}-{hashlib.sha256(text).hexdigest()[:12]}"

    def ready(self) -> bool:
        """Whether it was built."""
        return os.access(self.path, os.X_OK)

    def install(self) -> Path:
        """Builds it unless it is in the cache; returns the program.

        Raises:
            InstallError: without Go or a folder to write to, or if the build fails.
        """
        return self.path if self.ready() else made_once(self.path, self._build, self.ready)

    def _build(self, build: Path) -> Path:
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
        if go is None:
            raise InstallError(
                f"{self.name} is built with Go, and there is no `go` on the PATH. Install Go 1.24 or newer "
                "(https://go.dev/dl), then run: antipode-lab install mongodb"
            )
        for file in _FILES:
            shutil.copy(_SOURCE / file, build)
        done = subprocess.run(
            [go, "build", "-trimpath", "-ldflags=-s -w", "-o", "ferretdb", "."],
            env={**os.environ, "GOFLAGS": "-mod=readonly"},
            cwd=build,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise InstallError(f"building {self.name} failed:\n{done.stderr[-2000:]}")
        return build / "ferretdb"


FERRETDB: Final = FerretDB()
