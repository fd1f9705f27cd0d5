"""An address that comes to lead to another server, as a floating address or a name does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

__all__ = ["Endpoint"]

_CHUNK = 65536


class Endpoint:
    """A port in front of several servers, of which it leads to one; open connections stay where they are."""

    def __init__(self, port: int) -> None:
        self.leads_to = port
        """The port of the server to which the next connection leads."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                threading.Thread(target=self._lead, args=(client, self.leads_to), daemon=True).start()

    def _lead(self, client: socket.socket, port: int) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", port))
        except OSError:
            client.close()
            return
        self._open.append(server)
        threading.Thread(target=self._carry, args=(server, client), daemon=True).start()
        self._carry(client, server)

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it, and the connections through it."""
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
