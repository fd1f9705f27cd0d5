"""Whether a server answers, and for how long it has not (spec BAR-26)."""

from __future__ import annotations

from antipode._engine.pace import RETRY_S


class Reachability:
    """What is known of one server; the caller says how long one question to it may take, in seconds."""

    __slots__ = ("_down_since", "_words", "failed_at")

    def __init__(self) -> None:
        self._down_since: float | None = None
        self._words = ""
        self.failed_at = -1e9
        """When it last did not answer, `time.monotonic()`."""

    @property
    def is_down(self) -> bool:
        """Return whether it did not answer the last question."""
        return self._down_since is not None

    @property
    def words(self) -> str:
        """Return the words of the last failure while it does not answer, else empty."""
        return self._words if self.is_down else ""

    def note_answer(self) -> None:
        """Note that it has answered."""
        self._down_since = None

    def note_silence(self, error: Exception, asked_at: float, now: float, most: float) -> None:
        """Note that it did not answer what was asked then; `most`: how long one question may take."""
        if self._down_since is None or not self._is_asked(now, most):  # nor does it count how long this process stood
            self._down_since = max(asked_at, now - most)
        self.failed_at = now
        self._words = str(error) or type(error).__name__

    def is_out(self, now: float, after: float, most: float) -> bool:
        """Return whether it has not answered for so long (`after`), as far as is known lately."""
        if self._down_since is None or now - self._down_since < after:
            return False
        return self._is_asked(now, most)

    def _is_asked(self, now: float, most: float) -> bool:
        """Return whether its last silence was not long ago: somebody has asked it ever since."""
        return now - self.failed_at < RETRY_S[1] + 2 * most
