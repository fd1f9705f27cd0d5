"""Stale reads that Hypothesis chooses, and shrinks (spec MONKEY-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antipode.memory import Choose, StaleRead


def drawn(data: Any) -> Choose:
    """What `antipode.memory.Store(…, monkey=)` takes, for a test under Hypothesis: `data` is what `st.data()` gives.

    Each read that may be stale is a draw, which Hypothesis prints. A failing test shrinks to the fewest and least stale
    reads. Make the store in the test itself, inside `isolated()`. Needs the package `hypothesis`.
    """
    from hypothesis import strategies

    def choose(read: StaleRead) -> int:
        behind: int = data.draw(strategies.integers(0, read.most), label=str(read))
        return behind

    return choose
