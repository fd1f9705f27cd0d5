"""The delaying relay. Its accuracy is reported, not asserted tightly: it depends on the machine's load."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from antipode_lab.relay import Relay


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while data := connection.recv(1 << 16):
                    connection.sendall(data)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def round_trips(port: int, count: int = 300) -> list[float]:
    with connect(port) as connection:
        found = []
        for _ in range(count):
            begun = time.perf_counter()
            connection.sendall(b"x")
            assert connection.recv(16) == b"x"
            found.append(time.perf_counter() - begun)
        return found


@pytest.mark.parametrize("delay", [0.00015, 0.0005, 0.003])
def test_a_round_trip_takes_at_least_twice_the_delay(
    echo: int, delay: float, record_property: Callable[[str, object], None]
) -> None:
    direct = statistics.median(round_trips(echo))
    with Relay(echo, 0) as nothing, Relay(echo, delay) as relay:
        hop = statistics.median(round_trips(nothing.port))
        found = round_trips(relay.port)
    report = (
        f"direct {direct * 1e3:.3f} ms, relay without delay {hop * 1e3:.3f} ms, "
        f"with 2 x {delay * 1e3:g} ms: median {statistics.median(found) * 1e3:.3f} ms"
    )
    record_property("relay", report)
    print(report)
    assert min(found) >= 2 * delay
    assert statistics.median(found) < 2 * delay + 0.02


def test_bytes_in_flight_do_not_queue_behind_each_other_and_all_arrive_in_order(echo: int) -> None:
    sent = os.urandom(20 << 20)
    with Relay(echo, 0.02) as relay, connect(relay.port) as connection:
        received = bytearray()

        def receive() -> None:
            while data := connection.recv(1 << 16):
                received.extend(data)

        reader = threading.Thread(target=receive)
        reader.start()
        begun = time.monotonic()
        for start in range(0, len(sent), 1 << 14):
            connection.sendall(sent[start : start + (1 << 14)])
        connection.shutdown(socket.SHUT_WR)
        reader.join(60)
        took = time.monotonic() - begun
    assert bytes(received) == sent
    assert took < 15, "1280 pieces one after the other would take 50 s"


def test_the_target_closing_closes_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with Relay(listener.getsockname()[1], 0.001) as relay, connect(relay.port) as connection:
            server, _ = listener.accept()
            server.sendall(b"bye")
            server.close()
            assert connection.recv(16) == b"bye"
            assert connection.recv(16) == b""


def test_the_relay_ends_with_the_process_that_started_it(echo: int) -> None:
    program = f"""
import time
from antipode_lab.relay import Relay
relay = Relay({echo}, 0.001)
print(relay.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        relay = psutil.Process(int(owner.stdout.readline()))
        assert relay.is_running()
        owner.send_signal(signal.SIGKILL)
    psutil.wait_procs([relay], 10)
    assert not relay.is_running() or relay.status() == psutil.STATUS_ZOMBIE
