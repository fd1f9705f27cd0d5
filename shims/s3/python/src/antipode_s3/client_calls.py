"""The client's own call, from inside our operations."""

from __future__ import annotations

import threading
from typing import Any


class _Sent(threading.local):
    flag = False


_sent = _Sent()


def begin() -> None:
    """A call of this thread begins."""
    _sent.flag = False


def leaves() -> None:
    """The call of this thread has got as far as its connection."""
    _sent.flag = True


def sent() -> bool:
    """Whether the last call of this thread has got so far: what it asked for may have been done."""
    return _sent.flag


def send(client: Any, operation: str, params: dict[str, Any]) -> Any:
    """The client's own call of an operation, past ours."""
    return client._antipode_send(operation, params)
