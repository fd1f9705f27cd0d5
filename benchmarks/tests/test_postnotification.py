"""The post-notification benchmark, by its command: what it finds, what it says, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

COMMAND = [sys.executable, "-m", "antipode_benchmarks.postnotification"]
SCHEMA = json.loads((files("antipode_benchmarks.postnotification") / "result.schema.json").read_text())
LAGS = ("--lag", "900ms,1000ms")
"""Long enough for most of the baseline's reads to fail on a machine that runs other tests as well."""
WINDOW_NOISE_MS = 400.0
"""How far the median may lie beyond the lag on a machine that runs other tests as well: less than half a lag."""


def run(folder: Path, *options: str, timeout: float = 90.0) -> tuple[int, str, dict[str, Any]]:
    """Runs the command; its exit code, its output, and the result that the last line names."""
    done = subprocess.run(
        [*COMMAND, *options], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    named = re.fullmatch(r"result: (\S+)", done.stdout.splitlines()[-1])
    assert named is not None, done.stdout
    result: dict[str, Any] = json.loads((folder / named[1]).read_text())
    jsonschema.validate(result, SCHEMA)
    assert result["exit_code"] == done.returncode
    return done.returncode, done.stdout, result


def check(result: dict[str, Any], requests: int) -> None:
    """Violations without Antipode, none with it; and the figures hang together."""
    baseline, antipode = result["baseline"], result["antipode"]
    assert result["requests"] == baseline["requests"] == antipode["requests"] == requests
    assert baseline["violations"] > 0  # nearly all, but for readers whom a busy machine stalls for longer than the lag
    assert baseline["bytes"]["lineage_of_all_messages"] == 0
    assert antipode["violations"] == antipode["warmup"]["violations"] == 0
    assert antipode["incomplete_barriers"] == antipode["early_passes"] == 0
    assert antipode["bytes"]["message_lineage"] > 0
    assert antipode["bytes"]["response_lineage"] > 0
    assert set(antipode["reads_by_replica"]) == set(result["replica_lags_ms"])
    assert sum(antipode["reads_by_replica"].values()) == requests


def test_memory_with_a_barrier(tmp_path: Path) -> None:
    """The embedded stores: most reads of the baseline fail, none with the barrier, which waits for the slowest."""
    code, output, result = run(tmp_path, "--requests", "60", *LAGS, "--json", "here.json")
    assert code == 0
    assert output.splitlines()[-1] == "result: here.json"
    check(result, 60)
    assert result["antipode"]["window_over_lag_ms"]["p50"] < WINDOW_NOISE_MS
    assert result["consistency_window_ms"]["p50"] > max(result["replica_lags_ms"].values())


def test_memory_with_wait_on_read(tmp_path: Path) -> None:
    """No barrier in the code: each read waits for its own replica. Posts are large enough for several reads a body."""
    code, _, result = run(tmp_path, "--requests", "60", *LAGS, "--barrier", "wait-on-read", "--size", "200000")
    assert code == 0
    check(result, 60)
    assert result["antipode"]["barrier_ms"] is None


def test_a_baseline_without_violations_is_no_evidence(tmp_path: Path) -> None:
    """Where the queue is slower than the replicas nothing is shown, and the command says so."""
    code, output, result = run(
        tmp_path, "--requests", "20", "--lag", "0ms", "--queue-lag", "60ms", "--barrier", "none", "--replicas", "1"
    )
    assert code == 3
    assert result["antipode"] is None
    assert result["baseline"]["violations"] == 0
    assert "FAILED: the baseline shows no violation" in output


def test_a_barrier_that_runs_out_of_time_fails_the_run(tmp_path: Path) -> None:
    """An error in a service is not a number in a table."""
    done = subprocess.run(
        [*COMMAND, "--requests", "20", "--lag", "600ms", "--timeout", "100ms"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 4
    assert "follower-notify failed: BarrierTimeout" in done.stderr
    assert not (tmp_path / "results").exists()


def test_notifications_by_http(tmp_path: Path) -> None:
    """No queue: the follower answers the notifier when its barrier has returned."""
    code, _, result = run(tmp_path, "--notifier", "http", "--requests", "20", "--rate", "10", *LAGS)
    assert code == 0
    check(result, 20)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--writer", "go"), "--writer go: want one of python, java, cpp"),
        (("--relay", "java", "--post-storage", "s3"), "--post-storage s3: want one of postgresql, redis"),
        (("--reader", "cpp", "--notifier", "memory"), "--notifier memory: want one of http, rabbitmq"),
    ],
)
def test_what_services_of_other_languages_do_not_know_is_refused(options: tuple[str, ...], words: str) -> None:
    """Before anything is started."""
    environment = os.environ | {"TERMINAL_WIDTH": "200"}
    done = subprocess.run(
        [*COMMAND, *options], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "choice"), [("NOTIFIER=redis", "memory"), ("POST_STORAGE=rabbitmq", "memory"), ("RELAY=go", "java")]
)
def test_make_demo_refuses_first_and_says_what_can_be_chosen(words: str, choice: str) -> None:
    """Before it installs or builds anything."""
    done = subprocess.run(
        ["make", "demo", words],
        cwd=Path(__file__).parents[2],
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert re.search(rf"{words}: want one of .*{choice}", done.stderr)
    assert done.stdout == ""


def wait_until(condition: Callable[[], object], what: str, timeout: float = 30.0) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """The services end with the command, however it ends."""
    command = subprocess.Popen(
        [*COMMAND, "--requests", "5000"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        parent = psutil.Process(command.pid)
        wait_until(lambda: parent.children(recursive=True), "the services' process")
        wait_until(lambda: any(one.net_connections() for one in parent.children()), "a listening service")
        children = parent.children(recursive=True)
        os.kill(command.pid, number)
        command.wait(30)
        wait_until(lambda: not any(child.is_running() for child in children), "the services to end")
    finally:
        command.kill()
        command.wait()
    assert command.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)


@pytest.mark.timeout(300)
@pytest.mark.servers
@pytest.mark.parametrize("store", ["postgresql", "mariadb", "mysql", "s3", "dynamodb", "mongodb"])
def test_each_store(tmp_path: Path, store: str) -> None:
    """The posts in other stores, the notification within the process; one replica, long lag, few uploads."""
    code, output, result = run(
        tmp_path,
        *("--post-storage", store, "--replicas", "1", "--lag", "800ms", "--timeout", "30s"),
        *("--requests", "20", "--rate", "10", "--warmup", "5"),
        timeout=180,
    )
    assert code == 0, output
    check(result, 20)


@pytest.mark.timeout(300)
@pytest.mark.servers("redis", "dynamodb")
def test_notifications_in_a_table(tmp_path: Path) -> None:
    """The notifier is a DynamoDB table, as in the paper; slower than a queue, so that the posts are slower still."""
    code, output, result = run(
        tmp_path,
        *("--post-storage", "redis", "--notifier", "dynamodb", "--replicas", "1", "--lag", "3s", "--timeout", "30s"),
        *("--requests", "20", "--rate", "10", "--warmup", "5"),
        timeout=180,
    )
    assert code == 0, output
    check(result, 20)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("barrier", ["follower", pytest.param("wait-on-read", marks=pytest.mark.stores)])
def test_real_servers(tmp_path: Path, barrier: str) -> None:
    """Redis with two replicas of different lag, RabbitMQ over its own link, a process a service."""
    code, output, result = run(
        tmp_path,
        *("--post-storage", "redis", "--notifier", "rabbitmq", "--one-broker", "--barrier", barrier),
        *("--requests", "100", "--rate", "30", *LAGS),
        timeout=240,
    )
    assert code == 0, output
    check(result, 100)
    assert result["antipode"]["window_over_lag_ms"]["p50"] < WINDOW_NOISE_MS
