"""SIGTERM while a benchmark runs, also where Python ignores exceptions."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

BEGINNING = """
import asyncio, os, signal
from antipode_benchmarks.postnotification.interruption import heed_sigterm, raise_if_terminated

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass  # the handler is called in here
        print("lived on")

heed_sigterm()
raise_if_terminated()
"""
IN_THE_LOOP = """
async def run():
    Last()
    await asyncio.sleep(60)

asyncio.run(run())
"""
WITHOUT_A_LOOP = """
Last()
print("went on")
raise_if_terminated()
"""


IGNORING = """
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as it is in what a shell has started in its background
"""


@pytest.mark.parametrize("ignoring", ["", IGNORING], ids=["in front", "in the background"])
@pytest.mark.parametrize(
    ("program", "said"), [(IN_THE_LOOP, ["lived on"]), (WITHOUT_A_LOOP, ["went on"])], ids=["loop", "no loop"]
)
def test_one_in_a_finalizer_is_not_lost(program: str, said: list[str], ignoring: str) -> None:
    program = dedent(BEGINNING.replace("heed_sigterm()\nraise", ignoring + "heed_sigterm()\nraise") + program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.split("\n")[:-1] == said
    assert done.stderr.endswith("\nKeyboardInterrupt\n") or "KeyboardInterrupt: SIGTERM" in done.stderr
    assert done.returncode == -2  # as Ctrl-C ends a program
