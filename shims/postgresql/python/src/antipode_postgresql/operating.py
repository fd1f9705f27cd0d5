"""What operators ask of a server: the epochs that it knows, and settling one by hand (spec EPOCH-24)."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from antipode.shim.administration import SETTLED, EpochRecord

from antipode_postgresql.looking import Look
from antipode_postgresql.positions import Epoch, epoch_of
from antipode_postgresql.session import Session
from antipode_postgresql.targets import target_of

_TIMEOUT_S: Final = 5.0
_ROWS: Final = "SELECT system, timeline, word, counter, made_at::text FROM antipode.epochs ORDER BY made_at, timeline"
_SETTLE: Final = """INSERT INTO antipode.epochs (system, timeline, word, counter)
 VALUES ('{system}', {timeline}, '{word}', {counter})
 ON CONFLICT (system, timeline, word) DO UPDATE SET counter = excluded.counter"""


def list_epochs(target: Any) -> list[EpochRecord]:
    """The epochs in the server's table, with what it can prove of each."""
    with closing(Look(target_of(target), "STORE", _TIMEOUT_S, unique_timelines=False)) as look:
        look.read_marks()
        seen = look.look()
        proved = seen.proved()
        records = []
        for system, timeline, word, counter, made_at in look.session.run(_ROWS)[0]:
            name = str(Epoch(int(system or 0), int(timeline or 0), word or ""))
            settled = int(counter or 0)
            at = settled or proved.get(name, 0)
            foreign = "" if int(system or 0) == seen.system else ", of another system"
            records.append(EpochRecord(name, at, name == seen.epoch, f"since {made_at}{foreign}"))
        return records


def settle(target: Any, name: str, counter: int | None = None) -> None:
    """The operator's word that the store holds an ended epoch, whole or up to a counter: a row, at the primary.

    Raises ValueError for what is no epoch or has not ended, or at a standby.
    """
    epoch = epoch_of(name)
    if epoch is None:
        raise ValueError(f"{name!r} is no epoch of PostgreSQL: it is system, timeline and word, such as s-2-8fcbaf")
    with closing(Session(target_of(target), _TIMEOUT_S)) as session:
        if session.row("SELECT pg_is_in_recovery()")[0] == "t":
            raise ValueError("it is a standby: settle at the primary")
        system, timeline = session.row(
            "SELECT system_identifier::text, "
            "('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int FROM pg_control_system()"
        )
        word = session.run(
            f"SELECT word FROM antipode.epochs WHERE system = '{epoch.system}' AND timeline = {epoch.timeline} "
            "AND counter = 0"
        )[0]
        same = int(system or 0) == epoch.system and int(timeline or 0) == epoch.timeline
        if same and (not word or epoch.word in [row[0] for row in word]):
            raise ValueError(f"{name} is the epoch that is written now: later writes of it would pass unseen")
        session.run(
            _SETTLE.format(
                system=epoch.system,
                timeline=epoch.timeline,
                word=epoch.word,
                counter=SETTLED if counter is None else counter,
            )
        )
