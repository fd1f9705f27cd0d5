"""SIGTERM ends a command as Ctrl-C does: with its services and servers, and what had ended kept."""

from __future__ import annotations

import signal
import threading

_terminated = threading.Event()


def heed_sigterm() -> None:
    """Takes SIGTERM for Ctrl-C from now on; for the main thread.

    Not by raising KeyboardInterrupt itself: within `asyncio.run`, Ctrl-C cancels the main task, while an exception
    would come up wherever the loop happens to be, and Python ignores it in a finalizer.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)


def raise_if_terminated() -> None:
    """Raises the KeyboardInterrupt of a SIGTERM that was lost on its way: for between two runs."""
    if _terminated.is_set():
        raise KeyboardInterrupt(signal.SIGTERM.name)


def _interrupt(_: int, __: object) -> None:
    _terminated.set()
    signal.raise_signal(signal.SIGINT)
