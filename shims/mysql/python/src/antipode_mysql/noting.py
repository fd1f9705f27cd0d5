"""What a recorded history is told of statements: that they read, and no more (spec HIST-36)."""

from __future__ import annotations

from collections.abc import Sequence

from antipode.recorder import Seen, note_read, noting
from antipode.scope import current_scope
from antipode.writeid import WriteId

from antipode_mysql.binding import Binding
from antipode_mysql.statements import is_noted


@noting
def read(binding: Binding, sql: bytes, *, several: bool, covers: Sequence[WriteId] = ()) -> None:
    """A statement reads, wherever it has got to: which writes it shows nobody knows.

    covers: the positions that go into lineages with what it read.
    """
    noted = note_read(binding.store, current_scope()) if is_noted(sql, several=several) else None
    if noted is not None:
        noted.over([Seen(b"")], covers)
