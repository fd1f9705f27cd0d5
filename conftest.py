"""For every test of the project."""

from __future__ import annotations

import signal

pytest_plugins = ["pytester"]
"""For tests of our own fixtures and cases, in a run of their own."""


def pytest_configure() -> None:
    """Has Ctrl-C do what it does at a terminal.

    A shell without job control starts what runs in the background (`make test &` in a script) with SIGINT ignored. What
    the tests start would inherit that, and those that interrupt a command would wait for it in vain.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
