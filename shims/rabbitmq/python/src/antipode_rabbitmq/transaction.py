"""A transactional channel (`tx_select`): what was published counts when it is committed, or never (SHIM-11)."""

from __future__ import annotations

from antipode import Opaque
from antipode.shim import Write


class Transaction:
    """The tracked messages that a channel has published since its last commit: pending until the next one."""

    def __init__(self) -> None:
        self._sent: list[tuple[Write, Opaque]] = []

    def add(self, write: Write, version: Opaque) -> None:
        """A message was handed to the broker, which keeps it back."""
        self._sent.append((write, version))

    def _take(self) -> list[tuple[Write, Opaque]]:
        taken, self._sent = self._sent, []
        return taken

    def committing(self) -> None:
        """Note that the current scope is about to send the commit (SCOPE-24)."""
        for write, _ in self._sent:
            write.join_committer()

    def committed(self) -> None:
        """The broker has confirmed the commit."""
        for write, version in self._take():
            write.record(version)

    def rolled_back(self) -> None:
        """The broker has dropped the messages, or does so as the channel ends."""
        for write, _ in self._take():
            write.abandon()

    def in_doubt(self) -> None:
        """The commit was sent, and nobody knows what became of it."""
        for write, _ in self._take():
            write.outcome_unknown()
