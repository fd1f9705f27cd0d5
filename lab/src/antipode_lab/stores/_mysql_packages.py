"""MySQL's server, from packages of a newer Debian that are unpacked into the cache and never installed.

Debian stable has no MySQL. apt fetches the server and every library that it needs, from the mirror that this machine
uses already, with a package state of its own; the server then runs by the dynamic loader that came with it. No root is
needed.
"""

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

_SUITE: Final = "sid"
_PACKAGE: Final = "mysql-server-core"
_LEAST: Final = 9
"""The oldest major version that will do."""
_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, slots=True)
class UnpackedMySQL:
    """The server and its libraries, in one folder of the cache."""

    name: str = f"MySQL {_LEAST}"
    cost: str = "60 MB of packages, half a minute, once"

    @property
    def path(self) -> Path:
        """The folder; it is there when it is whole."""
        return cache_folder() / f"mysql-{_LEAST}"

    def ready(self) -> bool:
        """Whether it was fetched."""
        return self._server.exists()

    @property
    def _server(self) -> Path:
        return self.path / "usr/sbin/mysqld"

    def command(self) -> list[str]:
        """What starts the server, without any setting of a data folder's."""
        share = self.path / "usr/share/mysql"
        found = sorted(self.path.glob("usr/lib/*/ld-linux-*.so.*"))
        if not found:
            raise InstallError(f"{self.path} is not whole; remove it and run: antipode-lab install mysql")
        loader = found[0]
        return [
            str(loader),
            "--library-path",
            str(loader.parent),
            "--argv0",
            str(self._server),
            str(self._server),
            "--no-defaults",
            f"--basedir={self.path / 'usr'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={self.path / 'usr/lib/mysql/plugin'}",
            "--secure-file-priv=NULL",
            *(["--user=root"] if os.geteuid() == 0 else []),
        ]

    def version(self) -> str:
        """The server's version, such as 9.7.4-2."""
        done = subprocess.run([*self.command(), "--version"], capture_output=True, text=True, check=False)
        words = done.stdout.split()
        if done.returncode or "Ver" not in words:
            raise InstallError(f"MySQL does not run here: {(done.stdout + done.stderr)[-500:]}")
        return words[words.index("Ver") + 1]

    def install(self) -> Path:
        """Fetches it unless it is in the cache; returns its folder.

        Raises:
            InstallError: without apt, without a folder to write to, or if the packages cannot be had.
        """
        if self.ready():
            return self.path
        if shutil.which("apt-get") is None:
            raise InstallError("MySQL is fetched by apt-get, which is not here: the lab's MySQL needs Debian or Ubuntu")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InstallError(
                f"cannot make {self.path.parent} ({error}); name another folder in ANTIPODE_CACHE"
            ) from error
        with locked(self.path.with_name(self.path.name + ".lock")):
            if not self.ready():  # or another process fetched it meanwhile
                with tempfile.TemporaryDirectory(prefix="build-", dir=self.path.parent) as build:
                    os.replace(_unpacked(Path(build)), self.path)
        if int(self.version().partition(".")[0]) < _LEAST:
            raise InstallError(f"{_SUITE} has MySQL {self.version()}; MySQL {_LEAST} or later is needed")
        return self.path


def _unpacked(build: Path) -> Path:
    """Fetches the package with all that it needs, and unpacks it; returns the folder."""
    for folder in ("state/lists/partial", "cache/archives/partial", "made"):
        (build / folder).mkdir(parents=True)
    (build / "state/status").touch()  # nothing is installed, as far as this apt knows: it fetches the libraries too
    (build / "suite.sources").write_text(
        f"Types: deb\nURIs: {_mirror()}\nSuites: {_SUITE}\nComponents: main\nSigned-By: {_KEYRING}\n"
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
    _run([*apt, "update"])
    _run([*apt, "-y", "--download-only", "install", _PACKAGE])
    for package in sorted((build / "cache/archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(build / "made")])
    return build / "made"


def _mirror() -> str:
    """The mirror of Debian that this machine's own apt uses."""
    shown = _run(["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(RELEASE)\t$(REPO_URI)", "Created-By: Packages"])
    found = [line.split("\t") for line in shown.splitlines()]
    for origin, release, uri in found:
        if origin == "Debian" and not release.endswith(("-security", "-backports")):
            return uri
    raise InstallError("apt knows no mirror of Debian here; is there one in /etc/apt, and was apt-get update run?")


def _run(command: list[str]) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise InstallError(f"{' '.join(command[:1])} failed, for MySQL:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
