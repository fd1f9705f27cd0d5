"""Lineages at rest: a column `antipode` beside the row, which a trigger fills from the transaction's own setting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from antipode import current_scope
from antipode.shim import Write, lineage_beside, text_at_rest
from psycopg import generators, pq
from psycopg.errors import error_from_result

from antipode_postgresql.binding import Binding
from antipode_postgresql.packets import Results, simple
from antipode_postgresql.riding import ResultListener
from antipode_postgresql.statements import Kind

COLUMN: Final = "antipode"
RESET: Final = b"RESET antipode.lineage"
_SET_LOCAL: Final = b"SELECT set_config('antipode.lineage', $1, true)"
_SET_SESSION: Final = b"SELECT set_config('antipode.lineage', $1, false)"


def set_local(pgconn: Any, text: str) -> Callable[[], None]:
    """A command of a pipeline: the lineage of what the transaction writes from here on."""
    return partial(pgconn.send_query_params, _SET_LOCAL, [text.encode()])


def set_session(pgconn: Any, text: str) -> Callable[[], None]:
    """The same for what commits by itself; to be followed by RESET."""
    return partial(pgconn.send_query_params, _SET_SESSION, [text.encode()])


class RowLineages:
    """What one connection has told its server to put beside rows."""

    def __init__(self, binding: Binding, pgconn: Any) -> None:
        self.binding = binding
        self.pgconn = pgconn
        self.write: Write | None = None
        """The open transaction's."""
        self.riding: list[Write] = []
        """Those of commits that are queued in a pipeline, and whose replies nobody has heard."""
        self.beside: str | None = None
        """What the server was told, in this transaction; None where that may hold no more."""
        self.in_session = False
        """Whether it was told so for longer than a transaction."""

    def may_set(self, kind: Kind) -> None:
        """A statement was or will be sent that may change settings: ROLLBACK TO takes back what was set behind it."""
        if kind not in (Kind.READ, Kind.WRITE):
            self.beside = None

    def executes(self, kind: Kind = Kind.COMMIT) -> None:
        """Note that the current scope is about to commit or prepare, or to have the queue done (SCOPE-24)."""
        if self.write is not None and kind in (Kind.COMMIT, Kind.PREPARE):
            self.write.join_committer()

    def hears(self) -> None:
        """Note that the current scope is about to hear what is queued: perhaps another scope's commit (SCOPE-24).

        Nobody knows whether a COMMIT that was sent as a text is among it.
        """
        for write in (*self.riding, *(() if self.write is None else (self.write,))):
            write.join_committer()

    def text_beside(self) -> str:
        """Return the lineage that may rest beside what is written now: other writes in flight are marked in it."""
        lineage_out = self.binding.options.lineage_out
        return text_at_rest(lineage_beside(current_scope(), self.write, lineage_out), lineage_out)

    def beside_gen(self, pipeline: Any) -> Any:
        """Tells the server before a write; for one that commits by itself until `reset_gen`.

        Where the server refuses, that is the write's own error: it would rest without its lineage.
        """
        pgconn, text = self.pgconn, self.text_beside()
        if pipeline is not None:
            pipeline.command_queue.append(set_local(pgconn, text))
            pipeline.result_queue.append((ResultListener(lambda results: None, self._raised), None))
        elif pgconn.transaction_status == pq.TransactionStatus.INTRANS:
            if text != self.beside:
                set_local(pgconn, text)()
                self._raised((yield from generators.execute(pgconn)))
                self.beside = text
        elif pgconn.transaction_status == pq.TransactionStatus.IDLE:
            set_session(pgconn, text)()
            self._raised((yield from generators.execute(pgconn)))
            self.in_session = True

    def _raised(self, results: Results) -> None:
        """Raises the server's error, as psycopg does it for the application's own command."""
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise error_from_result(result, encoding=self.pgconn._encoding)

    def reset_gen(self) -> Any:
        """Takes the lineage back from the connection: nothing of ours stays on it (SHIM-5)."""
        if (
            self.in_session
            and self.pgconn.status == pq.ConnStatus.OK
            and self.pgconn.transaction_status == pq.TransactionStatus.IDLE
        ):
            self.in_session = False
            yield from simple(self.pgconn, RESET)
