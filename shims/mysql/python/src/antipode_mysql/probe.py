"""What a server and a login allow, asked once: settings that make positions lie, and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymysql

from antipode_mysql.flavour import Flavour
from antipode_mysql.mariadb import MARIADB
from antipode_mysql.mysql import MYSQL


@dataclass(frozen=True, slots=True)
class Facts:
    """A server's settings; empty where it could not be asked."""

    settings: Mapping[str, str]
    flavour: Flavour = MARIADB
    connection_differs: bool = False
    """The session that answers is not the one that was opened: something between shares sessions out."""

    @property
    def reached(self) -> bool:
        """Whether the server answered."""
        return bool(self.settings)

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.settings.get(name, "") in ("1", "ON")

    def unfit(self, *, relaxed_durability: bool) -> str:
        """Return why nothing can be proved at this server, and what to change; empty where it can.

        `relaxed_durability`: the operator's statement that a server that crashed is rebuilt before it serves readers.
        """
        if not self.reached:
            return ""
        if self.connection_differs:
            return MULTIPLEXED
        unfit = self.flavour.unfit(self.settings)
        return unfit or ("" if relaxed_durability else self.flavour.relaxed(self.settings))


MULTIPLEXED: Final = (
    "its sessions are shared out by something between (ProxySQL, MaxScale), so a position may be another session's. "
    "Connect to the server itself, or switch multiplexing off for this user"
)
NOTHING: Final = Facts({})


def flavour_of(version: str) -> Flavour:
    """The kind of server, by its version: MariaDB names itself there."""
    return MARIADB if "MariaDB" in version else MYSQL


def ask(connection: Any) -> Facts:
    """Asks a server by a connection of our own; needs no right. Raises what PyMySQL raises."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@version, CONNECTION_ID()")
        [(version, answering)] = cursor.fetchall()
    flavour = flavour_of(str(version))

    def rows(question: str) -> Sequence[Mapping[str, Any]]:
        try:
            with connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(question)
                found: Sequence[Mapping[str, Any]] = cursor.fetchall()
                return found
        except (pymysql.err.OperationalError, pymysql.err.ProgrammingError) as error:
            if error.args and error.args[0] in _DENIED:
                return []
            raise

    return Facts(flavour.settings(rows), flavour, connection_differs=int(answering) != connection.thread_id())


_DENIED: Final = {1044, 1064, 1142, 1227}
"""No right to it, or an older server has no such statement."""
