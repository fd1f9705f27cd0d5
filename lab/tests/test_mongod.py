"""The lab's replica set of real servers, where a mongod is at hand; and its router, without one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from antipode_lab.fixtures import LabFactory
from antipode_lab.processes import Supervisor, wait_until
from antipode_lab.stores import _router
from antipode_lab.stores.mongod import LOST_DATABASE, MongodStore

_HERE = shutil.which(os.environ.get("MONGOD") or "mongod") is not None
_ASK = """
import socket, sys
print(socket.create_connection(("127.0.0.1", int(sys.stdin.readline()))).recv(1).decode())
"""


def _saying(letter: str) -> int:
    """A server that says one letter; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(letter.encode())

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def test_the_router_sends_a_member_over_its_link_and_others_straight(tmp_path: Path) -> None:
    supervisor = Supervisor.start()
    [port] = supervisor.ports(1)
    member = subprocess.Popen([sys.executable, "-c", _ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other = subprocess.Popen([sys.executable, "-c", _ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    table = {
        "listen": {str(port): "a"},
        "direct": {"a": _saying("d")},
        "pids": {"b1": member.pid},
        "links": {"b1<-a": _saying("l")},
    }
    (tmp_path / "table.json").write_text(json.dumps(table))
    router = subprocess.Popen([sys.executable, "-I", "-S", _router.__file__, str(tmp_path / "table.json")])

    def listens() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until("the router", listens, 30, 0.01)
        assert member.communicate(f"{port}\n", timeout=30)[0].strip() == "l"
        assert other.communicate(f"{port}\n", timeout=30)[0].strip() == "d"
    finally:
        router.kill()
        router.wait()
        supervisor.shutdown()


@pytest.mark.skipif(not _HERE, reason="there is no mongod here")
def test_a_failover_rolls_back_what_no_majority_has(lab_factory: LabFactory) -> None:
    lab = lab_factory("mongod", replicas=2, lag="3ms").get(MongodStore)
    with lab.client("a") as client:
        client["app"]["posts"].insert_one({"_id": 1})
    lab.wait_links()
    lab.promote("b1", lose=3)
    assert lab.primary == "b1"
    with lab.client("b1") as client:
        assert client["app"]["posts"].find_one({"_id": 1})
        assert client[LOST_DATABASE]["lost"].count_documents({}) == 0
    lab.heal()
    lab.wait_caught_up("a")
    with lab.client("a") as client:
        assert client[LOST_DATABASE]["lost"].count_documents({}) == 0
