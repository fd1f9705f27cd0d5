"""The lab's hold on its supervisor: start processes, signal them, reserve ports, end everything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from antipode_lab import supervisor as _supervisor
from antipode_lab.errors import LabError

PREFIX = "antipode-lab-"
ProcessStatus = Literal["running", "frozen", "stopped"]


@dataclass(frozen=True, slots=True)
class ProcessState:
    """One process: its pid, whether it runs, and its exit code once it does not."""

    pid: int
    state: ProcessStatus
    returncode: int | None


def wait_until(what: str, condition: Callable[[], bool], timeout: float = 30.0, interval: float = 0.005) -> None:
    """Polls ``condition`` until it holds.

    Raises:
        LabError: after ``timeout`` seconds, naming ``what`` was waited for.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {timeout:g} s in vain for: {what}")
        time.sleep(interval)


def _scratch_parent() -> Path:
    """Where scratch folders go: the temporary folder, unless its path is too long for a Unix socket's
    name.
    """
    parent = Path(tempfile.gettempdir())
    return parent if len(str(parent)) < 60 else Path("/tmp")


def alive(scratch: Path) -> bool:
    """Whether the supervisor of this scratch folder lives."""
    try:
        pid, started = (scratch / "supervisor.pid").read_text().split()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" and _supervisor.start_time(int(pid)) == started
    except (OSError, ValueError, IndexError):
        return False


def sweep() -> list[Path]:
    """Removes scratch folders whose supervisor was killed; returns them. Their servers died with it."""
    removed: list[Path] = []
    for folder in _scratch_parent().glob(PREFIX + "*"):
        with suppress(OSError):
            # A folder without the pid file may belong to a supervisor that is just starting.
            if folder.stat().st_uid != os.getuid() or time.time() - folder.stat().st_mtime < 60:
                continue
            if not alive(folder):
                _supervisor.free_shared_memory(folder)
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


class Supervisor:
    """A lab's supervisor process, reached through its socket. Safe for threads."""

    def __init__(self, scratch: Path, process: subprocess.Popen[str] | None = None) -> None:
        self.scratch = scratch
        self._process = process

    @classmethod
    def start(cls) -> Supervisor:
        """Starts one with a fresh scratch folder. It ends with this process, until ``detach``."""
        sweep()
        scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_scratch_parent()))
        with (scratch / "supervisor.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _supervisor.__file__, str(scratch), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the owner; the supervisor follows it
                cwd="/",
            )
        assert process.stdout is not None
        with process.stdout:
            ready = process.stdout.readline()
        if not ready:
            process.wait()
            reason = (scratch / "supervisor.log").read_text(errors="replace")[-2000:]
            shutil.rmtree(scratch, ignore_errors=True)
            raise LabError(f"the lab's supervisor did not start:\n{reason}")
        return cls(scratch, process)

    @classmethod
    def attach(cls, scratch: Path) -> Supervisor:
        """The supervisor of a lab that another process started.

        Raises:
            LabError: if it is gone.
        """
        if not alive(scratch):
            raise LabError(f"the lab in {scratch} is gone; start one with: antipode-lab up redis")
        return cls(scratch)

    def request(self, do: str, **fields: Any) -> dict[str, Any]:
        """One request to the supervisor, and its answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            try:
                connection.connect(str(self.scratch / "supervisor.sock"))
                connection.sendall(json.dumps({"do": do, **fields}).encode() + b"\n")
                with connection.makefile("rb") as lines:
                    line = lines.readline()
            except OSError as error:
                raise LabError(f"the lab's supervisor does not answer: {error}") from error
        if not line:
            raise LabError(f"the lab's supervisor gave no answer to {do}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LabError(f"{do} {fields.get('name', '')}: {answer['error']}")
        return answer

    def log_path(self, name: str) -> Path:
        """Where a process's output goes."""
        return self.scratch / (name.replace(":", "-") + ".log")

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The end of a process's output, for error messages."""
        try:
            return "\n".join(self.log_path(name).read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return "(no output)"

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str | None = None,
    ) -> int:
        """Starts a process as the supervisor's child, in a session of its own; returns its pid."""
        answer = self.request(
            "spawn",
            name=name,
            argv=list(argv),
            env=dict(os.environ if env is None else env),
            cwd=str(cwd or self.scratch),
            user=user,
            log=str(self.log_path(name)),
        )
        return int(answer["pid"])

    def send(self, name: str, number: signal.Signals) -> bool:
        """Signals a process group; false if it has ended already."""
        return bool(self.request("signal", name=name, signal=int(number))["sent"])

    def stop(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends a process, and returns when it has ended."""
        if self.send(name, number):
            if number is not signal.SIGKILL:
                self.send(name, signal.SIGCONT)
            wait_until(f"the end of {name}", lambda: self.state(name).state == "stopped", 20, 0.002)

    def processes(self) -> dict[str, ProcessState]:
        """Every process that was started, by name, ended ones too."""
        found = self.request("processes")["processes"]
        return {name: ProcessState(item["pid"], item["state"], item["returncode"]) for name, item in found.items()}

    def state(self, name: str) -> ProcessState:
        """One process."""
        try:
            return self.processes()[name]
        except KeyError:
            raise LabError(f"the lab has no process {name!r}") from None

    def wait_ready(self, name: str, ready: Callable[[], bool], timeout: float = 60.0) -> None:
        """Waits until a started process answers.

        Raises:
            LabError: if it ends, or the time is up; with the end of its output.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            state = self.state(name)
            if state.state == "stopped":
                raise LabError(f"{name} ended at once (code {state.returncode}):\n{self.log_tail(name)}")
            if time.monotonic() > deadline:
                raise LabError(f"{name} was not ready after {timeout:g} s:\n{self.log_tail(name)}")
            time.sleep(0.003)

    def ports(self, count: int) -> list[int]:
        """Free ports, reserved until the lab ends."""
        return [int(port) for port in self.request("ports", count=count)["ports"]]

    def detach(self) -> None:
        """From now on the lab outlives the process that started it, until ``shutdown``."""
        self.request("detach")
        if self._process is not None:
            self._process.returncode = 0  # no longer ours to wait for
            self._process = None

    def remove_at_end(self, path: Path) -> None:
        """A file outside the scratch folder that goes when the lab goes."""
        self.request("remove-at-end", path=str(path))

    def shutdown(self, timeout: float = 300.0) -> None:
        """Ends every process and removes the scratch folder; returns when that is done.

        A busy machine takes more than a minute to remove what an object store has kept of some thousand objects.
        """
        if alive(self.scratch):
            with suppress(LabError):  # it may be ending for another reason
                self.request("shutdown")
        wait_until(
            f"the lab in {self.scratch} to end",
            lambda: not alive(self.scratch) and not self.scratch.exists(),
            timeout,
            0.005,
        )
        if self._process is not None:
            self._process.wait(timeout)
