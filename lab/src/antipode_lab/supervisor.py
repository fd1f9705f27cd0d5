"""The process that owns the lab's servers, so that none of them outlives the lab.

It is the parent of every server. It ends, and takes all of them and the scratch folder with it, when it is
told to, when it gets SIGTERM, or when its owner (the test run, the command) is gone: a pidfd tells it,
whatever killed the owner. Should this process itself be killed, the kernel kills the servers
(PR_SET_PDEATHSIG), and the next lab removes the folder and what else they left.

Standard library only, and run as a file, not as a module: it must be up in a few hundredths of a second.

Protocol: a Unix socket in the scratch folder (mode 0700); one JSON object a line in, one out, then the
connection closes.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IPC_RMID = 0
_LIBC = ctypes.CDLL(None, use_errno=True)


def start_time(pid: int) -> str:
    """The kernel's start time of a process: with its pid, a name that is never used again."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _die_with(parent: int) -> None:
    """In the child, before exec: the kernel kills this process when the supervisor is gone."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def descendants(root: int) -> list[int]:
    """Every living process below ``root``: daemonised ones too, for ``root`` is their subreaper."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with suppress(OSError):
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def free_shared_memory(scratch: Path) -> None:
    """Removes the System V segments that a lab's killed processes left: no process's end does that.

    A killed PostgreSQL leaves one, and a machine has room for 4,096 of them. `spawned` in the scratch folder has the
    pids of all that the lab started.
    """
    with suppress(OSError):
        creators = set((scratch / "spawned").read_text().split())
        for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
            _key, segment, _mode, _size, creator, _last, attached = line.split()[:7]
            if creator in creators and attached == "0":
                _LIBC.shmctl(int(segment), IPC_RMID, None)


class Supervisor:
    """One lab's processes, ports and scratch folder."""

    def __init__(self, scratch: Path, owner: int) -> None:
        self.scratch = scratch
        self.pids: dict[str, int] = {}
        self.returncodes: dict[str, int | None] = {}
        self.remove_files: list[str] = []
        self.port_locks: list[socket.socket] = []
        self.stopping = False
        self.selector = selectors.DefaultSelector()
        self.owner_fd = -1
        if owner:
            self.owner_fd = os.pidfd_open(owner)
            if os.getppid() != owner:  # it died before the pidfd was open: the pid may be another's by now
                self.stopping = True
            self.selector.register(self.owner_fd, selectors.EVENT_READ, "owner")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(scratch / "supervisor.sock"))
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ, "client")
        wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        self.selector.register(wake_r, selectors.EVENT_READ, "signal")
        self.wake_r = wake_r
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        # Handlers, not SIG_IGN, because exec would hand an ignored signal on to the servers.
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(ignored, lambda *_: None)

    def _stop(self) -> None:
        self.stopping = True

    def run(self) -> None:
        """Serves requests until the end, then clears everything away."""
        try:
            while not self.stopping:
                for key, _ in self.selector.select():
                    if key.data == "client":
                        self._serve()
                    elif key.data == "owner":
                        self.stopping = True
                    else:
                        with suppress(BlockingIOError):
                            os.read(self.wake_r, 4096)
                self._reap()
        finally:
            self._clear()

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                with connection.makefile("rb") as lines:
                    line = lines.readline()
                if not line:
                    return
                try:
                    answer = self.do(json.loads(line))
                except Exception as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                return  # the client is gone; its request was carried out or was not whole

    def do(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carries out one request."""
        verb = request["do"]
        if verb == "spawn":
            return {"pid": self._spawn(request)}
        if verb == "signal":
            return {"sent": self._signal(request["name"], int(request["signal"]))}
        if verb == "processes":
            self._reap()
            return {"processes": {name: self._describe(name) for name in self.pids}}
        if verb == "ports":
            return {"ports": [self._reserve_port() for _ in range(int(request["count"]))]}
        if verb == "detach":
            if self.owner_fd >= 0:
                self.selector.unregister(self.owner_fd)
                os.close(self.owner_fd)
                self.owner_fd = -1
            return {}
        if verb == "remove-at-end":
            self.remove_files.append(request["path"])
            return {}
        if verb == "shutdown":
            self.stopping = True
            return {}
        raise ValueError(f"unknown request {verb!r}")

    def _spawn(self, request: dict[str, Any]) -> int:
        name = request["name"]
        self._reap()
        if self.pids.get(name) and self.returncodes[name] is None:
            raise ValueError(f"{name} is running already")
        me = os.getpid()
        with open(request["log"], "ab") as log:
            process = subprocess.Popen(
                request["argv"],
                env=request.get("env"),
                cwd=request.get("cwd"),
                user=request.get("user"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: _die_with(me),  # noqa: PLW1509 - this process has one thread
            )
        process.returncode = 0  # reaped below with waitpid(-1), not by subprocess
        self.pids[name] = process.pid
        self.returncodes[name] = None
        with (self.scratch / "spawned").open("a") as spawned:
            print(process.pid, file=spawned)
        return process.pid

    def _signal(self, name: str, number: int) -> bool:
        """Signals the whole process group; false if it has ended. Only unreaped children: their pid cannot
        be reused.
        """
        self._reap()
        if name not in self.pids:
            raise ValueError(f"no process {name!r}")
        if self.returncodes[name] is not None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(self.pids[name], number)
        return True

    def _reap(self) -> bool:
        """Notes who has ended; false if there are no children left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            for name, known in self.pids.items():
                if known == pid:
                    self.returncodes[name] = os.waitstatus_to_exitcode(status)

    def _describe(self, name: str) -> dict[str, Any]:
        pid, code = self.pids[name], self.returncodes[name]
        state = "stopped"
        if code is None:
            state = "running"
            with suppress(OSError):
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt":
                    state = "frozen"
        return {"pid": pid, "returncode": code, "state": state}

    def _reserve_port(self) -> int:
        """A free port that no outgoing connection and no other lab takes.

        It lies below the kernel's range for outgoing connections; an abstract socket, which vanishes with
        this process, reserves it among labs.
        """
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        first, last = (15000, low - 1) if low > 17000 else (40000, 65000)
        for _ in range(5000):
            port = random.randint(first, last)
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0antipode-lab-port-{port}")
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            except OSError:
                lock.close()
                continue
            self.port_locks.append(lock)
            return port
        raise OSError(f"no free port between {first} and {last}")

    def _clear(self) -> None:
        deadline = time.monotonic() + 20
        # Until the last child is reaped: a killed server holds its ports until all of its threads are gone.
        while time.monotonic() < deadline:
            for pid in descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not self._reap():
                break
            time.sleep(0.005)
        free_shared_memory(self.scratch)
        for path in self.remove_files:
            # Only if it still describes this lab: another one may have been started over it.
            with suppress(OSError, ValueError, KeyError):
                if json.loads(Path(path).read_text())["scratch"] == str(self.scratch):
                    os.unlink(path)
        shutil.rmtree(self.scratch, ignore_errors=True)


def main() -> None:
    """``supervisor.py SCRATCH OWNER-PID``; 0 for no owner. Prints its pid when it listens."""
    scratch, owner = Path(sys.argv[1]), int(sys.argv[2])
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = Supervisor(scratch, owner)
    (scratch / "supervisor.pid").write_text(f"{os.getpid()} {start_time(os.getpid())}\n")
    print(os.getpid(), flush=True)
    supervisor.run()


if __name__ == "__main__":
    main()
