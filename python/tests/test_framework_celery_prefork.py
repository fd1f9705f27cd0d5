"""Preforked workers of Celery: what the main process sends for a task that was killed, and their end (PROP-35)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode.celery
import pytest
from antipode import Lineage, WriteId
from antipode_lab.fixtures import LabFactory
from celery import Celery  # type: ignore[import-untyped]

DEADLINE = 60.0
BEFORE = WriteId.position("store-before", "e", 1)
WORKER = """
import json, os, pathlib, time
import antipode, antipode.celery, antipode.memory
from antipode import WriteId
from celery import Celery

url = os.environ["URL"]
app = antipode.celery.instrument(Celery("killed", broker=url + "/0", backend=url + "/1"))
app.conf.broker_connection_retry_on_startup = True
log = pathlib.Path(os.environ["LOG"])
posts = antipode.memory.Store("posts", regions=["a"]).client("a")


def note(name):
    with log.open("a") as out:
        out.write(json.dumps([name, antipode.serialize(), os.getpid()]) + "\\n")


@app.task(name="slow", time_limit=1)
def slow():
    antipode.append(WriteId.position("store-inside", "e", 1))
    time.sleep(60)


@app.task(name="dies")
def dies():
    os.kill(os.getpid(), 9)


@app.task(name="fails")
def fails():
    antipode.append(WriteId.position("store-inside", "e", 1))
    raise ValueError("broken")


@app.task(name="sent")
def sent(uuid):
    note("sent")


@app.task(name="inline")
def inline(request, error, traceback):
    note("inline")


@app.task(name="works")
def works():
    posts.set("k", "v")
    antipode.barrier(timeout=5)
    note("works")
"""


class Worker:
    """A preforked worker of one child in a process of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self._log, self.records = folder / "log", folder / "records"
        (folder / "worker_of_test.py").write_text(WORKER)
        self._output = (folder / "output").open("w+")
        command = [sys.executable, "-m", "celery", "-A", "worker_of_test", "worker", "-c", "1", "-P", "prefork"]
        more = {"URL": url, "LOG": str(self._log), "ANTIPODE_RECORDS": str(self.records), "ANTIPODE_MODE": "dry-run"}
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **more},
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )

    def entries(self, *names: str) -> list[Any]:
        """What tasks have noted, once all of these have: name, lineage, process."""

        def found() -> list[Any]:
            lines = self._log.read_text().splitlines() if self._log.exists() else []
            noted = [json.loads(line) for line in lines]
            return noted if {name for name, *_ in noted} >= set(names) else []

        self.wait(found)
        return found()

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true."""
        end = time.monotonic() + DEADLINE
        while not condition():
            self._output.seek(0)
            assert time.monotonic() < end, self._output.read()
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as an operator does: warm."""
        self._process.terminate()
        self._process.wait(DEADLINE)

    def kill(self) -> None:
        """End it whatever it does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(DEADLINE)
        self._output.close()


@pytest.fixture
def url(lab_factory: LabFactory) -> str:
    return f"redis://127.0.0.1:{lab_factory('redis').redis.server('a').port}"


@pytest.mark.parametrize("task", ["slow", "dies", "fails"])
def test_the_errbacks_of_a_killed_task(tmp_path: Path, url: str, task: str) -> None:
    """They have what the task began with, and know that something is missing; of one that raised, all."""
    worker = Worker(tmp_path, url)
    sender = antipode.celery.instrument(Celery("sender", broker=f"{url}/0", backend=f"{url}/1"))
    try:
        with antipode.scope(Lineage([BEFORE])):
            errbacks = [sender.signature("sent"), sender.signature("inline")]
            sender.send_task(task, link_error=errbacks)
        entries = worker.entries("inline", "sent")
    finally:
        worker.kill()
        sender.close()
    for _, text, _ in entries:
        lineage = Lineage.deserialize(text)
        assert BEFORE in lineage
        assert lineage.is_complete() is (task == "fails")
        assert ("store-inside" in lineage.stores) is (task == "fails")


def test_a_child_writes_its_summary_at_its_end(tmp_path: Path, url: str) -> None:
    """REC-26: without it nobody could tell whether a barrier of the service found anything."""
    worker = Worker(tmp_path, url)
    sender = antipode.celery.instrument(Celery("sender", broker=f"{url}/0", backend=f"{url}/1"))
    try:
        sender.send_task("works")
        [[_, _, child]] = worker.entries("works")
        worker.stop()
    finally:
        worker.kill()
        sender.close()
    lines = [json.loads(line) for file in worker.records.glob("*") for line in file.read_text().splitlines()]
    assert [line for line in lines if line["kind"] == "summary" and f":{child}:" in line["process"]], lines
