"""MariaDB: what is asked there, and what its settings allow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

from antipode_mysql.flavour import Answer, Flavour, Look, WantedPosition
from antipode_mysql.gtids import State, parse, parse_epoch, places
from antipode_mysql.judging import ServerState

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
    "slave_skip_errors",
    *_FILTERS,
)


class MariaDB(Flavour):
    """Positions: epoch = `domain-server_id`, counter = the sequence."""

    name: ClassVar[str] = "MariaDB"
    question: ClassVar[bytes] = b"SELECT @@last_gtid,@@GLOBAL.gtid_binlog_pos,@@sql_log_bin,CONNECTION_ID()"
    look: ClassVar[str] = (
        "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos, @@GLOBAL.server_id, CONNECTION_ID()"
    )
    isolation: ClassVar[str] = "@@tx_isolation"
    is_idle: ClassVar[str] = (
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'SLAVES_RUNNING'"
    )
    unwritten: ClassVar[Hashable] = ""
    durable: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "sync_binlog": ("1",),
        "innodb_flush_log_at_trx_commit": ("1", "3"),
    }
    cure: ClassVar[str] = "SET GLOBAL {}, and in its configuration, too"
    epoch_words: ClassVar[str] = "domain-server_id, such as 0-1"

    def answer(self, row: Sequence[str]) -> Answer:
        last, log, is_logged, session = row
        newest = next(iter(parse(last)), None)
        covers = tuple(gtid.position for gtid in parse(log))
        return Answer(last, newest and newest.position, covers, False, covers, is_logged == "1", int(session))

    def seen(
        self, row: Sequence[str], unfit: str, marks: Mapping[str, int] | None = None, before: Look | None = None
    ) -> Look:
        state, place, server_id = row
        return ServerState(State(state), places(place), int(server_id), unfit, marks or {})

    def wait(self, wanted: WantedPosition, seconds: float) -> str:
        """It compares domain and number, never the server; so any server's number will do."""
        return f"SELECT MASTER_GTID_WAIT('{wanted.stream}-1-{wanted.number}', {seconds:.4f})"

    def settings(self, rows: Callable[[str], Sequence[Mapping[str, Any]]]) -> dict[str, str]:
        [row] = rows(f"SELECT {', '.join(f'@@GLOBAL.{name} AS {name}' for name in _SETTINGS)}")
        return {name: "" if value is None else str(value) for name, value in row.items()}

    def unfit(self, settings: Mapping[str, str]) -> str:
        if settings["log_bin"] not in ("1", "ON"):
            return "it has log_bin=OFF, so its writes have no position. Set log_bin and restart that server"
        if settings["log_slave_updates"] not in ("1", "ON"):
            return (
                "it has log_slave_updates=OFF, so an applied write cannot be proved there. Set log_slave_updates=ON "
                "and restart that server"
            )
        skipped = settings.get("slave_skip_errors", "OFF")
        if skipped not in ("OFF", ""):
            return (
                f"it has slave_skip_errors={skipped}, so it counts as applied what it could not apply. Take it away "
                "and restart that server"
            )
        filters = [f"{name}={settings[name]}" for name in _FILTERS if settings.get(name)]
        if filters:
            return (
                f"it filters what it replicates ({', '.join(filters)}), so a position may be passed without its data. "
                "Take the filters away, or keep what they name in a store of its own"
            )
        return ""

    @property
    def reuse(self) -> str:
        return (
            "server ids may be reused, and then a lost write has the name of another one. If every server that is "
            "rebuilt, restored, or rejoins after it was the primary gets a server_id that no server had before, say "
            "so: wrap(…, fresh_server_ids=True)"
        )

    def is_epoch(self, epoch: str) -> bool:
        return parse_epoch(epoch) is not None


MARIADB: Final = MariaDB()
