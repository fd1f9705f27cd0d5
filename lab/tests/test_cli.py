"""The command line, as a user runs it: each command is a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis as redis_py
from antipode_lab import Lab
from antipode_lab.processes import alive

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-m", "antipode_lab.cli"]
pytestmark = pytest.mark.timeout(300)
"""Some have twenty commands, each a process that starts; other tests run beside them."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    environment = {key: value for key, value in os.environ.items() if key != "ANTIPODE_LAB"}

    def call(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    yield call
    for left in tmp_path.glob("*.json"):
        call("down", "--lab", str(left))


def test_a_lab_from_up_to_down(run: Run, tmp_path: Path) -> None:
    said = run("up", "redis", "--replicas", "2", "--lag", "80ms,120ms").stdout
    pattern = r"ready in \d+\.\d s: redis a:\d+ b1:\d+ \(80 ms\) b2:\d+ \(120 ms\); endpoints: lab.json; stop: .*"
    assert re.fullmatch(pattern, said.strip()), said
    endpoints = json.loads((tmp_path / "lab.json").read_text())
    servers = endpoints["stores"]["redis"]["servers"]
    clients = {name: redis_py.Redis(port=server["port"]) for name, server in servers.items()}

    assert "describes a running lab" in run("up", "redis", code=1).stderr

    run("lag", "redis", "b2", "10ms")
    run("partition", "redis", "b1")
    clients["a"].set("k", "1")
    found = {server["name"]: server for server in json.loads(run("status", "--json").stdout)["redis"]}
    assert (found["b1"]["link"], found["b2"]["link"], found["b2"]["lag_ms"]) == ("cut", "up", 10)
    assert clients["b1"].get("k") is None
    run("heal", "redis", "b1")
    assert clients["b1"].get("k") == b"1"

    run("promote", "redis", "b1", "--lose", "3")
    assert clients["a"].exists(*(f"antipode-lab:lost:{index}" for index in range(3))) == 3
    run("heal")
    run("repoint", "redis", "a", "b1")
    assert clients["a"].keys("antipode-lab:*") == []
    run("restart", "redis", "b1", "--from", "rdb")
    assert clients["b1"].get("k") == b"1"
    run("freeze", "redis", "b2")
    assert "frozen" in run("status").stdout
    run("thaw", "redis", "b2")
    run("kill", "redis", "b2")
    run("restart", "redis", "b2")
    assert clients["b2"].get("k") == b"1"

    assert "no server 'b9'" in run("promote", "redis", "b9", code=1).stderr
    assert "80ms" in run("lag", "redis", "b1", "12", code=1).stderr
    assert "no 'mysql'" in run("kill", "mysql", "a", code=1).stderr

    run("down")
    assert not (tmp_path / "lab.json").exists()
    assert not Path(endpoints["scratch"]).exists()
    assert not alive(Path(endpoints["scratch"]))
    assert "no lab" in run("status", code=1).stderr


def test_the_environment_names_the_lab_and_two_labs_live_side_by_side(run: Run, tmp_path: Path) -> None:
    with Lab("redis") as other:
        run("up", "redis", "--json", "mine.json")
        run("lag", "redis", "b1", "1ms", "--lab", "mine.json")
        os.environ["ANTIPODE_LAB"] = str(other.path)
        try:
            assert Lab.attach().redis.server("b1").port == other.redis.server("b1").port
        finally:
            del os.environ["ANTIPODE_LAB"]
        run("lag", "redis", "b1", "7ms", "--lab", str(other.path))
        assert {s.name: s.lag_ms for s in other.status()["redis"]}["b1"] == 7, "what a command changed is seen"
        other.redis.lag("b1", "8ms")
        run("down", "--lab", "mine.json")
        assert other.redis.client("a").ping()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_up_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*COMMAND, "up", "redis", "rabbitmq", "--one-broker"],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found: list[psutil.Process] = []
    try:
        deadline = time.monotonic() + 120
        while "beam.smp" not in (names := _names(found)):
            assert time.monotonic() < deadline, names
            assert process.poll() is None, "up ended before it could be interrupted"
            found = psutil.Process(process.pid).children(recursive=True)
            time.sleep(0.02)
        supervisor = next(child for child in found if "supervisor.py" in " ".join(child.cmdline()))
        scratch = Path(next(part for part in supervisor.cmdline() if "antipode-lab-" in part))
        assert scratch.is_dir()
    finally:  # also when the test fails here: an `up` that goes on would leave its lab running
        process.send_signal(number)
        try:
            process.wait(120)
        finally:
            process.kill()
    _, left = psutil.wait_procs(found, 120)
    assert not [one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not scratch.exists()
    assert list(tmp_path.iterdir()) == []


def _names(found: list[psutil.Process]) -> list[str]:
    """The processes' names; RabbitMQ's start scripts come and go."""
    names = []
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return names


def test_lags_for_single_stores(run: Run, tmp_path: Path) -> None:
    said = run("up", "redis", "--replicas", "2", "--lag", "redis=5ms,7ms").stdout
    assert "(5 ms)" in said
    assert "(7 ms)" in said
    run("down")
    assert "not among the stores" in run("up", "redis", "--lag", "nosuch=5ms", code=1).stderr
    assert "2 lags given for 1 link" in run("up", "redis", "--lag", "5ms,7ms", code=1).stderr
    assert "no store 'nosuch'" in run("up", "nosuch", code=1).stderr


def test_install_leaves_alone_what_is_here(run: Run) -> None:
    server = Path(shutil.which("redis-server") or "/nowhere")
    before = server.stat()
    assert run("install", "redis").stderr == ""
    after = server.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
