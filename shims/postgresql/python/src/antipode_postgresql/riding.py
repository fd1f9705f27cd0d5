"""What of ours rides in the application's pipeline: psycopg keeps a queue of who hears each command's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from antipode import Ordered
from antipode.shim import Write
from psycopg import pq

from antipode_postgresql.packets import Results, place_of

if TYPE_CHECKING:
    from antipode_postgresql.flow import Flow


class ResultListener:
    """Stands in a pipeline's queue where psycopg expects a cursor: it hears the results of our own command.

    `check` raises the error of one that is sent before the application's: the server passes that over then, and
    psycopg raises of a pipeline what failed first.
    """

    def __init__(self, hear: Callable[[Results], None], check: Callable[[Results], None] | None = None) -> None:
        self._check_results = check or (lambda results: None)
        self._set_results = hear


class Rider:
    """One commit of a pipeline, whose answers come later."""

    def __init__(self, flow: Flow, write: Write, certain: bool, *, within: bool) -> None:
        self.flow = flow
        self.write = write
        self.certain = certain
        self.within = within
        """Whether something may have been committed before the COMMIT, whatever became of that (SCOPE-25)."""
        self.how: Results = []

    def hear_how(self, results: Results) -> None:
        """What the server said before the COMMIT."""
        self.how = results

    def hear_place(self, results: Results) -> None:
        """What it said behind it."""
        flow, place = self.flow, place_of(results)
        flow.riding.remove(self.write)
        if not self.how or self.how[-1].status != pq.ExecStatus.TUPLES_OK:
            self._not_done()  # it had failed before: nothing of it is left
            return
        how = self.how[0]  # behind a stream the row comes by itself, and an answer without any behind it
        if how.get_value(0, 1) == b"f":
            self._not_done()
            return
        plain = (
            place is not None
            and place.certain(flow.known.segment)
            and how.get_value(0, 0) != b"off"
            and not flow.binding.unfit
        )
        if plain and place is not None and flow.known.epoch and place.timeline == flow.known.timeline:
            self.write.record_position(Ordered(flow.known.epoch, place.position))
        elif results and results[-1].status == pq.ExecStatus.PIPELINE_ABORTED:
            self._not_done()  # the COMMIT failed
        else:
            flow.unsettled.append((self.write, self.certain))

    def _not_done(self) -> None:
        if self.within:
            self.flow.unsettled.append((self.write, False))
        else:
            self.write.abandon()
