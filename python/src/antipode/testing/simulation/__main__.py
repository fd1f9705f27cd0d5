"""Plays runs from the command line, and tells what was found.

python -m antipode.testing.simulation FIRST LAST [--mutant NAME] [--shrink]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from antipode.testing.simulation import mutants, outcomes
from antipode.testing.simulation.seams import seams
from antipode.testing.simulation.shrinking import shrunk, told


def main(words: Sequence[str]) -> int:
    """Play the runs of these seeds; return 1 where something was found (with a mutant: where nothing was)."""
    parser = argparse.ArgumentParser(prog="python -m antipode.testing.simulation", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--mutant", choices=sorted(mutants.MUTANTS), help="break the engine so, until a run finds it")
    parser.add_argument("--shrink", action="store_true", help="make what is found smaller")
    parser.add_argument("--most", type=int, default=10, help="stop behind so many runs that found something")
    chosen = parser.parse_args(words)
    begun, runs, failed = time.perf_counter(), 0, 0
    with mutants.mutated(chosen.mutant), seams():
        for outcome in outcomes(range(chosen.first, chosen.last)):
            runs += 1
            if outcome.findings:
                failed += 1
                print(*told(shrunk(outcome) if chosen.shrink else outcome), sep="\n", flush=True)
                if failed >= chosen.most or chosen.mutant:
                    break
    took = time.perf_counter() - begun
    print(f"{runs} runs, {failed} found something; {took:.1f} s, {runs / took:.0f} a second")
    return int(bool(failed) is (chosen.mutant is None))


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a run
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main(sys.argv[1:]))
