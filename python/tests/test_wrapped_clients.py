"""What wrapped clients of the core do by: the settings in force, and the mode of their store (spec SHIM-54)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode._diagnostics.history import recorder
from antipode._store.read import WrappedClient
from antipode.shim import StoreOptions, join_store
from antipode.testing import isolated

_MOST_LINES = 20
"""More than a refresh has."""


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def store() -> antipode.memory.Store:
    return antipode.memory.Store("posts")


def _join(store: antipode.memory.Store, mode: str) -> None:
    """What `wrap(…, mode=…)` does elsewhere in the process."""
    join_store(store.name, store._shim, StoreOptions(mode=mode))


@pytest.mark.parametrize("before", ["dry-run", "off"])
def test_a_mode_that_another_wrap_gives(store: antipode.memory.Store, before: str) -> None:
    """BAR-51: a read waits by the mode that its store has now, whatever it had when the client was wrapped."""
    antipode.configure(timeout=0.05)
    _join(store, before)
    near, far = store.client("a"), store.client("b", wait_on_read=True, replicas=["b"])
    with antipode.scope():
        near.set("k", "old")
        far.get("k")
    _join(store, "enforce")
    store.freeze("b")
    with antipode.scope() as opened:
        near.set("k", "new")
        assert opened.lineage.of_store("posts")
        with pytest.raises(antipode.BarrierTimeout):
            far.get("k")


class _Stepped(threading.Thread):
    """A thread that stops before the given line of those that one function does, until it may go on."""

    def __init__(self, work: Callable[[], Any], function: str, line: int) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._function = function
        self._left = line
        self._stopped, self._goes_on = threading.Event(), threading.Event()

    def run(self) -> None:
        sys.settrace(self._trace)
        self._work()
        sys.settrace(None)
        self._stopped.set()

    def stop(self) -> None:
        self.start()
        assert self._stopped.wait(10)

    def end(self) -> None:
        self._goes_on.set()
        self.join(10)
        assert not self.is_alive()

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_name != self._function:
            return None
        if event == "line":
            if self._left == 0:
                self._stopped.set()
                self._goes_on.wait(10)
            self._left -= 1
        return self._trace


def test_settings_that_change_while_two_threads_take_them(store: antipode.memory.Store) -> None:
    """SHIM-54: whichever way two threads come through, the flags end up as those of the settings in force."""
    joined = join_store(store.name, store._shim)
    for first in range(_MOST_LINES):
        for second in range(_MOST_LINES):
            client = WrappedClient(joined, StoreOptions(wait_on_read=True))
            antipode.configure(mode="dry-run")
            older = _Stepped(client.refresh, "refresh", first)
            older.stop()
            antipode.configure(mode="enforce")
            newer = _Stepped(client.refresh, "refresh", second)
            newer.stop()
            older.end()
            newer.end()
            client.refresh()
            assert (client.waits, client.follows) == (True, False), (first, second)


def test_a_line_that_cannot_be_told(
    store: antipode.memory.Store, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HIST-24: a read whose line cannot be built is over all the same, and what comes behind it comes after it."""
    antipode.configure(history=tmp_path)
    client = store.client("a")

    def broken(_: bytes) -> str:
        raise ValueError("no such key")

    with antipode.scope() as opened:
        client.set("k", "v")
        with monkeypatch.context() as patched:
            patched.setattr(recorder, "spelled_key", broken)
            assert client.get("k") == b"v"
        assert opened.strand[1].holder is None
    assert recorder._current is not None
    assert recorder._current.flush()
    assert "could not be recorded" in "".join(path.read_text() for path in tmp_path.glob("*"))
