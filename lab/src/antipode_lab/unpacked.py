"""Servers from packages of a newer Debian, unpacked into the cache and never installed.

apt fetches a package and every library that it needs, from the mirror that this machine uses already, with a package
state of its own; the programs then run by the dynamic loader that came with them. No root is needed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError

_SUITE: Final = "sid"
_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PUBLIC: Final = Path("/var/cache/antipode")


@dataclass(frozen=True, slots=True)
class UnpackedPackage:
    """A package and all that it needs, in one folder of the cache (`antipode_lab.built.Tool`)."""

    name: str
    """For a person: ``MySQL 9``."""
    cost: str
    folder: str
    """Its name in the cache."""
    package: str
    program: str
    """A file of it, from the folder on, that shows that it is there."""
    store: str
    """The lab's store that needs it, for `antipode-lab install`."""
    public: bool = False
    """Whether its servers run as another user than root, who has to reach it."""
    programs: tuple[str, ...] = ()
    """Of those that start one another: each becomes a script that gives the program its loader."""
    libraries: tuple[str, ...] = ()
    """Folders of more libraries, beside the loader's own; ``*`` stands for any name."""
    links: tuple[tuple[str, str], ...] = ()
    """What the packages' own scripts would link: the new name, and what it means."""

    @property
    def path(self) -> Path:
        """The folder; it is there when it is whole."""
        cache = cache_folder()
        if self.public and os.geteuid() == 0 and "ANTIPODE_CACHE" not in os.environ and not _open_to_all(cache):
            cache = _PUBLIC
        return cache / self.folder

    def ready(self) -> bool:
        """Whether it was fetched."""
        return (self.path / self.program).exists()

    def command(self, program: str) -> list[str]:
        """What starts one of the programs, named from the folder on."""
        return self._start(self.path, program, program)

    def _start(self, made: Path, program: str, file: str, *, here: bool = False) -> list[str]:
        """What starts a file of a folder, which is this package's or will be, as a program. `here`: where it is now."""
        path = made if here else self.path
        found = sorted(made.glob("usr/lib/*/ld-linux-*.so.*"))
        if not found:
            raise InstallError(f"{made} is not whole; remove it and run: antipode-lab install {self.store}")
        loader = path / found[0].relative_to(made)
        more = [path / place.relative_to(made) for each in self.libraries for place in sorted(made.glob(each))]
        libraries = ":".join(map(str, [loader.parent, *more]))
        return [str(loader), "--library-path", libraries, "--argv0", str(path / program), str(path / file)]

    def version(self, program: str, word: str, made: Path | None = None) -> str:
        """What a program's ``--version`` says behind a word; `made`: of a folder that is not in its place yet."""
        command = [*self._start(made or self.path, program, program, here=True), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        words = done.stdout.split()
        if done.returncode or word not in words[:-1]:
            raise InstallError(f"{self.name} does not run here: {(done.stdout + done.stderr)[-500:]}")
        return words[words.index(word) + 1]

    def install(self, check: Callable[[Path], object] = lambda _: None) -> Path:
        """Fetches it unless it is in the cache; returns its folder.

        `check` raises InstallError for what will not do, before it is in the cache.

        Raises:
            InstallError: without apt, without a folder to write to, or if the packages cannot be had.
        """
        if self.ready():
            return self.path
        if shutil.which("apt-get") is None:
            raise InstallError(
                f"{self.name} is fetched by apt-get, which is not here: the lab's {self.store} needs Debian"
            )
        return made_once(self.path, lambda build: self._checked(build, check), self.ready)

    def _checked(self, build: Path, check: Callable[[Path], object]) -> Path:
        made = self._unpacked(build)
        check(made)
        return made

    def _unpacked(self, build: Path) -> Path:
        """Fetches the package with all that it needs, and unpacks it; returns the folder."""
        for folder in ("state/lists/partial", "cache/archives/partial", "made"):
            (build / folder).mkdir(parents=True)
        (build / "state/status").touch()  # nothing is installed, as far as this apt knows: it fetches the libraries too
        (build / "suite.sources").write_text(
            f"Types: deb\nURIs: {self._mirror()}\nSuites: {_SUITE}\nComponents: main\nSigned-By: {_KEYRING}\n"
        )
        apt = ["apt-get", "-qq"]
        for setting in (
            f"Dir::State={build / 'state'}",
            f"Dir::State::status={build / 'state/status'}",
            f"Dir::Cache={build / 'cache'}",
            f"Dir::Etc::sourcelist={build / 'suite.sources'}",
            "Dir::Etc::sourceparts=-",
            "APT::Install-Recommends=false",
            "Debug::NoLocking=1",
            "APT::Sandbox::User=root",
            "Acquire::Retries=3",
        ):
            apt += ["-o", setting]
        self._run([*apt, "update"])
        self._run([*apt, "-y", "--download-only", "install", self.package])
        for package in sorted((build / "cache/archives").glob("*.deb")):
            self._run(["dpkg-deb", "-x", str(package), str(build / "made")])
        (build / "made").chmod(0o755)
        for name, meant in self.links:
            (build / "made" / name).symlink_to(meant)
        for program in self.programs:
            self._wrap(build / "made", program)
        return build / "made"

    def _wrap(self, made: Path, program: str) -> None:
        """Puts a script in a program's place."""
        file = made / program
        kept = file.with_name(f"{file.name}.program")
        file.rename(kept)
        words = shlex.join(self._start(made, program, str(kept.relative_to(made))))
        file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        file.chmod(0o755)

    def _mirror(self) -> str:
        """The mirror of Debian that this machine's own apt uses."""
        shown = self._run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(RELEASE)\t$(REPO_URI)", "Created-By: Packages"]
        )
        found = [line.split("\t") for line in shown.splitlines()]
        for origin, release, uri in found:
            if origin == "Debian" and not release.endswith(("-security", "-backports")):
                return uri
        raise InstallError("apt knows no mirror of Debian here; is there one in /etc/apt, and was apt-get update run?")

    def _run(self, command: list[str]) -> str:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode:
            raise InstallError(f"{command[0]} failed, for {self.name}:\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout


def _open_to_all(folder: Path) -> bool:
    """Whether any user may go through it, as far as it is there."""
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents) if each.exists())
