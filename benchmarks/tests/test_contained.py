"""The services as a container runs them: the setup from the environment, a port of their own, an orderly end."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from antipode_benchmarks.postnotification.options import SERVICES, Options, Setup


def free_ports(count: int) -> int:
    """The first of so many free ports in a row: below those of outgoing connections (32768) and of labs (15000)."""
    while True:
        port = random.randrange(10_000, 15_000 - count)
        taken = [socket.socket() for _ in range(count)]
        try:
            for number, one in enumerate(taken):
                one.bind(("127.0.0.1", port + number))
        except OSError:
            continue
        else:
            return port
        finally:
            for one in taken:
                one.close()


def test_an_upload_passes_through_all_of_them() -> None:
    port = free_ports(len(SERVICES))
    addresses = {name: f"http://127.0.0.1:{port + number}" for number, name in enumerate(SERVICES)}
    setup = Setup(Options(lags_ms=(1,), queue_lag_ms=1), antipode=True, addresses=addresses)
    environment = {**os.environ, "SETUP": setup.to_json(), "PORT": str(port), "LISTEN": "127.0.0.1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "antipode_benchmarks.postnotification.contained", *SERVICES],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        for address in addresses.values():  # all of them first: an upload goes through all
            while True:
                try:
                    with urllib.request.urlopen(f"{address}/-/traffic", timeout=10) as answer:
                        assert "requests" in json.loads(answer.read())
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
        request = urllib.request.Request(f"{addresses['post-upload']}/upload", b"a post")
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 201
            assert len(json.loads(answer.read())["id"]) == 32
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        words = process.communicate()[0]
    assert "Traceback" not in words, words
