"""moto, which plays SNS and SQS, in an environment of its own in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antipode_lab.cache import cache_folder, locked
from antipode_lab.errors import InstallError

VERSION: Final = "5.2.5"
REQUIREMENTS: Final = Path(__file__).with_name("_sns_requirements.txt")
SERVER: Final = Path(__file__).with_name("_sns_server.py")


@dataclass(frozen=True, slots=True)
class Moto:
    """moto and what it needs, at pinned versions."""

    name: str = f"moto {VERSION}"
    cost: str = "about half a minute, once"

    @property
    def path(self) -> Path:
        """The environment's folder: another one for other requirements, or another Python."""
        text = f"{sys.version_info[:3]}{REQUIREMENTS.read_text()}"
        return cache_folder() / f"moto-{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def ready(self) -> bool:
        """Whether it was installed wholly."""
        return (self.path / "installed").exists()

    def command(self, config: Path) -> list[str]:
        """Starts a server."""
        return [str(self.path / "bin" / "python"), "-B", str(SERVER), str(config)]

    def install(self) -> Path:
        """Makes the environment unless it is in the cache; returns its folder.

        Raises:
            InstallError: without a folder to write to, or if the installation fails.
        """
        if self.ready():
            return self.path
        target = self.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InstallError(
                f"cannot make {target.parent} ({error}); name another folder in ANTIPODE_CACHE"
            ) from error
        with locked(target.with_name(target.name + ".lock")):
            if not self.ready():  # or another process made it meanwhile
                shutil.rmtree(target, ignore_errors=True)
                self._make(target)
        return target

    def _make(self, target: Path) -> None:
        # In its place, for scripts and links of an environment hold its path; `installed` comes last.
        python, uv = str(target / "bin" / "python"), Path(sys.executable).with_name("uv")
        if os.access(uv, os.X_OK):
            self._run([str(uv), "venv", "-q", "--python", sys.executable, str(target)])
            self._run([str(uv), "pip", "install", "-q", "--python", python, "--no-deps", "-r", str(REQUIREMENTS)])
        else:
            self._run([sys.executable, "-m", "venv", str(target)])
            self._run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", str(REQUIREMENTS)])
        self._run([python, "-m", "compileall", "-q", str(target / "lib")])
        (target / "installed").touch()

    def _run(self, command: list[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="antipode-moto-") as folder:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise InstallError(f"installing {self.name} failed:\n{(done.stdout + done.stderr)[-2000:]}")
