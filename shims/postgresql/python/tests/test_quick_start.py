"""The quick start's shop on real servers and processes: python/docs/quickstart-postgresql.md."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_lab.stores.redis import RedisStore
from pg_regions import until

PAGE = Path(__file__).resolve().parents[4] / "python" / "docs" / "quickstart-postgresql.md"
ORDERS = 60


@contextmanager
def program(folder: Path, environment: dict[str, str], *words: str) -> Iterator[list[str]]:
    """A program of the page; the lines that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield lines
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(10)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def status(port: int, method: str, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def printed(folder: Path, environment: dict[str, str], module: str, first: int, **web_alone: str) -> str:
    """Send the orders to a shop; return what its two programs print. `web_alone`: variables of the web service."""
    port = free_port()
    web = program(
        folder, environment | web_alone, "uvicorn", f"{module}:api", "--port", str(port), "--log-level", "warning"
    )
    words = ("celery", "-A", f"{module}:tasks", "worker", "-P", "threads", "-c", "4", "-l", "INFO")
    with web as said, program(folder, environment, *words) as worked:
        until(lambda: status(port, "GET", "/docs") == 200, 180)
        until(lambda: any(" ready." in line for line in worked), 180)
        for number in range(first, first + ORDERS):
            assert status(port, "POST", f"/orders/{number}") == 200
        until(lambda: sum("order " in line for line in worked) >= ORDERS, 180)
    return "".join([*said, *worked])


@pytest.mark.timeout(600)
def test_no_order_is_missed(module_lab_factory: LabFactory, tmp_path: Path) -> None:
    """BAR-52: not at the first try of a process either, with pools and without `replicas=`."""
    lab = module_lab_factory("postgresql", "redis", replicas=1, lag="300ms")
    database, broker = lab.get(PostgresqlStore), lab.get(RedisStore)
    for name, code in re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        (tmp_path / f"{name}.py").write_text(code)
    environment = os.environ | {
        "PRIMARY": database.url("a"),
        "REPLICA": database.url("b1"),
        "BROKER": f"{broker.url('a')}/0",
    }
    init = ["init", "orders", "--at", database.url("a", user="postgres"), "--user", "app", "--run", "--yes"]
    command = Path(sys.executable).parent / "antipode"
    subprocess.run([command, *init], check=True, capture_output=True, text=True, timeout=60)
    with database.connect("a", user="app") as connection:
        connection.execute("DROP TABLE IF EXISTS orders")
        connection.execute("CREATE TABLE orders (number bigint PRIMARY KEY)")
    database.wait_caught_up("b1")
    told = subprocess.run(
        [command, "doctor", database.url("b1")], check=False, capture_output=True, text=True, timeout=60
    )
    assert "everything that is written and waited for here can be proved" in told.stdout, told.stdout
    assert ": MISSED" in printed(tmp_path, environment, "shop", 1)
    text = printed(tmp_path, environment, "shop_with_antipode", ORDERS + 1)
    assert ": MISSED" not in text
    assert len(set(re.findall(r"order (\d+): shipped", text))) == ORDERS
    assert "retry" not in text.lower(), "at the first try"
    environment["ANTIPODE_RECORDS"] = str(tmp_path / "records")
    text = printed(tmp_path, environment, "shop_with_antipode", 2 * ORDERS + 1, ANTIPODE_MODE="dry-run")
    assert len(set(re.findall(r"order (\d+): shipped", text))) == ORDERS
    checked = subprocess.run(
        [command, "check", tmp_path / "records"], check=False, capture_output=True, text=True, timeout=60
    )
    assert (checked.returncode, checked.stdout.startswith("clean: ")) == (0, True), checked.stdout
