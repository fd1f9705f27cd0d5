"""Programs that no system package has: built or fetched once into the cache, and found there from then on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError


class Tool(Protocol):
    """Something that a store needs besides system packages (`BaseStore.tools`)."""

    @property
    def name(self) -> str:
        """For a person: ``MinIO 2026-02-12``."""

    @property
    def cost(self) -> str:
        """How long the first `install` takes: ``about five minutes, once``."""

    def ready(self) -> bool:
        """Whether it is here."""

    def install(self) -> Path:
        """Gets it unless it is here; returns where it is. Raises InstallError."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program that Go builds from its module."""

    name: str
    module: str
    """The package with `main`, such as ``github.com/minio/minio``."""
    version: str
    """The module's pinned version, such as ``v0.0.0-2026…``."""
    cost: str
    flags: tuple[str, ...] = ()
    file: str = ""
    """The name in the cache; without, the module's last part and the version."""
    root: str = ""
    """The module, where its sources are changed before they are built."""
    changes: tuple[tuple[str, str, str], ...] = ()
    """What is changed: a file, a text that is there once, and what stands there instead."""

    @property
    def path(self) -> Path:
        """Where the program is, or will be."""
        return cache_folder() / (self.file or f"{self.module.rpartition('/')[2]}-{self.version}")

    def ready(self) -> bool:
        """Whether it was built."""
        return os.access(self.path, os.X_OK)

    def install(self) -> Path:
        """Builds it unless it is in the cache; returns the program.

        Raises:
            InstallError: without Go, without a folder to write to, or if the build fails.
        """
        if self.ready():
            return self.path
        go = self._find_go()
        return made_once(self.path, lambda build: self._build(go, build), self.ready)

    def _build(self, go: str, build: Path) -> Path:
        out = build / "out"
        out.mkdir()
        if self.changes:
            package = f".{self.module.removeprefix(self.root)}"
            self._run([go, "build", "-o", str(out / "program"), *self.flags, package], self._changed(go, build))
        else:
            self._run([go, "install", *self.flags, f"{self.module}@{self.version}"], build, GOBIN=str(out))
        (made,) = out.iterdir()
        return made

    def _changed(self, go: str, build: Path) -> Path:
        """Return a copy of the module's sources with the changes."""
        said = self._run([go, "mod", "download", "-json", f"{self.root}@{self.version}"], build)
        sources = build / "sources"
        shutil.copytree(json.loads(said)["Dir"], sources, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(sources):
            os.chmod(folder, 0o700)  # those of Go's cache may only be read
        for name, old, new in self.changes:
            text = (sources / name).read_text()
            if text.count(old) != 1:
                raise InstallError(f"building {self.name} failed: {name} has not once what is to be changed there")
            (sources / name).write_text(text.replace(old, new))
        return sources

    def _run(self, command: list[str], folder: Path, **settings: str) -> str:
        done = subprocess.run(
            command,
            env={**os.environ, "GOFLAGS": "", **settings},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise InstallError(f"building {self.name} failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def _find_go(self) -> str:
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
        if go is None:
            raise InstallError(
                f"{self.name} is built with Go, and there is no `go` on the PATH. Install Go 1.24 or newer "
                "(https://go.dev/dl), then run: antipode-lab install"
            )
        return go
