"""Whether a server has a write: by its own history, by the one it continued, and by marks (spec EPOCH)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven
from antipode.writeid import Ordered, WriteId

from antipode_redis.info import Replication


@dataclass(frozen=True, slots=True)
class Seen:
    """One atomic look at a server: its place in replication, and the marks in its data."""

    replication: Replication
    marks: Mapping[str, int]
    """Epoch -> greatest position that lies before the mark, for the epochs that were asked for."""
    marks_known: bool = True
    """False where the marks could not be read."""
    why_no_marks: str = ""

    @property
    def is_past(self) -> bool:
        """Whether a mark written in the server's own current epoch was applied: older epochs have ended here."""
        return self.replication.epoch in self.marks

    def proved(self) -> dict[str, int]:
        """Per epoch, up to where everything is here."""
        now = self.replication
        proved = dict(self.marks)
        for epoch, counter in ((now.epoch, now.offset), (now.before, now.before_end - 1)):
            if epoch and counter >= 0:
                proved[epoch] = max(counter, proved.get(epoch, -1))
        return proved


def judge(write_id: WriteId, seen: Seen) -> Visibility:
    """What one look proves of one write. Never by the offset of another history."""
    version = write_id.version
    if write_id.key or not isinstance(version, Ordered):
        return unproven(f"{write_id} is no Redis position")
    epoch, wanted = version
    now = seen.replication
    proved = seen.proved()
    reached = proved.get(epoch, -1)
    if wanted <= reached:
        return VISIBLE
    if epoch == now.epoch:
        link = "" if now.link else ", its link to the primary is down"
        return not_yet(f"at {epoch[:4]}….{now.offset}, wanted {wanted}{link}")
    if not seen.marks_known:
        return not_yet(f"in epoch {now.epoch[:4]}…, and {seen.why_no_marks}", unknown_epoch=True)
    if epoch in seen.marks and seen.is_past:
        return unproven(
            f"epoch {epoch[:4]}… has ended here, and no mark covers {wanted}: {seen.marks[epoch]} is the last that is "
            "known to be here",
            UnprovenKind.HISTORY,
        )
    if epoch in proved:
        return not_yet(f"in epoch {now.epoch[:4]}…, has {epoch[:4]}… up to {reached}, and no mark of its own epoch yet")
    return not_yet(f"in epoch {now.epoch[:4]}…, and does not know {epoch[:4]}…", unknown_epoch=True)
