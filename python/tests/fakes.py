"""A shim whose servers answer what a test says: for the engine's own rules, which no real store shows on demand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from antipode._model.write_id import WriteId
from antipode._store.store import Store, StoreOptions
from antipode.shim import Capabilities, Server, Shim, Visibility, join_store

Answer = Callable[[Sequence[WriteId], Server], Sequence[Visibility]]


class FakeShim(Shim):
    kind: ClassVar[str] = "fake"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="object")

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target: Target = server.target
        with target.lock:
            target.asked += 1
        return target.answer(ids, server)

    def address(self, target: object) -> str:
        assert isinstance(target, Target)
        return target.name


class Target:
    """One server: `answer` says what it answers, `asked` counts the questions."""

    def __init__(self, name: str, answer: Answer) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0
        self.lock = threading.Lock()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Block until the condition holds; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def always(visibility: Visibility) -> Answer:
    return lambda ids, server: [visibility] * len(ids)


def down(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
    raise ConnectionRefusedError("connection refused")


def fake_store(name: str, *targets: Target, shim: type[Shim] = FakeShim, mode: str | None = None) -> Store:
    return join_store(name, shim, StoreOptions(replicas=list(targets) or None, mode=mode))


class Pushing:
    """A channel that says again and again that something has changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(on_change,), daemon=True)
        self.pushed = 0
        self._thread.start()

    def _run(self, on_change: Callable[[], None]) -> None:
        while not self._ended.wait(0.002):
            on_change()
            self.pushed += 1

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Its own thread calls back."""

    def close(self) -> None:
        self._ended.set()


class PushShim(FakeShim):
    kind: ClassVar[str] = "pushing"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position", push=True)
    channels: ClassVar[list[Pushing]] = []

    def watch(self, server: Server, on_change: Callable[[], None]) -> Pushing:
        channel = Pushing(on_change)
        self.channels.append(channel)
        return channel
