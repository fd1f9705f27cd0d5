"""For every test of the project."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import antipode_lab.stores
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

pytest_plugins = ["pytester"]
"""For tests of our own fixtures and cases, in a run of their own."""

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # other tests and builds run beside these: how long an example takes says nothing

_STORES = {module.name for module in iter_modules(antipode_lab.stores.__path__) if not module.name.startswith("_")}
_FOLDERS = {"sns-sqs": {"sns"}, "mysql": {"mariadb"}}
"""Folders of `shims` that are not called like the lab's store; of MySQL's tests a parameter says which of both."""
_LEFT_OUT: pytest.StashKey[Counter[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which stores' tests are run: all, without these."""
    words = "of the lab, with spaces between"
    parser.addoption("--only-stores", metavar="NAMES", help=f"leave out the tests of other stores than these {words}")
    parser.addoption("--other-stores", metavar="NAMES", help=f"run what --only-stores leaves out; stores {words}")


def pytest_configure(config: pytest.Config) -> None:
    """Has Ctrl-C do what it does at a terminal.

    A shell without job control starts what runs in the background (`make test &` in a script) with SIGINT ignored. What
    the tests start would inherit that, and those that interrupt a command would wait for it in vain.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("TEST_OUTCOMES") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(Path(os.environ["TEST_OUTCOMES"]), config))
    config.addinivalue_line(
        "markers", "servers(*stores): the stores whose servers a test needs; none: as its parameters say"
    )


class _Outcomes:
    """Record how a run ended, and which tests failed in it, for `scripts/repeat-failed`."""

    def __init__(self, file: Path, config: pytest.Config) -> None:
        self._file = file
        self._run = "interop" if config.getoption("markexpr") == "interop" else "python"
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed, or whose fixtures did."""
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the line of this run."""
        complete = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        line = {"run": self._run, "complete": complete, "passed": exitstatus == 0, "failed": sorted(self._failed)}
        with self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of stores that were not asked for."""
    only, other = (
        set((config.getoption(option) or "").replace(",", " ").split()) for option in ("only_stores", "other_stores")
    )
    if wrong := (only | other) - _STORES:
        raise pytest.UsageError(
            f"no store of the lab: {', '.join(sorted(wrong))}; there are {', '.join(sorted(_STORES))}"
        )
    if not only and not other:
        return
    left_out: Counter[str] = Counter()
    kept, rest = [], []
    for item in items:
        missing = _stores_of(item) - (only or other)
        if bool(missing) == bool(only):
            rest.append(item)
            left_out.update(missing)
        else:
            kept.append(item)
    config.hook.pytest_deselected(items=rest)
    items[:] = kept
    if only:
        config.stash[_LEFT_OUT] = left_out
        if hasattr(config, "workeroutput"):
            config.workeroutput["left_out"] = dict(left_out)


def _stores_of(item: pytest.Item) -> set[str]:
    """The stores without whose servers a test cannot be run."""
    callspec = getattr(item, "callspec", None)
    said = {str(value).split(" ")[0] for value in callspec.params.values()} & _STORES if callspec else set()
    marker = item.get_closest_marker("servers")
    if marker is not None:
        return set(marker.args) or said
    parts = item.path.relative_to(Path(__file__).parent).parts
    if parts[0] == "shims":
        said |= {name.removeprefix("fresh_") for name in getattr(item, "fixturenames", ())} & _STORES
        return said or _FOLDERS.get(parts[1], {parts[1]})
    if parts[:2] == ("lab", "tests"):
        return {item.path.stem.removeprefix("test_")} & _STORES
    return set()


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Of parallel runs (`-n 2`): which tests one worker runs one after another.

    A shim's, which share the labs of their folder; else those of a file. Of the benchmarks, which are long and have
    servers of their own, each goes alone.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("benchmarks/"):
            return nodeid
        return file.rpartition("/")[0] if file.startswith("shims/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Which worker runs what."""
    return Scheduling(config, log)


def pytest_testnodedown(node: WorkerController) -> None:
    """Each worker collects all tests, and has left out the same ones."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})  # none where a worker died
    if "left_out" in output:
        node.config.stash[_LEFT_OUT] = Counter(output["left_out"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what was left out."""
    left_out = config.stash.get(_LEFT_OUT, None)
    if left_out:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(left_out.items()))
        terminalreporter.write_line(f"left out, for `make test-stores`: the tests of {names}")
