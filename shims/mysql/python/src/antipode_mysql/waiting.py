"""Reads that wait on their own connection, or that say what they depend on (spec BAR, SHIM-13; reach `session`)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from antipode.at_rest import lineage_at_rest
from antipode.lineage import EMPTY, Lineage
from antipode.reading import Reading, current_reading
from antipode.scope import Scope, current_scope
from antipode.shim import unproven
from antipode.verdict import Verdict, Visibility
from antipode.wait_on_read import waited_in_vain
from antipode.writeid import Ordered, WriteId

from antipode_mysql import column
from antipode_mysql.binding import Binding
from antipode_mysql.flavour import Flavour, Look, answer_of, texts
from antipode_mysql.probe import MULTIPLEXED
from antipode_mysql.shim import MySQLShim

_SLICE_S: Final = 0.5
_PAUSE_S: Final = 0.01
Ask = Callable[[bytes], Awaitable[Sequence[Sequence[bytes | None]]]]
"""Asks a question on the read's own connection; the rows."""
Pause = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""
_PAST: Final = unproven(
    "the open transaction reads what was there when it began, and that is older than what the read depends on. COMMIT "
    "or ROLLBACK before reading"
)


class Snapshot:
    """What the open transaction of a connection shows: nothing newer than its first read."""

    __slots__ = ("proved", "taken")

    def __init__(self) -> None:
        self.taken = False
        self.proved: Mapping[str, int] = {}
        """What was known to be there just before it was taken."""

    def covers(self, ids: Sequence[WriteId]) -> bool:
        """Whether these writes were there when it was taken."""
        return all(
            isinstance(w.version, Ordered) and self.proved.get(w.version.epoch, -1) >= w.version.counter for w in ids
        )


class ReadCall:
    """One read: what it has to wait for, and who wants to know what it depends on."""

    def __init__(
        self,
        binding: Binding,
        flavour: Flavour,
        reading: Reading | None,
        ids: list[WriteId],
        scope: Scope | None,
        merges: bool,
    ) -> None:
        self.binding = binding
        self.flavour = flavour
        self.ids = ids
        self.trouble: Visibility | None = None
        """Why the read's writes are not visible, once it has given up."""
        self._last: Look | None = None
        self._scope = scope
        self._merged: Reading | None = Reading() if merges and scope is not None else None
        self._readings = [each for each in (reading, self._merged) if each is not None]
        self.covers: list[WriteId] = []
        """The positions that go into lineages with what was read."""
        self._began = time.monotonic()
        self._deadline = self._began + binding.timeout
        if scope is not None and scope.deadline is not None:
            self._deadline = min(self._deadline, scope.deadline)

    @property
    def collects(self) -> bool:
        """Whether somebody wants to know what the value depends on."""
        return bool(self._readings)

    # Before the read

    async def wait(self, ask: Ask, pause: Pause, session: int, snapshot: Snapshot | None) -> None:
        """Waits on this connection until the read's writes are visible there, or the deadline has passed.

        `snapshot`: that of the open transaction, if the read is part of one.
        """

        while self.ids:
            seen, repeats = await self._look(ask, session)
            answers = await self._judged(seen, ask)
            missing = [answer for answer in answers if answer.verdict is not Verdict.VISIBLE]
            if snapshot is not None and not snapshot.taken:
                snapshot.proved = seen.proved()
            elif snapshot is not None and repeats and not snapshot.covers(self.ids):
                missing = [_PAST]
            if not missing:
                return
            left = self._deadline - time.monotonic()
            final = [answer for answer in missing if answer.verdict is Verdict.UNPROVEN]
            if final or left <= 0:
                self.trouble = (final or missing)[0]
                return
            wanted = seen.waited_for(self.ids, answers)
            if wanted is None:
                await pause(min(left, _PAUSE_S))
            else:
                await ask(self.flavour.wait(wanted, min(left, _SLICE_S)).encode())

    async def _judged(self, seen: Look, ask: Ask) -> list[Visibility]:
        """What a look proves of each write. Whether the applier is at rest is asked behind it, where that decides."""
        decides = False

        def is_idle() -> bool:
            nonlocal decides
            decides = True
            return False

        answers = [seen.judge(write_id, is_idle) for write_id in self.ids]
        if not decides or texts((await ask(self.flavour.is_idle.encode()))[0]) != ["0"]:
            return answers
        return [seen.judge(write_id, lambda: True) for write_id in self.ids]

    async def _look(self, ask: Ask, session: int) -> tuple[Look, bool]:
        """Where the connection's server is, and whether its transactions repeat what they have read."""
        *where, answering, isolation = texts((await ask(f"{self.flavour.look}, {self.flavour.isolation}".encode()))[0])
        binding = self.binding
        shim = binding.store.shim
        assert isinstance(shim, MySQLShim)
        unfit = MULTIPLEXED if int(answering) != session else binding.unfit
        unfit = unfit or ("" if shim.fresh_ids else self.flavour.reuse)
        self._last = self.flavour.seen(where, unfit, before=self._last)
        return self._last, isolation in ("REPEATABLE-READ", "SERIALIZABLE")

    # After it

    def saw(self, row: Sequence[bytes | None] | None, session: int) -> None:
        """Where the server was behind the read: that covers what was read."""
        name = self.binding.store.name
        answer = answer_of(self.flavour, row)
        for reading in self._readings:
            if answer is None or answer.session != session or not answer.log:
                reading.marked(name)
            else:
                self.covers = [WriteId.position(name, *position) for position in answer.log]
                reading.saw(*self.covers)

    def saw_rows(self, names: Sequence[str], rows: Sequence[Any]) -> None:
        """The lineages beside the rows that were read join."""
        if not self.binding.takes or column.NAME not in names:
            return
        places_ = column.places(names)
        name = self.binding.store.name
        for row in rows:
            values = [row[column.NAME]] if isinstance(row, Mapping) else [row[place] for place in places_]
            for value in values:
                beside = lineage_at_rest(value, name, True)
                for reading in self._readings:
                    reading.saw(lineage=beside)

    def finish(self) -> None:
        """The read is over: automatic merging."""
        if self._merged is not None and self._scope is not None:
            self._scope.transfer_read(self._merged.lineage)

    def refuse(self) -> None:
        """Raise what the policies say of a wait in vain, before anything is sent: what reads may also write."""
        trouble = self.trouble
        if trouble is None:
            return
        binding = self.binding
        name = binding.store.name
        words = (
            f"{name} at {binding.target.address}: {trouble.reason}. The read waited for it "
            f"{binding.timeout * 1000:.0f} ms at most"
        )
        is_unproven = trouble.verdict is Verdict.UNPROVEN or trouble.unknown_epoch
        waited = time.monotonic() - self._began
        waited_in_vain(name, words, waited, self._scope, unproven=is_unproven, is_past=trouble is _PAST)


def read_call(binding: Binding, flavour: Flavour) -> ReadCall | None:
    """What a read has to do besides reading; None where it is a plain one."""
    reading = current_reading()
    if reading is None and not binding.waits and not binding.merges:
        return None
    scope = current_scope()
    after: Lineage = EMPTY
    if reading is not None and reading.after is not None and not binding.follows:
        after = reading.after
    elif binding.waits and scope is not None:
        after = scope.recorded_lineage
    ids = after.of_store(binding.store.name)
    merges = binding.merges and scope is not None
    if reading is None and not ids and not merges:
        return None
    return ReadCall(binding, flavour, reading, ids, scope, merges)
