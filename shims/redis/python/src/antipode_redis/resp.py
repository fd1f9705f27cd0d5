"""A small reader of RESP 2 and 3: for our own connections, where answers and pushes come on one socket.

redis-py's reader is right for clients; ours has to hand the socket to `select`, and skims pushes of many keys.
"""

from __future__ import annotations

from typing import Any, Final


class ServerError(Exception):
    """An error reply, as a value."""

    @property
    def code(self) -> str:
        """Its first word: NOPERM, LOADING, …"""
        return str(self).partition(" ")[0]


class Push(list[Any]):
    """A message that answers nothing."""


class _Short(Exception):  # no error: more bytes are needed
    pass


_SIMPLE: Final = frozenset(b"+-:_#,(")


class Reader:
    """Takes bytes, gives whole messages."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        """More bytes from the socket."""
        self._data += data

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self) -> tuple[bool, Any]:
        """The next message: (True, message), or (False, None) where it has not arrived whole."""
        start = self._at
        try:
            message = self._read()
        except _Short:
            self._at = start
            return False, None
        if self._at == len(self._data):
            self._data.clear()
            self._at = 0
        elif self._at > 65536:
            del self._data[: self._at]
            self._at = 0
        return True, message

    def _line(self) -> tuple[int, bytes]:
        end = self._data.find(b"\r\n", self._at)
        if end < 0:
            raise _Short
        kind = self._data[self._at]
        line = bytes(self._data[self._at + 1 : end])
        self._at = end + 2
        return kind, line

    def _read(self) -> Any:
        kind, line = self._line()
        if kind in _SIMPLE:
            return _simple(kind, line)
        if kind in b"$=!":
            size = int(line)
            if size < 0:
                return None
            end = self._at + size
            if len(self._data) < end + 2:
                raise _Short
            text = bytes(self._data[self._at : end])
            self._at = end + 2
            if kind == ord("!"):
                return ServerError(text.decode("utf-8", "replace"))
            return text[4:] if kind == ord("=") else text
        if kind in b"*~>":
            size = int(line)
            items = None if size < 0 else [self._read() for _ in range(size)]
            return Push(items or []) if kind == ord(">") else items
        if kind == ord("%"):
            return {_key(self._read()): self._read() for _ in range(int(line))}
        if kind == ord("|"):  # attributes of the message that follows: nobody asked for them
            for _ in range(2 * int(line)):
                self._read()
            return self._read()
        raise ConnectionError(f"the server does not speak RESP: {bytes([kind]) + line[:60]!r}")


def _simple(kind: int, line: bytes) -> Any:
    if kind == ord("-"):
        return ServerError(line.decode("utf-8", "replace"))
    if kind in b":(":
        return int(line)
    if kind == ord("_"):
        return None
    if kind == ord("#"):
        return line == b"t"
    return float(line) if kind == ord(",") else line


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def pack(*words: str | bytes | int) -> bytes:
    """One command in the protocol's form."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        octets = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(octets), octets))
    return b"".join(parts)
