"""Where the thread that asks a server sleeps: the one place in the engine that waits for descriptors (spec BAR-38)."""

from __future__ import annotations

import math
import os
import select
from typing import Final

_LOST: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def is_connected(descriptor: int) -> bool:
    """Return whether a socket is open and its peer has not closed it (BAR-62). Reads nothing, and never waits."""
    if descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))
    return not any(events & _LOST for _, events in poll.poll(0))


class Poller:
    """The sleep of one thread, which any other can end. The simulation puts its own in place of this one."""

    def __init__(self) -> None:
        """Open its descriptors; raise OSError where the process has none left."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wait(self, heard: int | None, seconds: float) -> tuple[bool, bool]:
        """Sleep so long at most; return whether somebody woke it, and whether the descriptor `heard` can be read."""
        poll = select.poll()  # takes numbers above 1,023, and no descriptor of its own
        poll.register(self._reader, select.POLLIN)
        if heard is not None:
            poll.register(heard, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(max(math.ceil(seconds * 1000), 0))}
        woken = self._reader in ready
        if woken:
            os.read(self._reader, 4096)
        return woken, heard in ready

    def rest(self, seconds: float) -> None:
        """Sleep so long, or until somebody wakes it; whoever waits next is woken then, too."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.poll(max(seconds * 1000, 0))

    def wake(self) -> None:
        """End the sleep, or the next one where nobody sleeps (any thread)."""
        os.write(self._writer, b"!")

    def close(self) -> None:
        """Close its descriptors; nobody may call `wake` any more."""
        os.close(self._reader)
        os.close(self._writer)
