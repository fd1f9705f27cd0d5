"""Judging one position at one server, for stores whose ended epochs are decided by marks (spec EPOCH-9 to EPOCH-14)."""

from __future__ import annotations

from collections.abc import Mapping

from antipode._model.verdict import VISIBLE, UnprovenKind, Visibility, not_yet, unproven


def judge_position(
    epoch: str,
    counter: int,
    *,
    current: str,
    applied: int,
    marks: Mapping[str, int],
    known: Mapping[str, int] | None = None,
) -> Visibility:
    """Whether `epoch.counter` is visible at a server that follows `current` and has applied it up to `applied`.

    `marks`: what the marks that it has applied say, epoch to the greatest position wholly there. `known`: ends of
    epochs that the server's own state proves beside them.
    """
    end = max(marks.get(epoch, -1), (known or {}).get(epoch, -1))
    if epoch == current:
        end = max(end, applied)
    if counter <= end:
        return VISIBLE
    if epoch == current:
        return not_yet(f"at {epoch[:4]}….{applied}, wanted {counter}")
    if end < 0:
        return not_yet(f"epoch {epoch[:4]}… is not known there (it is at {current[:4]}….{applied})", unknown_epoch=True)
    if current in marks:
        words = f"epoch {epoch[:4]}… has ended there at {end}, wanted {counter}: it may be lost"
        return unproven(words, UnprovenKind.HISTORY)
    return not_yet(f"epoch {epoch[:4]}… is proved up to {end} only, wanted {counter}")
