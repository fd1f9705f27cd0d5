"""What the lab needs on this machine: servers from the system's packages, Toxiproxy and others from their sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antipode_lab import toxiproxy
from antipode_lab.built import Tool
from antipode_lab.errors import InstallError
from antipode_lab.store import Package, Store

_POLICY = Path("/usr/sbin/policy-rc.d")
_LOCK_TIMEOUT_S = 300


def missing(stores: Iterable[type[Store]]) -> list[Package]:
    """The packages of these stores whose program is not here."""
    return [package for store in stores for package in store.packages if shutil.which(package.program) is None]


def _unbuilt(stores: Iterable[type[Store]]) -> list[Tool]:
    """The tools of these stores that are not in the cache."""
    return [tool for store in stores for tool in store.tools if not tool.ready()]


def require(stores: Iterable[type[Store]]) -> None:
    """Checks that every program is here.

    Raises:
        InstallError: naming the command that installs what is not.
    """
    chosen = list(stores)
    lacking = [package.name for package in missing(chosen)] + [tool.name for tool in _unbuilt(chosen)]
    if lacking:
        raise InstallError(
            f"not installed: {', '.join(lacking)}. Run: antipode-lab install {' '.join(store.kind for store in chosen)}"
        )


def _root_prefix(names: list[str]) -> list[str]:
    """What makes a command run as root; empty for root itself.

    Raises:
        InstallError: if there is no such thing, with what to run by hand.
    """
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        # -n: a password prompt would wait for ever in a pipeline.
        if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0:
            return ["sudo", "-n"]
        if os.isatty(0):
            return ["sudo"]
    raise InstallError(
        "installing packages needs root, or sudo without a password prompt; as root run: "
        f"apt-get install --no-install-recommends {' '.join(names)}"
    )


@contextmanager
def _no_services(prefix: list[str]) -> Iterator[None]:
    """Keeps apt from starting the servers as services: the lab starts its own, on its own ports."""
    if _POLICY.exists():
        yield
        return
    write = [*prefix, "sh", "-c", f"printf '#!/bin/sh\\nexit 101\\n' > {_POLICY} && chmod 755 {_POLICY}"]
    subprocess.run(write, check=True)
    try:
        yield
    finally:
        subprocess.run([*prefix, "rm", "-f", str(_POLICY)], check=False)


def _apt(prefix: list[str], *arguments: str) -> None:
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    command += ["-o", f"DPkg::Lock::Timeout={_LOCK_TIMEOUT_S}", "-qq", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr)[-2000:]
        raise InstallError(f"apt-get {' '.join(arguments)} failed (code {done.returncode}):\n{output}")


def install(stores: Iterable[type[Store]], say: Callable[[str], None] = lambda _: None) -> None:
    """Installs what is missing: packages by apt (as root or with sudo), Toxiproxy, and the stores' own tools.
    What is here stays as it is.

    Raises:
        InstallError: without apt, without rights, or if a command fails.
    """
    chosen = list(stores)
    if lacking := missing(chosen):
        names = sorted({package.name for package in lacking})
        if shutil.which("apt-get") is None:
            raise InstallError(f"there is no apt-get here; install by hand: {', '.join(names)}")
        prefix = _root_prefix(names)
        say(f"installing {', '.join(names)} with apt")
        _apt(prefix, "update")
        with _no_services(prefix):
            _apt(prefix, "install", "-y", "--no-install-recommends", *names)
        if still := [package.program for package in lacking if shutil.which(package.program) is None]:
            raise InstallError(f"apt installed {', '.join(names)}, but there is no {', '.join(still)}")
    for tool in (toxiproxy.PROGRAM, *_unbuilt(chosen)):
        if not tool.ready():
            say(f"building {tool.name} ({tool.cost})")
            tool.install()
