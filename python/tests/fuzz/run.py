"""Fuzzes one target: `python run.py TARGET --seconds 60 [--corpus FOLDER]`.

With atheris where it is installed: libFuzzer, led by the coverage of our code. Else by chance, which finds less.
Ends with a code other than 0 at the first finding, whose octets it names; `--octets HEX` tries one again.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
MAX_LENGTH = 65_536
MOST_SECONDS = 5.0
"""Of processor time for one input: nothing from the wire is without a bound (WIRE-42)."""


def main() -> None:
    """Runs one target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, default=None, help="inputs to begin with; new ones are kept there")
    parser.add_argument("--octets", default=None, help="one input, in hexadecimal")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.octets is not None:
        _target(arguments.target)(bytes.fromhex(arguments.octets))
    elif find_spec("atheris"):
        _by_coverage(arguments.target, arguments.seconds, arguments.corpus)
    else:
        _by_chance(_target(arguments.target), arguments.seconds)


def _target(name: str) -> Callable[[bytes], None]:
    from fuzz.targets import TARGETS

    return TARGETS[name]


def _timed(target: Callable[[bytes], None], data: bytes) -> None:
    began = time.process_time()
    target(data)
    taken = time.process_time() - began
    assert taken < MOST_SECONDS, f"{taken:.1f} s for an input of {len(data)} octets"


def _by_coverage(name: str, seconds: int, corpus: Path | None) -> None:
    import atheris  # type: ignore[import-untyped,unused-ignore]

    with atheris.instrument_imports(include=["antipode"]):
        target = _target(name)

    def try_one(data: bytes) -> None:
        try:
            _timed(target, data)
        except BaseException:
            print(f"FOUND: {name} --octets {data.hex()}", file=sys.stderr, flush=True)
            raise

    folder = [] if corpus is None else [str(corpus)]
    prefix = "./" if corpus is None else f"{corpus}/"
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_LENGTH}", "-timeout=10", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={prefix}", *folder], try_one)
    atheris.Fuzz()


def _by_chance(target: Callable[[bytes], None], seconds: int) -> None:
    seed = time.time_ns()
    print(f"seed {seed}", file=sys.stderr, flush=True)
    rng = random.Random(seed)
    kept = [b""]
    tried, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        data = bytearray(rng.choice(kept))
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(1, 12))
        given = bytes(data[:MAX_LENGTH])
        tried += 1
        try:
            _timed(target, given)
        except BaseException:
            print(f"FOUND: --octets {given.hex()}", file=sys.stderr, flush=True)
            raise
        if rng.random() < 0.05:
            kept = [*kept[-200:], given]
    print(f"stat::number_of_executed_units: {tried}", file=sys.stderr)


if __name__ == "__main__":
    main()
