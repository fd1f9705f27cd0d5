"""MySQL: what is asked there, and what its settings allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

from antipode.writeid import Ordered

from antipode_mysql import membership
from antipode_mysql.flavour import Answer, Flavour, Look, Wanted
from antipode_mysql.gtid_sets import GtidSet, is_epoch

_SETTINGS: Final = (
    "version",
    "gtid_mode",
    "group_replication_group_name",
    "log_bin",
    "sync_binlog",
    "replica_preserve_commit_order",
    "replica_parallel_workers",
    "innodb_flush_log_at_trx_commit",
    "read_only",
    "server_id",
    "server_uuid",
)
_FILTERS: Final = "replication filters"
_UNSEEN: Final = "unseen"
_FILTER: Final = re.compile(r"(?:Replicate|Binlog)_(?:Wild_)?(?:Do|Ignore|Rewrite)_(?:DB|Table)$", re.I)


class MySQL(Flavour):
    """Positions: epoch = 16 digits of the server's uuid and the tag, counter = the number; all up to it is meant."""

    name: ClassVar[str] = "MySQL"
    question: ClassVar[bytes] = (
        b"SELECT @@GLOBAL.gtid_executed,@@GLOBAL.server_uuid,@@SESSION.gtid_next,@@sql_log_bin,CONNECTION_ID()"
    )
    look: ClassVar[str] = "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.server_uuid, @@GLOBAL.read_only, CONNECTION_ID()"
    isolation: ClassVar[str] = "@@transaction_isolation"
    track: ClassVar[bytes] = b"SET SESSION session_track_gtids=OWN_GTID"
    epoch_words: ClassVar[str] = "16 digits of a server's uuid, and a tag, such as 3e11fa4771ca11e1"

    def answer(self, row: Sequence[str]) -> Answer:
        text, uuid, following, is_logged, session = row
        executed = GtidSet(text)
        log = tuple(Ordered(epoch, executed.greatest(epoch)) for epoch in executed)
        named = following.startswith("AUTOMATIC")  # else the session itself says whose number it takes
        epochs = set(executed.of_server(uuid)) if named else set(executed)
        own = tuple(position for position in log if position.epoch in epochs)
        mark: Hashable = tuple(sorted((epoch, counter) for epoch, counter in own))
        if any(executed.whole(epoch) != counter for epoch, counter in own):
            mark = executed.text  # the next transaction fills a hole, and the greatest number stays as it is
        return Answer(mark, None, own or log, bool(own) and named, log, is_logged == "1", int(session))

    def seen(
        self, row: Sequence[str], unfit: str, marks: Mapping[str, int] | None = None, before: Look | None = None
    ) -> Look:
        return membership.look(row, unfit, marks or {}, before)

    def wait(self, wanted: Wanted, seconds: float) -> str:
        return f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted.stream}:1-{wanted.number}', {seconds:.4f})"

    def settings(self, rows: Callable[[str], Sequence[Mapping[str, Any]]]) -> dict[str, str]:
        names = ", ".join(f"'{name}'" for name in _SETTINGS)
        asked = rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        found = {str(row["Variable_name"]): str(row["Value"]) for row in asked}
        found[_FILTERS] = _filters(rows)
        return found

    def unfit(self, settings: Mapping[str, str]) -> str:
        if settings.get("gtid_mode") != "ON":
            return (
                f"it has gtid_mode={settings.get('gtid_mode', 'OFF')}, so its transactions have no name. Set "
                "enforce_gtid_consistency=ON and then gtid_mode=ON at every server, one step at a time"
            )
        if settings.get("group_replication_group_name"):
            return (
                "it is set up for group replication (group_replication_group_name), whose members all write under one "
                "name and in blocks of numbers. Keep the store on a source and its replicas"
            )
        if settings.get("log_bin") != "ON":
            return "it has log_bin=OFF, so its writes have no position. Take skip_log_bin away and restart that server"
        if settings.get("sync_binlog") != "1":
            return (
                f"it has sync_binlog={settings.get('sync_binlog')}, so a crash of its machine may take back numbers "
                "that are given again. SET PERSIST sync_binlog=1"
            )
        workers = settings.get("replica_parallel_workers", "0")
        if settings.get("replica_preserve_commit_order") == "OFF" and workers not in ("0", "1"):
            return (
                f"it has replica_preserve_commit_order=OFF with {workers} workers, so what it shows is no state that "
                "the source ever had. SET PERSIST replica_preserve_commit_order=ON with its applier stopped"
            )
        filters = settings.get(_FILTERS, "")
        if filters not in ("", _UNSEEN):
            return (
                f"it filters what it logs or replicates ({filters}), so a position may be passed without its data. "
                "Take the filters away, or keep what they name in a store of its own"
            )
        return ""

    @property
    def reuse(self) -> str:
        return (
            "server uuids may be reused, and then a lost write has the name of another one. If every server that is "
            "rebuilt or restored after it was the primary gets a new server_uuid (a new auto.cnf), say so: "
            "wrap(…, fresh_server_ids=True)"
        )

    def is_epoch(self, epoch: str) -> bool:
        return is_epoch(epoch)


def sees_filters(settings: Mapping[str, str]) -> bool:
    """Whether this login may see whether anything is filtered."""
    return settings.get(_FILTERS) != _UNSEEN


def _filters(rows: Callable[[str], Sequence[Mapping[str, Any]]]) -> str:
    """What is filtered, as far as the login may know it: that takes REPLICATION CLIENT."""
    said = [*rows("SHOW REPLICA STATUS"), *rows("SHOW BINARY LOG STATUS")]
    if not said:
        return _UNSEEN
    return ", ".join(f"{name.lower()}={row[name]}" for row in said for name in row if _FILTER.match(name) and row[name])


MYSQL: Final = MySQL()
