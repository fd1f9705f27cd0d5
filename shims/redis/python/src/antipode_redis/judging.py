"""Whether a server has a write: by its own history, by the one it continued, and by marks (spec EPOCH)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from antipode import Ordered, Verdict, WriteId
from antipode.shim import Visibility, judge_position, not_yet, unproven

from antipode_redis.info import Replication


@dataclass(frozen=True, slots=True)
class ServerState:
    """One atomic look at a server: its place in replication, and the marks in its data."""

    replication: Replication
    marks: Mapping[str, int]
    """Epoch -> greatest position that lies before the mark, for the epochs that were asked for."""
    marks_known: bool = True
    """False where the marks could not be read."""
    why_no_marks: str = ""

    def proved(self) -> dict[str, int]:
        """Per epoch, up to where everything is here."""
        now = self.replication
        proved = dict(self.marks)
        for epoch, counter in ((now.epoch, now.offset), (now.before, now.before_end - 1)):
            if epoch and counter >= 0:
                proved[epoch] = max(counter, proved.get(epoch, -1))
        return proved


def judge(write_id: WriteId, seen: ServerState) -> Visibility:
    """What one look proves of one write. Never by the offset of another history."""
    version = write_id.version
    if write_id.key or not isinstance(version, Ordered):
        return unproven(f"{write_id} is no Redis position")
    epoch, wanted = version
    now = seen.replication
    if not seen.marks_known and epoch != now.epoch and wanted > seen.proved().get(epoch, -1):
        return not_yet(f"in epoch {now.epoch[:4]}…, and {seen.why_no_marks}", unknown_epoch=True)
    known = {now.before: now.before_end - 1} if now.before else None
    answer = judge_position(epoch, wanted, current=now.epoch, applied=now.offset, marks=seen.marks, known=known)
    if answer.verdict is Verdict.VISIBLE or now.link:
        return answer
    return answer._replace(reason=f"{answer.reason}; its link to the primary is down")
