"""MySQL: what is asked there, and what its settings allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

from antipode import Ordered

from antipode_mysql import membership
from antipode_mysql.flavour import Answer, Flavour, Look, WantedPosition
from antipode_mysql.gtid_sets import GtidSet, is_epoch, owned

_SETTINGS: Final = (
    "version",
    "gtid_mode",
    "group_replication_group_name",
    "log_bin",
    "sync_binlog",
    "replica_preserve_commit_order",
    "replica_parallel_workers",
    "replica_skip_errors",
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
    question: ClassVar[bytes] = (  # what is owned comes first: it goes over into what is executed in one step
        b"SELECT @@GLOBAL.gtid_owned,@@GLOBAL.gtid_executed,@@GLOBAL.server_uuid,@@SESSION.gtid_next,@@sql_log_bin,"
        b"CONNECTION_ID()"
    )
    look: ClassVar[str] = "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.server_uuid, @@GLOBAL.read_only, CONNECTION_ID()"
    isolation: ClassVar[str] = "@@transaction_isolation"
    durable: ClassVar[Mapping[str, tuple[str, ...]]] = {"sync_binlog": ("1",), "innodb_flush_log_at_trx_commit": ("1",)}
    cure: ClassVar[str] = "SET PERSIST {}"
    track: ClassVar[bytes] = b"SET SESSION session_track_gtids=OWN_GTID"
    epoch_words: ClassVar[str] = "16 digits of a server's uuid, and a tag, such as 3e11fa4771ca11e1"

    def answer(self, row: Sequence[str]) -> Answer:
        on_the_way, text, uuid, following, is_logged, session = row
        executed, may_be_seen = GtidSet(text), owned(on_the_way)
        mine = set(executed.of_server(uuid))
        log = [
            Ordered(epoch, max(executed.greatest(epoch), may_be_seen.get(epoch, 0)))
            for epoch in dict.fromkeys((*sorted(mine), *executed, *may_be_seen))  # its own come first
        ]
        named = following.startswith("AUTOMATIC")  # else the session itself says whose number it takes
        own = tuple(position for position in log if position.epoch in mine) if named else tuple(log)
        counted = mine if named else set(executed)
        mark: Hashable = tuple(sorted((epoch, executed.greatest(epoch)) for epoch in counted))
        if any(executed.whole(epoch) != executed.greatest(epoch) for epoch in counted):
            mark = executed.text  # the next transaction fills a hole, and the greatest number stays as it is
        return Answer(mark, None, own or tuple(log), bool(own) and named, tuple(log), is_logged == "1", int(session))

    def seen(
        self, row: Sequence[str], unfit: str, marks: Mapping[str, int] | None = None, before: Look | None = None
    ) -> Look:
        return membership.look(row, unfit, marks or {}, before)

    def wait(self, wanted: WantedPosition, seconds: float) -> str:
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
        workers = settings.get("replica_parallel_workers", "0")
        if settings.get("replica_preserve_commit_order") == "OFF" and workers not in ("0", "1"):
            return (
                f"it has replica_preserve_commit_order=OFF with {workers} workers, so what it shows is no state that "
                "the source ever had. SET PERSIST replica_preserve_commit_order=ON with its applier stopped"
            )
        skipped = settings.get("replica_skip_errors", "OFF")
        if skipped != "OFF":
            return (
                f"it has replica_skip_errors={skipped}, so it counts as executed what it could not apply. Take it away "
                "and restart that server"
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
    logged = rows("SHOW BINARY LOG STATUS") or rows("SHOW MASTER STATUS")  # the one since 8.2, the other before 8.4
    said = [*rows("SHOW REPLICA STATUS"), *logged]
    if not said:
        return _UNSEEN
    return ", ".join(f"{name.lower()}={row[name]}" for row in said for name in row if _FILTER.match(name) and row[name])


MYSQL: Final = MySQL()
