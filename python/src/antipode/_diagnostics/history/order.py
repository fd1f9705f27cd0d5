"""In which order a scope's operations go into a history, where they may overlap (spec HIST-5, HIST-26).

What overlaps nothing stands in the scope's own thread. What is begun while another operation of the scope is under way
stands in a thread of its own, with a message from the scope where it is begun and one back where it ends, and so comes
before nothing that was begun before its end.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Line = dict[str, Any]
Put = Callable[[Line], None]


class Strand:
    """One scope in the history: its name, and what of it is under way."""

    __slots__ = ("beside", "holder", "loose", "name", "request")

    def __init__(self, name: str, request: str) -> None:
        self.name = name
        self.request = request
        self.holder: Step | None = None
        """The operation that will stand in the scope's own thread."""
        self.loose: list[str] = []
        """Messages back from operations that ended while the holder was under way."""
        self.beside = itertools.count(1)


class Step:
    """One operation from its beginning to its end."""

    __slots__ = ("heard", "lineage", "name", "over", "strand")

    def __init__(self, strand: Strand, lineage: Any, name: str = "", heard: Sequence[str] = ()) -> None:
        self.strand = strand
        self.lineage = lineage
        """What the scope carried when it was begun."""
        self.name = name
        """Its own thread, where it has one."""
        self.heard = heard
        """What that thread hears first."""
        self.over = False


class Order:
    """Puts operations where they belong. Not for several threads at once: the recorder holds its lock."""

    def __init__(self, process: str, tag: str, put: Put) -> None:
        self._process = process
        self._tag = tag
        self._put = put
        self._ids = itertools.count(1)

    def new_id(self) -> str:
        """An id that no other line of any process has."""
        return f"{self._tag}{next(self._ids)}"

    def line(self, kind: str, scope: str, request: str = "", **fields: Any) -> Line:
        """A line with what all of them have (HIST-2)."""
        line: Line = {"history": 1, "id": self.new_id(), "kind": kind, "process": self._process, "scope": scope}
        if request:
            line["request"] = request
        return line | {"time": round(time.time(), 6)} | fields

    def begin(self, strand: Strand, lineage: Any) -> Step:
        """An operation of the scope is begun."""
        if strand.holder is None:
            strand.holder = Step(strand, lineage)
            return strand.holder
        fork = self._tell(strand, strand.name)
        return Step(strand, lineage, f"{strand.name}+{next(strand.beside)}", (fork, *strand.loose))

    def end(self, step: Step, lines: Iterable[tuple[str, Line]], *, certain: bool = True) -> None:
        """It has ended, with these lines: their kinds, and what they say besides. None where nothing happened.

        `certain`: whether it is known to have taken effect by now. What may do so later comes before nothing here.
        """
        if step.over:
            return
        step.over = True
        strand = step.strand
        told = list(lines)
        if not step.name and not certain and told:
            step.heard = (self._tell(strand, strand.name),)
        name = step.name or (strand.name if certain else f"{strand.name}+{next(strand.beside)}")
        if told:
            self._hear(strand, name, step.heard)
            for kind, fields in told:
                self._put(self.line(kind, name, strand.request, lineage=step.lineage, **fields))
        if not step.name:
            strand.holder = None
            loose, strand.loose = strand.loose, []
            self._hear(strand, strand.name, loose)
        elif told and certain:
            back = self._tell(strand, name)
            if strand.holder is None:
                self._hear(strand, strand.name, (back,))
            else:
                strand.loose = [each for each in strand.loose if each not in step.heard] + [back]

    def instant(self, strand: Strand, kind: str, lineage: Any, **fields: Any) -> None:
        """An operation that ends as it begins: a sending, a receipt."""
        self.end(self.begin(strand, lineage), [(kind, fields)])

    def joined(self, ended: Strand, strand: Strand) -> None:
        """All that was done in one scope comes before what is done in another from now on."""
        message = self.new_id()
        self.instant(ended, "send", None, message=message)
        self.instant(strand, "receive", None, message=message)

    def _tell(self, strand: Strand, name: str) -> str:
        """A message within the scope, which carries all that its sender depends on (HIST-12)."""
        message = self.new_id()
        self._put(self.line("send", name, strand.request, message=message))
        return message

    def _hear(self, strand: Strand, name: str, messages: Iterable[str]) -> None:
        for message in messages:
            self._put(self.line("receive", name, strand.request, message=message))
