"""What a server and a login allow, asked once: settings that make positions lie, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_FILTERS: Final = (
    "replicate_do_db",
    "replicate_ignore_db",
    "replicate_do_table",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
)
_SETTINGS: Final = (
    "version",
    "log_bin",
    "log_slave_updates",
    "sync_binlog",
    "gtid_strict_mode",
    "innodb_flush_log_at_trx_commit",
    "read_only",
    "server_id",
    *_FILTERS,
)
_ASK: Final = f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in _SETTINGS)}"


@dataclass(frozen=True, slots=True)
class Facts:
    """A server's settings; empty where it could not be asked."""

    settings: Mapping[str, str]
    connection_differs: bool = False
    """The session that answers is not the one that was opened: something between shares sessions out."""

    @property
    def reached(self) -> bool:
        """Whether the server answered."""
        return bool(self.settings)

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.settings.get(name, "") in ("1", "ON")

    @property
    def unfit(self) -> str:
        """Why nothing can be proved at this server, and what to change; empty where it can."""
        if not self.reached:
            return ""
        if "MariaDB" not in self.settings["version"]:
            return f"it is MySQL {self.settings['version']}, for which there is no shim yet; this one is for MariaDB"
        if self.connection_differs:
            return MULTIPLEXED
        if not self.is_on("log_bin"):
            return "it has log_bin=OFF, so its writes have no position. Set log_bin and restart that server"
        if not self.is_on("log_slave_updates"):
            return (
                "it has log_slave_updates=OFF, so an applied write cannot be proved there. Set log_slave_updates=ON "
                "and restart that server"
            )
        if self.settings["sync_binlog"] != "1":
            return (
                f"it has sync_binlog={self.settings['sync_binlog']}, so a crash of its machine may take back numbers "
                "that are given again. SET GLOBAL sync_binlog=1, and in its configuration, too"
            )
        filters = [f"{name}={self.settings[name]}" for name in _FILTERS if self.settings.get(name)]
        if filters:
            return (
                f"it filters what it replicates ({', '.join(filters)}), so a position may be passed without its data. "
                "Take the filters away, or keep what they name in a store of its own"
            )
        return ""


MULTIPLEXED: Final = (
    "its sessions are shared out by something between (ProxySQL, MaxScale), so a position may be another session's. "
    "Connect to the server itself, or switch multiplexing off for this user"
)
NOTHING: Final = Facts({})


def ask(connection: Any) -> Facts:
    """Asks a server by a connection of our own; needs no right. Raises what PyMySQL raises."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@version, CONNECTION_ID()")
        [(version, answering)] = cursor.fetchall()
        if "MariaDB" not in str(version):
            return Facts({"version": str(version)})
        cursor.execute(_ASK)
        [row] = cursor.fetchall()
    settings = {name: "" if value is None else str(value) for name, value in zip(_SETTINGS, row, strict=True)}
    return Facts(settings, connection_differs=int(answering) != connection.thread_id())
