"""Our own connection to one server: questions, and pushes by client-side tracking, on one socket."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.exceptions import RedisError, ResponseError

from antipode_redis.info import QUESTION, Replication, parse
from antipode_redis.judging import ServerState
from antipode_redis.marks import position_of
from antipode_redis.resp import Push, Reader, ServerError, pack
from antipode_redis.targets import Target

_CHUNK: Final = 65536
_MULTI: Final = pack("MULTI")
_EXEC: Final = pack("EXEC")
_UNREADABLE: Final = frozenset({"NOPERM", "WRONGTYPE"})
"""Errors that say of the marks that they cannot be read, and nothing against the rest of the answer."""
_AGAIN: Final = 3
"""A look is repeated so often where the server's history changed between two questions."""


class Session:
    """One connection, used by one thread at a time. Every call ends within `timeout` seconds, or raises."""

    def __init__(self, target: Target, timeout: float) -> None:
        """Connects; raises what redis-py raises. `run_id` then names the server's life."""
        self.timeout = timeout
        self.tracks = False
        self.on_reset: Callable[[], None] | None = None
        """Called when the server says that all its data were replaced (a full resync, FLUSHALL)."""
        self.on_change: Callable[[], None] | None = None
        """Called when something was pushed behind an answer: the socket says of it no more."""
        self._changed = False
        try:
            self._connection = target.connect(timeout)
            self.resp3 = True
        except ResponseError as error:
            if "HELLO" not in str(error).upper():
                raise
            self._connection = target.connect(timeout, protocol=2)  # a server before 6.0, or a proxy
            self.resp3 = False
        hello = self._connection.handshake_metadata or {}
        self.hello = {_text(key): _text(value) for key, value in hello.items()} if self.resp3 else {}
        self._socket: socket.socket = self._connection._get_socket()
        self._reader = Reader()
        self._epoch = ""
        self.run_id = self._run_id()

    # Questions

    def ask(self, *commands: bytes) -> list[Any]:
        """Sends commands in one packet and returns their replies; error replies are values."""
        deadline = time.monotonic() + self.timeout
        self._socket.settimeout(self.timeout)
        self._socket.sendall(b"".join(commands))
        replies: list[Any] = []
        while len(replies) < len(commands):
            whole, message = self._reader.take()
            if not whole:
                self._receive(deadline)
            elif isinstance(message, Push):
                self._note(message)
            else:
                replies.append(message)
        return replies

    def command(self, *words: str | bytes | int) -> Any:
        """One command's reply; raises ServerError for an error."""
        reply = self.ask(pack(*words))[0]
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def _receive(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer within {self.timeout:.1f} s")
        self._socket.settimeout(left)
        data = self._socket.recv(_CHUNK)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._reader.feed(data)

    def _run_id(self) -> str:
        reply = self.ask(pack("INFO", "server"))[0]
        if isinstance(reply, ServerError):
            return f"connection:{id(self):x}:{time.monotonic_ns()}"  # unknown: no other connection is the same server
        words = dict(line.split(":", 1) for line in _text(reply).splitlines() if ":" in line)
        self.hello.setdefault("version", words.get("redis_version", ""))
        return words.get("run_id", "")

    def look(self, epochs: Sequence[str], key: str) -> ServerState:
        """Where the server is, and what its marks say of these epochs, in one atomic step.

        Two commands alone would not do: a resync can replace the data between them, under a live connection.
        Raises ServerError where the server refuses to say where it is.
        """
        for _ in range(_AGAIN):
            seen = self._look_once(epochs, key)
            history = seen.replication.epoch
            steady = history == self._epoch or all(epoch == history for epoch in epochs)
            self._epoch = history
            self._changed = False  # what was pushed before the answer, the answer knows
            if steady:
                break
        self._drain()
        if self._changed and self.on_change is not None:
            self._changed = False
            self.on_change()  # the engine says when it is asked for (BAR-66)
        return seen

    def _look_once(self, epochs: Sequence[str], key: str) -> ServerState:
        foreign = [epoch for epoch in epochs if epoch != self._epoch]
        if not foreign:
            reply = self.ask(QUESTION)[0]
            if isinstance(reply, ServerError):
                raise reply
            # INFO is answered while other data are being loaded, and then still names the former parent.
            return ServerState(parse(reply)._replace(before="", before_end=0), {})
        fields = [self._epoch or "-", *foreign]
        replies = self.ask(_MULTI, QUESTION, pack("HMGET", key, *fields), _EXEC)
        asked, refused = replies[1], replies[2]
        whole = replies[3]
        if isinstance(asked, ServerError):
            raise asked
        if isinstance(whole, list):
            info, values = whole
            if isinstance(info, ServerError):
                raise info
            if isinstance(values, list):
                found = {field: position_of(value) for field, value in zip(fields, values, strict=True)}
                return ServerState(parse(info), {field: at for field, at in found.items() if at is not None})
            refused = values
        if isinstance(refused, ServerError) and refused.code not in _UNREADABLE:
            raise refused  # LOADING: its data are being replaced, and what it says of its history is of before
        if not isinstance(refused, ServerError):
            raise whole if isinstance(whole, ServerError) else ConnectionError(f"EXEC answered {whole!r}")
        whole = self.ask(_MULTI, QUESTION, pack("INFO", "persistence"), _EXEC)[3]
        error = (
            whole if isinstance(whole, ServerError) else next((r for r in whole if isinstance(r, ServerError)), None)
        )
        if error is not None:
            raise error
        if b"\nloading:1" in whole[1]:
            raise ServerError("LOADING its data are being replaced")
        return ServerState(parse(whole[0]), {}, marks_known=False, why_no_marks=f"its marks cannot be read ({refused})")

    def replication(self) -> Replication:
        """Where the server is; raises ServerError where it refuses to say."""
        reply = self.ask(QUESTION)[0]
        if isinstance(reply, ServerError):
            raise reply
        return parse(reply)

    # Pushes

    def track(self) -> None:
        """Has every change at the server pushed to this connection; raises ServerError where it refuses."""
        if not self.resp3:
            raise ServerError("NOPROTO the server does not speak RESP3")
        self.command("CLIENT", "TRACKING", "ON", "BCAST")
        self.tracks = True

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def pump(self) -> bool:
        """Reads what was pushed, without blocking; True if anything was. Raises if the connection is broken."""
        self._socket.settimeout(0)
        while True:
            try:
                data = self._socket.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if not data:
                raise ConnectionError("the server closed the connection")
            self._reader.feed(data)
            if len(data) < _CHUNK and not isinstance(self._socket, ssl.SSLSocket):
                break
        self._drain()
        changed, self._changed = self._changed, False
        return changed

    def _drain(self) -> None:
        while self._reader:
            whole, message = self._reader.take()
            if not whole:
                return
            if isinstance(message, Push):
                self._note(message)

    def _note(self, push: Push) -> None:
        if push and push[0] == b"invalidate":
            self._changed = True
            if len(push) > 1 and push[1] is None and self.on_reset is not None:
                self.on_reset()

    def close(self) -> None:
        """Ends the connection; never raises."""
        try:
            self._connection.disconnect()
        except (OSError, RedisError):
            return


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
