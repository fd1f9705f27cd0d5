"""Whether a server has a commit: by how far it has replayed, and by the history that it follows (spec EPOCH).

Two proofs, always both: the server has got at least as far, *and* this position lies in its own history. A comparison
of positions alone passes for what a failover lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from antipode import Verdict
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven

from antipode_postgresql.positions import Epoch, epoch_of, lsn_of, number_of

FOR_EVER: Final = 2**64


@dataclass(frozen=True, slots=True)
class History:
    """The timelines that a timeline came from, and where each of them ended for it."""

    timeline: int
    ends: Mapping[int, int] = field(default_factory=dict)

    def end_of(self, timeline: int) -> int | None:
        """Up to where a timeline belongs to this history; None where it is no part of it."""
        return FOR_EVER if timeline == self.timeline else self.ends.get(timeline)


@dataclass(frozen=True, slots=True)
class ServerState:
    """One look at a server. `reached` was read first, everything else after it."""

    system: int
    recovering: bool
    reached: int
    """Replayed up to here (a standby), flushed up to here (a primary)."""
    histories: Sequence[History]
    """What it may be following: one where it is known, several while its receiver is down, none where it is hidden."""
    words: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """System and timeline -> the word of the branch that this server is on; absent where no row of it is here."""
    settled: Mapping[str, int] = field(default_factory=dict)
    """Epochs that an operator has vouched for."""
    words_fresh: bool = True
    """Whether the words were read after `reached`."""
    why_hidden: str = ""
    """Why the history cannot be known."""
    unique_timelines: bool = False
    """The operator's word that no two servers ever call different timelines by one number."""

    @property
    def epoch(self) -> str:
        """The epoch that the server is in, as far as is known."""
        if not self.histories:
            return str(Epoch(self.system, 0, ""))
        timeline = max(history.timeline for history in self.histories)
        return str(Epoch(self.system, timeline, self.words.get((self.system, timeline), "")))

    def proved(self) -> dict[str, int]:
        """Per epoch, up to where everything is here; only what holds in every history that it may be following."""
        found = dict(self.settled)
        if not self.histories:
            return found
        for (system, timeline), word in self.words.items():
            if system != self.system:
                continue
            ends = [history.end_of(timeline) for history in self.histories]
            known = [end for end in ends if end is not None]
            if len(known) == len(ends):
                name = str(Epoch(system, timeline, word))
                found[name] = max(found.get(name, 0), min(self.reached, *known))
        return found


def judge(name: str, wanted: int, seen: ServerState) -> Visibility:
    """What one look proves of one position."""
    epoch = epoch_of(name)
    if epoch is None:
        return unproven(f"{name!r} is no epoch of PostgreSQL")
    if wanted <= seen.settled.get(name, -1):
        return VISIBLE
    if epoch.system != seen.system:
        return not_yet(
            "it is another system (a logical replica, a restored dump, a cluster of its own): positions of "
            f"{name} mean nothing there",
            unknown_epoch=True,
        )
    if not seen.histories:
        return unproven(f"its timeline cannot be known: {seen.why_hidden}", UnprovenKind.RIGHT)
    answers = [_judge_in(epoch, wanted, history, seen) for history in seen.histories]
    for answer in answers:
        if answer.verdict is Verdict.NOT_YET:
            return answer
    bad = [answer for answer in answers if answer.verdict is Verdict.UNPROVEN]
    if bad and len(bad) < len(answers):
        return not_yet(f"its receiver is down, and it may be on another timeline: {bad[0].reason}", unanswered=True)
    return bad[0] if bad else VISIBLE


def _judge_in(epoch: Epoch, wanted: int, history: History, seen: ServerState) -> Visibility:
    if epoch.timeline > history.timeline:
        return not_yet(f"on timeline {history.timeline}, wanted timeline {epoch.timeline}", unknown_epoch=True)
    end = history.end_of(epoch.timeline)
    if end is None:
        words = f"timeline {epoch.timeline} is no part of the history of its timeline {history.timeline}"
        return unproven(words, UnprovenKind.HISTORY)
    if wanted > end:
        return unproven(
            f"timeline {epoch.timeline} ended there at {lsn_of(end)}, wanted {lsn_of(wanted)}: it may be lost",
            UnprovenKind.HISTORY,
        )
    other = _other_branch(epoch, wanted, seen)
    if other is not None:
        return other
    if seen.reached >= wanted:
        return VISIBLE
    return not_yet(f"at {lsn_of(seen.reached)} of timeline {history.timeline}, wanted {lsn_of(wanted)}")


def _other_branch(epoch: Epoch, wanted: int, seen: ServerState) -> Visibility | None:
    """Whether the server's timeline of this number is another one: two standbys that were promoted apart."""
    word = seen.words.get((epoch.system, epoch.timeline), "")
    if word == epoch.word:
        if word or epoch.timeline == 1 or seen.unique_timelines:
            return None
        return unproven(
            f"nothing tells timeline {epoch.timeline} from another one of that number: run antipode init, or say "
            "unique_timelines=True where all servers share one archive of the log",
            UnprovenKind.RIGHT,
        )
    if not epoch.word:
        if epoch.timeline == 1 or seen.unique_timelines:
            return None
        words = f"written before the table of epochs was there, in timeline {epoch.timeline}"
        return unproven(words, UnprovenKind.HISTORY)
    if word:
        words = f"its timeline {epoch.timeline} is another one: they were promoted apart"
        return unproven(words, UnprovenKind.HISTORY)
    if seen.reached < wanted or not seen.words_fresh:
        return not_yet(f"at {lsn_of(seen.reached)}, wanted {lsn_of(wanted)}")
    return unproven(
        f"the row of {epoch} in antipode.epochs is not there: it is on another branch, or without "
        "that table (antipode init)",
        UnprovenKind.HISTORY,
    )


def parse_history(timeline: int, text: str) -> History:
    """Return what a history file says: lines `timeline  switch-position  why`, the oldest first.

    A standby that was promoted before it came to the fork which its history names has a later end that is smaller:
    nothing of an older timeline beyond that is there (EPOCH-28).
    """
    ends: dict[int, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].isdigit() and "/" in words[1]:
            end = number_of(words[1])
            ends = {older: min(before, end) for older, before in ends.items()}
            ends[int(words[0])] = end
    return History(timeline, ends)
