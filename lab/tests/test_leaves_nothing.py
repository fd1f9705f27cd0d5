"""Nothing outlives a lab, however the process that started it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from antipode_lab import Lab, LabError, processes
from antipode_lab.stores.postgresql import PostgresqlStore


def until(what: str, condition: Callable[[], object], timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.01)


class Traces:
    """Everything by which a running lab could be found afterwards."""

    def __init__(self, endpoints: dict[str, Any]) -> None:
        self.scratch = Path(endpoints["scratch"])
        supervisor = psutil.Process(endpoints["supervisor"]["pid"])
        self.supervisor = supervisor
        self.processes = [supervisor, *supervisor.children(recursive=True)]
        assert len(self.processes) >= 3, "a supervisor, Toxiproxy and at least one server"
        stores = endpoints["stores"].values()
        self.ports = {endpoints["toxiproxy"]["port"]}
        self.ports |= {server["port"] for store in stores for server in store["servers"].values()}
        self.ports |= {link["port"] for store in stores for link in store["links"].values()}
        for port in self.ports:
            assert self._listens(port)

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    def check_gone(self, *, scratch: bool = True) -> None:
        def running() -> list[psutil.Process]:
            # A zombie is what is left of a process whose new parent has not looked yet: it holds nothing.
            return [p for p in self.processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

        until(f"the end of {self.processes}", lambda: not running())
        until("the ports to close", lambda: not any(self._listens(port) for port in self.ports))
        if scratch:
            until("the scratch folder to go", lambda: not self.scratch.exists())


def start_run(tmp_path: Path, body: str, *, pytest_run: bool) -> tuple[subprocess.Popen[bytes], Traces]:
    """Starts a program (or a test run) with a lab of its own that waits for ever; returns when its lab is up."""
    ready = tmp_path / "ready.json"
    program = tmp_path / ("test_waits.py" if pytest_run else "program.py")
    program.write_text(textwrap.dedent(body).replace("READY", repr(str(ready))))
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)] if pytest_run else []
    process = subprocess.Popen(
        [sys.executable, *command, str(program)],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until("the run's lab", lambda: ready.exists() or process.poll() is not None, 60)
    assert process.poll() is None, "the run ended early"
    return process, Traces(json.loads(ready.read_text()))


A_TEST = """
    import os, shutil, time

    def test_waits(redis_lab):
        shutil.copy(redis_lab.context.supervisor.scratch / "lab.json", READY + ".part")
        os.rename(READY + ".part", READY)
        time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_test_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process, traces = start_run(tmp_path, A_TEST, pytest_run=True)
    try:
        os.killpg(process.pid, number)
        process.wait(20)
        traces.check_gone()
    finally:
        process.kill()


def test_a_killed_run_that_had_forked_leaves_nothing(tmp_path: Path) -> None:
    """A forked child holds the parent's pipes and sockets: they must not keep the lab."""
    body = """
        import os, shutil, time
        from antipode_lab import Lab

        lab = Lab("redis").start()
        if os.fork() == 0:
            lab.close()      # a child has not started it
            time.sleep(60)
            os._exit(0)
        shutil.copy(lab.path, READY + ".part")
        os.rename(READY + ".part", READY)
        time.sleep(600)
    """
    process, traces = start_run(tmp_path, body, pytest_run=False)
    children = psutil.Process(process.pid).children()
    fork = next(child for child in children if child.pid != traces.supervisor.pid)
    try:
        process.kill()
        process.wait(20)
        traces.check_gone()
        assert fork.is_running()
    finally:
        fork.kill()


def test_a_killed_supervisor_takes_the_servers_along_and_the_next_lab_sweeps(tmp_path: Path) -> None:
    with Lab("redis") as lab:
        traces = Traces(json.loads(lab.path.read_text()))
        lab.redis.freeze("b1")
        traces.supervisor.kill()
        traces.check_gone(scratch=False)
        with pytest.raises(LabError, match="gone"):
            Lab.attach(traces.scratch / "lab.json")
        assert traces.scratch.exists()
        old = time.time() - 3600
        os.utime(traces.scratch, (old, old))
        assert traces.scratch in processes.sweep()
        assert not traces.scratch.exists()


def own_supervisors() -> set[int]:
    """Those of labs that this process has up: one that the whole run shares may be among them."""
    mine = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return {child.pid for child in mine if "supervisor" in " ".join(child.cmdline())}


def test_a_lab_that_does_not_start_leaves_nothing() -> None:
    before = set(processes._scratch_parent().glob(processes.PREFIX + "*"))
    running = own_supervisors()
    with pytest.raises(LabError, match="no-such-setting"):
        Lab("redis", options={"redis": {"config": {"no-such-setting": "1"}}}).start()
    assert own_supervisors() <= running
    assert set(processes._scratch_parent().glob(processes.PREFIX + "*")) <= before


def test_rabbitmq_leaves_no_port_mapper_and_no_helper(tmp_path: Path) -> None:
    with Lab("rabbitmq", options={"rabbitmq": {"one_broker": True}}) as lab:
        traces = Traces(json.loads(lab.path.read_text()))
        names = {process.name() for process in traces.processes}
        assert {"epmd", "beam.smp"} <= names
    traces.check_gone()


def shared_memory_of(creators: set[int]) -> list[str]:
    """System V segments by the process that made them, as the kernel lists them."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if int(line.split()[4]) in creators]


@pytest.mark.parametrize("supervised", [True, False])
def test_killed_postgresql_servers_leave_no_shared_memory(supervised: bool) -> None:
    """A machine has room for 4,096 segments; then no PostgreSQL starts any more."""
    with Lab("postgresql") as lab:
        store = lab.get(PostgresqlStore)
        servers = {store.server(name).pid for name in ("a", "b1")}
        store.kill("b1")
        store.restart("b1")
        servers.add(store.server("b1").pid)
        assert len(servers) == 3
        assert len(shared_memory_of(servers)) >= 2, "one that is up has a segment"
        if not supervised:
            traces = Traces(json.loads(lab.path.read_text()))
            traces.supervisor.kill()
            traces.check_gone(scratch=False)
            old = time.time() - 3600
            os.utime(traces.scratch, (old, old))
            assert traces.scratch in processes.sweep()
    assert not shared_memory_of(servers)
