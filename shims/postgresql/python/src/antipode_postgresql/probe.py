"""What a server allows, asked when a client is wrapped: rights, settings, a pooler before it (spec SHIM-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antipode.shim import logs
from psycopg import OperationalError

from antipode_postgresql.schema import may_call
from antipode_postgresql.session import RefusedError, Session
from antipode_postgresql.targets import Target
from antipode_postgresql.unsure import QUESTION, unsure_words

_FACTS: Final = f"""SELECT pg_is_in_recovery(), pg_backend_pid(), current_setting('synchronous_commit'),
 current_setting('wal_level'), current_setting('server_version_num'), current_user::text,
 {may_call("mark")},
 (SELECT count(*) FROM pg_stat_replication), current_setting('fsync'), current_setting('full_page_writes'),
 (SELECT pid FROM pg_stat_get_wal_receiver()) IS NOT NULL,
 (SELECT extract(epoch FROM clock_timestamp() - last_msg_receipt_time) FROM pg_stat_get_wal_receiver()),
 CASE WHEN pg_is_in_recovery() THEN CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
  ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END END"""
POOLER: Final = (
    "is reached through a pooler in {mode} mode: a statement and the question for its position may go to "
    "different servers. Connect to the server, or set pool_mode = session for this database"
)
NOT_DURABLE: Final = (
    "has {setting} = off: after a crash it may say that it has what it lost. Set {setting} = on, or, where a server "
    "that crashed is rebuilt before it serves readers, say so: wrap(…, relaxed_durability=True)"
)
NO_LOG: Final = "has wal_level = {level}: no standby can follow it. Set wal_level = replica, and restart it"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server allows."""

    reached: bool = False
    recovering: bool = False
    synchronous: str = "on"
    wal_level: str = "replica"
    version: int = 0
    user: str = ""
    marks: bool = False
    replicas: int = 0
    relaxed: str = ""
    """The setting that makes it lose what it acknowledged or replayed, in a crash; empty where there is none."""
    receives: bool = True
    """Of a standby: whether it has a connection to where its log comes from."""
    silent: float = 0.0
    """Of a standby: the seconds since anything came over it; 0 where this user may not know."""
    lag: float | None = None
    """Of a standby: the age of the newest transaction replayed, in seconds; 0 where all that came is replayed."""
    pooler: str = ""
    """The mode of a pooler, `session`, `transaction` or `statement`; empty where there is none."""
    unsure: tuple[tuple[str, str], ...] = ()
    """What makes texts unsure that look like reads: what it is, and its name."""

    def unfit(self, *, relaxed_durability: bool) -> str:
        """Return why positions from here would prove nothing; empty where they do (SHIM-3, SHIM-45)."""
        if self.pooler not in ("", "session"):
            return POOLER.format(mode=self.pooler)
        if self.reached and self.wal_level == "minimal":
            return NO_LOG.format(level=self.wal_level)
        if self.relaxed and not relaxed_durability:
            return NOT_DURABLE.format(setting=self.relaxed)
        return ""


def relaxed_setting(fsync: str | None, full_page_writes: str | None) -> str:
    """Return which of the two settings is off; empty where none is."""
    return "fsync" if fsync == "off" else "full_page_writes" if full_page_writes == "off" else ""


def probe(target: Target, timeout: float) -> Facts:
    """Asks a server; raises what psycopg raises where it does not answer."""
    session = Session(target, timeout)
    try:
        row = session.row(_FACTS)
        backend = int(row[1] or 0)
        return Facts(
            True,
            row[0] == "t",
            row[2] or "on",
            row[3] or "replica",
            int(row[4] or 0),
            row[5] or "",
            row[6] == "t",
            int(row[7] or 0),
            relaxed_setting(row[8], row[9]),
            row[10] == "t",
            float(row[11] or 0),
            None if row[12] is None else float(row[12]),
            "" if backend == session.backend else _pooler(target, session, backend, timeout),
            unsure_words((str(what), str(name)) for what, name in session.run(QUESTION)[0]),
        )
    finally:
        session.close()


def _pooler(target: Target, first: Session, backend: int, timeout: float) -> str:
    """The mode of the pooler between: whether a connection keeps its server process between transactions."""
    second = Session(target, timeout)
    try:
        try:
            second.run("BEGIN")
        except (OperationalError, RefusedError):
            return "statement"  # which takes no transactions
        taken = int(second.row("SELECT pg_backend_pid()")[0] or 0)
        # In transaction mode the first one has given its process back, and gets another while that one is in use.
        again = int(first.row("SELECT pg_backend_pid()")[0] or 0)
        second.run("COMMIT")
    finally:
        second.close()
    return "session" if taken != backend and again == backend else "transaction"


def say_what_lacks(store: str, target: Target, facts: Facts) -> None:
    """One line a minute for each thing that makes proofs dear or impossible."""
    if facts.reached and not facts.recovering and facts.synchronous == "off":
        logs.warn(
            f"async {store}",
            f"{store}: {target.address} commits asynchronously (synchronous_commit = off): each recorded write is "
            "flushed by a small commit behind it. Set it on, or async_commits='incomplete'",
            code="AP509",
        )
