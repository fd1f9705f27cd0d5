"""A delaying TCP relay for lags below a millisecond, which Toxiproxy, with its whole milliseconds, cannot do.

    with Relay(target_port=6379, delay=0.00015) as relay:      # 0.15 ms each way: a round trip of 0.3 ms
        client = redis.Redis(port=relay.port)

or ``python -m antipode_lab.relay --target 127.0.0.1:6379 --delay 0.15ms``, which prints its port. It runs
in a process of its own, so that it takes no time of the measured one, and ends with the process that
started it.

Each piece of data goes out ``delay`` after it came in, so that pieces in flight do not queue up behind each
other. An event loop's timers are no better than a millisecond; so it waits in ``select`` up to shortly
before the time, and spins for the rest: it takes up to one core while data flow, and none while they do
not.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

PR_SET_TIMERSLACK = 29
SPIN = 0.0001
"""Seconds before a piece is due in which the relay spins: what a sleeping process oversleeps, about."""
CHUNK = 65536
HELD_MAX = 4 << 20
"""Bytes on their way in one direction beyond which the relay reads no more."""


@dataclass(slots=True, eq=False)
class _Stream:
    """One direction of one connection."""

    source: socket.socket
    sink: socket.socket
    held: deque[tuple[int, bytes]] = field(default_factory=deque)
    size: int = 0
    ended: bool = False
    closed: bool = False
    reverse: _Stream | None = None


class _Loop:
    """The relay's event loop: one thread, all connections."""

    def __init__(self, listener: socket.socket, target: tuple[str, int], delay: float) -> None:
        self.listener = listener
        self.target = target
        self.delay_ns = round(delay * 1e9)
        # Not epoll, whose timeouts are whole milliseconds in Python. It allows some 500 connections.
        self.selector = selectors.SelectSelector()
        self.selector.register(listener, selectors.EVENT_READ, None)
        self.streams: list[_Stream] = []

    def run(self) -> None:
        """Until the process ends."""
        # By default the kernel lets a timer run 50 us late, to save power.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0)
        while True:
            due = min((stream.held[0][0] for stream in self.streams if stream.held), default=None)
            timeout: float | None = None
            if due is not None:
                timeout = max(0.0, (due - time.perf_counter_ns()) / 1e9 - SPIN)
            for key, _ in self.selector.select(timeout):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            for stream in list(self.streams):
                self._write(stream)

    def _accept(self) -> None:
        with suppress(OSError):
            client, _ = self.listener.accept()
            if client.fileno() > 1000:  # beyond what select can watch
                client.close()
                return
            try:
                server = socket.create_connection(self.target, 5)
            except OSError:
                client.close()
                return
            pair = [_Stream(client, server), _Stream(server, client)]
            pair[0].reverse, pair[1].reverse = pair[1], pair[0]
            for stream in pair:
                stream.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stream.source.setblocking(False)
                self.selector.register(stream.source, selectors.EVENT_READ, stream)
            self.streams += pair

    def _read(self, stream: _Stream) -> None:
        try:
            data = stream.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.perf_counter_ns()
        if not data:
            stream.ended = True
            self.selector.unregister(stream.source)
        else:
            stream.size += len(data)
            if stream.size > HELD_MAX:
                self.selector.unregister(stream.source)
        stream.held.append((now + self.delay_ns, data))

    def _write(self, stream: _Stream) -> None:
        while stream.held and stream.held[0][0] <= time.perf_counter_ns():
            due, data = stream.held.popleft()
            if not data:
                with suppress(OSError):
                    stream.sink.shutdown(socket.SHUT_WR)
                self._close(stream)
                return
            try:
                sent = stream.sink.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._abort(stream)
                return
            was_full = stream.size > HELD_MAX
            stream.size -= sent
            if was_full and stream.size <= HELD_MAX and not stream.ended:
                self.selector.register(stream.source, selectors.EVENT_READ, stream)
            if sent < len(data):
                # The reader is slow: try again a little later rather than spin on it.
                stream.held.appendleft((max(due, time.perf_counter_ns() + 1_000_000), data[sent:]))
                return

    def _close(self, stream: _Stream) -> None:
        """This direction is done; with the other one too, the connection is."""
        stream.closed = True
        self.streams.remove(stream)
        if stream.reverse is None or stream.reverse.closed:
            stream.source.close()
            stream.sink.close()

    def _abort(self, stream: _Stream) -> None:
        for one in (stream, stream.reverse):
            if one is None or one.closed:
                continue
            with suppress(KeyError, ValueError):
                self.selector.unregister(one.source)
            one.closed = True
            one.held.clear()
            self.streams.remove(one)
        stream.source.close()
        stream.sink.close()


def serve(target: tuple[str, int], delay: float, port: int = 0) -> None:
    """Relays until the process ends; prints the port first."""
    with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
        listener.setblocking(False)
        print(listener.getsockname()[1], flush=True)
        _Loop(listener, target, delay).run()


def _end_with_parent() -> None:
    """Ends this process when its standard input does: the pipe that its parent holds."""

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 1):
                pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


class Relay:
    """A relay in a process of its own. ``delay`` is one way, in seconds, and holds in both directions.

    It ends with ``close`` (or ``with``), or with the process that started it.
    """

    def __init__(self, target_port: int, delay: float, target_host: str = "127.0.0.1") -> None:
        self.delay = delay
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                __file__,
                "--target",
                f"{target_host}:{target_port}",
                "--delay",
                f"{delay * 1e6:.3f}us",
                "--end-with-stdin",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise OSError("the relay did not start")
        self.port = int(line)
        """Where clients connect, on 127.0.0.1."""
        self.pid = self._process.pid

    def close(self) -> None:
        """Ends the relay and its connections."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _delay(text: str) -> float:
    for unit, factor in (("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise argparse.ArgumentTypeError(f"{text!r} has no unit; write 0.15ms or 150us")


def main() -> None:
    """``python -m antipode_lab.relay --target 127.0.0.1:6379 --delay 0.15ms [--port N]``."""
    parser = argparse.ArgumentParser(prog="antipode_lab.relay", description="A TCP relay that delays")
    parser.add_argument("--target", required=True, help="host:port")
    parser.add_argument("--delay", required=True, type=_delay, help="one way, such as 0.15ms or 150us")
    parser.add_argument("--port", type=int, default=0, help="to listen at; 0 chooses one")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input closes")
    arguments = parser.parse_args()
    host, _, port = arguments.target.rpartition(":")
    if arguments.end_with_stdin:
        _end_with_parent()
    with suppress(KeyboardInterrupt):
        serve((host, int(port)), arguments.delay, arguments.port)


if __name__ == "__main__":
    main()
