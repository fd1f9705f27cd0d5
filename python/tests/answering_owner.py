"""An owner of the store `posts` that answers as a test says (spec DELEG)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from antipode import Lineage, WriteId

EPOCH = "8371ab90c2d4e6f1"
WRITE = WriteId.position("posts", EPOCH, 7)
TEXT = Lineage([WRITE]).serialize()
NONCE = "0123456789abcdef" * 2


@contextmanager
def answering(reply: Callable[[dict[str, Any]], bytes], *, end: bool = False) -> Iterator[str]:
    """An owner that answers each question so, and ends the connection then; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            while line := lines.readline():
                length = 0
                while (line := lines.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                connection.sendall(reply(json.loads(lines.read(length))))
                if end:
                    return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)


def http(body: bytes | dict[str, Any], status: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data
