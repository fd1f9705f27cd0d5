"""What is known of the server behind one connection."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from antipode.shim import note_marks
from psycopg import pq

from antipode_postgresql.binding import Binding
from antipode_postgresql.moments import Moments
from antipode_postgresql.packets import refusal_of, simple
from antipode_postgresql.positions import Epoch
from antipode_postgresql.schema import may_call

_FACTS: Final = (
    f"SELECT system_identifier::text, {may_call('mark')},"
    " (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') FROM pg_control_system()"
).encode()
_MARK: Final = b"SELECT antipode.mark()"
NO_TABLE: Final = (
    "there is no table of epochs that its user may use: after a failover its positions are unproven. Run: "
    "antipode init {store} --at URL-OF-THE-PRIMARY --user {user} --run"
)


class KnownServer:
    """What one connection has found out about its server; shared by all wraps of the connection."""

    __slots__ = (
        "asks_how",
        "epoch",
        "flows",
        "has_question",
        "moments",
        "prepared",
        "questions",
        "row_by_row",
        "segment",
        "spelled",
        "system",
        "timeline",
    )

    def __init__(self) -> None:
        self.flows: WeakSet[Any] = WeakSet()
        """The wraps' own records of what is open."""
        self.system = 0
        self.segment = 0
        self.timeline = 0
        self.epoch = ""
        """Of `timeline`; empty until it was asked for."""
        self.spelled = b""
        """`timeline` as the names of the log's files begin with it; empty likewise."""
        self.questions = 0
        """How often the position was asked for by the extended protocol; as psycopg counts its statements."""
        self.prepared = False
        """Whether the server has as prepared statements what rides behind a write."""
        self.asks_how = 0
        """How many of the next commits ask how they are made, too."""
        self.has_question = False
        """Whether it has the question for the position, which rides with a COMMIT, too."""
        self.row_by_row = False
        """Whether libpq may go on to hand out one row at a time: until something is sent outside a pipeline."""
        self.moments = Moments()

    def holder(self, flow: Any) -> Any:
        """Return the wrap's record that has a write of the open transaction: this one's, where it has (SCOPE-24)."""
        if flow.write is not None:
            return flow
        return next((other for other in list(self.flows) if other.write is not None), flow)

    def is_due(self, threshold: int | None) -> bool:
        """Counts one more question; whether it is to be prepared now: as often asked as psycopg asks before it does."""
        if threshold is None:
            return False
        self.questions += 1
        return self.questions > threshold

    def forget_prepared(self) -> None:
        """The server has none of our prepared statements any more."""
        self.prepared = self.has_question = False
        self.questions = 0


def learn_gen(binding: Binding, pgconn: Any, known: KnownServer, timeline: int) -> Any:
    """Asks which system and branch this is; once a connection, and again after a promotion under it."""
    facts = (yield from simple(pgconn, _FACTS))[-1]
    if facts.status != pq.ExecStatus.TUPLES_OK:
        return
    known.system = int(facts.get_value(0, 0))
    known.segment = int(facts.get_value(0, 2))
    word = ""
    if facts.get_value(0, 1) == b"t":
        marked = (yield from simple(pgconn, _MARK))[-1]
        if marked.status == pq.ExecStatus.TUPLES_OK:
            word = marked.get_value(0, 0).decode()
            note_marks(binding.store.name, None)
        else:
            note_marks(binding.store.name, refusal_of([marked]))
            words = refusal_of([marked])
            binding.say("marks", f"the epochs of {binding.store.name} cannot be marked: {words}", code="AP508")
    else:
        words = NO_TABLE.format(store=binding.store.name, user=pgconn.user.decode())
        note_marks(binding.store.name, words)
        binding.say("marks", f"{binding.store.name}: {words}", code="AP508")
    known.timeline = timeline
    known.epoch = str(Epoch(known.system, timeline, word))
    known.spelled = b"%08X" % timeline
