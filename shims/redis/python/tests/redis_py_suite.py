"""Runs redis-py's own tests through the wrapped client, and beside it through the plain one.

redis-py's source distribution of the installed version holds its tests; it is fetched into a cache outside this tree,
and nothing of it is kept here. A test that passes plain has to pass wrapped, or be listed in `redis_py_exceptions.txt`
with the reason; a listed test that passes makes the list stale, which is a failure, too.

    python redis_py_suite.py [--mode wrapped|reading|field] [FILE…]

REDIS_PY_CHECKOUT names a checkout to take the tests from instead.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import redis
from antipode_lab import Lab

FILES = (
    "test_commands.py",
    "test_pipeline.py",
    "test_connection_pool.py",
    "test_asyncio/test_commands.py",
    "test_asyncio/test_pipeline.py",
    "test_asyncio/test_connection_pool.py",
)
MODES = ("wrapped", "reading", "field")
HERE = Path(__file__).parent
EXCEPTIONS = HERE / "redis_py_exceptions.txt"


def checkout() -> Path:
    """The folder that holds redis-py's `tests`, for the version that is installed."""
    given = os.environ.get("REDIS_PY_CHECKOUT")
    if given:
        return Path(given)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "antipode"
    home = base / f"redis-{redis.__version__}"
    if (home / "tests" / "conftest.py").exists():
        return home
    base.mkdir(parents=True, exist_ok=True)
    sdist = base / "sdist"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, f"redis=={redis.__version__}", "-d", str(sdist)], check=True)
    archive = next(sdist.glob(f"redis-{redis.__version__}.tar.gz"))
    partial = base / f"redis-{redis.__version__}.{os.getpid()}"
    with tarfile.open(archive) as packed:
        packed.extractall(partial, filter="data")
    shutil.rmtree(home, ignore_errors=True)
    (partial / f"redis-{redis.__version__}").rename(home)
    shutil.rmtree(partial)
    # Its tests have to meet the installed package, not the one beside them.
    shutil.rmtree(home / "redis", ignore_errors=True)
    return home


def run(mode: str, files: Sequence[str], url: str, report: Path) -> dict[str, str]:
    """Runs the tests; returns each one's outcome: `passed`, `failed` or `skipped`."""
    home = checkout()
    options = ["-q", "-x", "--maxfail=1000000", "-p", "redis_py_plugin", "-p", "no:cacheprovider", "--timeout=60"]
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *options, f"--redis-url={url}", f"--junitxml={report}", "-o", "addopts="),
            *("-W", "ignore", "-m", "not redismod and not onlycluster and not cp_integration and not ssl"),
            *(f"tests/{name}" for name in files),
        ],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(HERE), "REDIS_PY_SUITE_MODE": mode},
        stdout=(report.with_suffix(".log")).open("w"),
        stderr=subprocess.STDOUT,
        check=False,
    )
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = case.find("failure") is not None or case.find("error") is not None
        worst = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
        if outcomes.get(name) != "failed":
            outcomes[name] = worst
    return outcomes


@dataclass(frozen=True)
class Listed:
    """A test of which it is known that it differs, and why."""

    reason: str
    sometimes: bool


def exceptions(mode: str) -> dict[str, Listed]:
    """The tests that are listed for a mode. A line: `modes test  # reason`."""
    listed = {}
    for line in EXCEPTIONS.read_text("utf-8").splitlines():
        words, _, reason = line.partition("  # ")
        if words.strip() and not words.startswith("#"):
            modes, _, test = words.partition(" ")
            for each in modes.split(","):
                if each.rstrip("?") == mode:
                    listed[test.strip()] = Listed(reason.strip(), each.endswith("?"))
    return listed


def compare(plain: dict[str, str], wrapped: dict[str, str], listed: dict[str, Listed]) -> list[str]:
    """What is wrong: tests that the wrapper breaks, stale and unexplained exceptions, tests that were not run."""
    broken = {name for name, outcome in plain.items() if outcome == "passed" and wrapped.get(name) != "passed"}
    stale = {name for name, each in listed.items() if not each.sometimes} - broken
    wrong = [f"passes plain, {wrapped.get(name, 'not run')} wrapped: {name}" for name in sorted(broken - set(listed))]
    wrong += [f"listed and not broken, or not there (stale): {name}" for name in sorted(stale)]
    wrong += [f"listed without a reason: {name}" for name, each in listed.items() if not each.reason]
    return wrong


def suite(modes: Sequence[str], files: Sequence[str], folder: Path) -> list[str]:
    """Runs the suite plain and in each mode on a primary with one replica; returns what is wrong."""
    wrong = []
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, dict[str, str]] = {}
    for mode in ("plain", *modes):
        with Lab("redis", replicas=1, lag="0ms") as lab:
            outcomes[mode] = run(mode, files, f"{lab.redis.url('a')}/0", folder / f"{mode}.xml")
        count = {word: list(outcomes[mode].values()).count(word) for word in ("passed", "failed", "skipped")}
        print(f"{mode}: {count}")
        if mode != "plain":
            wrong += [f"{mode}: {line}" for line in compare(outcomes["plain"], outcomes[mode], exceptions(mode))]
    if not list(outcomes["plain"].values()).count("passed"):
        wrong.append("no test passed plain")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--report", type=Path, default=Path("redis-py-report"))
    options = parser.parse_args()
    wrong = suite(options.mode or ["wrapped"], options.files, options.report.absolute())
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
