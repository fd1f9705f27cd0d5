"""MySQL's server, from packages of a newer Debian: Debian stable has none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antipode_lab.errors import InstallError
from antipode_lab.unpacked import UnpackedPackage

_LEAST: Final = 9
"""The oldest major version that will do."""
_SERVER: Final = "usr/sbin/mysqld"


@dataclass(frozen=True, slots=True)
class UnpackedMySQL:
    """The server and its libraries, in one folder of the cache."""

    name: str = f"MySQL {_LEAST}"
    cost: str = "60 MB of packages, half a minute, once"

    @property
    def _package(self) -> UnpackedPackage:
        return UnpackedPackage(self.name, self.cost, f"mysql-{_LEAST}", "mysql-server-core", _SERVER, "mysql")

    @property
    def path(self) -> Path:
        """The folder; it is there when it is whole."""
        return self._package.path

    def ready(self) -> bool:
        """Whether it was fetched."""
        return self._package.ready()

    def command(self) -> list[str]:
        """What starts the server, without any setting of a data folder's."""
        share = self.path / "usr/share/mysql"
        return [
            *self._package.command(_SERVER),
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
        return self._package.version(_SERVER, "Ver")

    def install(self) -> Path:
        """Fetches it unless it is in the cache; returns its folder.

        Raises:
            InstallError: if it cannot be had, or is too old.
        """
        return self._package.install(self._check)

    def _check(self, made: Path) -> None:
        version = self._package.version(_SERVER, "Ver", made)
        if int(version.partition(".")[0]) < _LEAST:
            raise InstallError(f"the package is MySQL {version}; MySQL {_LEAST} or later is needed")
