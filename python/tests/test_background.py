"""A thread that finds no memory before it has begun is waited for by nobody (spec BAR-61, python/cpython#140746)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import antipode
import pytest
from antipode import Lineage, UnprovenKind, WriteId
from antipode._base import background
from antipode._base.background import Background, Bell
from antipode._diagnostics.dryrun.record_writer import RecordWriter
from antipode._model.verdict import VISIBLE
from antipode.shim import StoreOptions, join_store
from fakes import FakeShim, Target, always, fake_store, until
from parked_barriers import Client

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads of Antipode's end before they begin, as those that find no memory do."""
    monkeypatch.setattr(background, "_BEGIN_S", 0.05)
    with monkeypatch.context() as patched:
        patched.setattr(Background, "_bootstrap", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def _rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test lacked is nothing to the next one."""
    monkeypatch.setattr(Background, "rests_until", -1e9)


def judge() -> antipode.BarrierResult:
    return antipode.barrier(WRITE, timeout=50, on_timeout="proceed", on_unproven="proceed")


def test_a_thread_that_does_not_begin_fails_its_start(no_memory: None) -> None:
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="did not begin"):
        Background(lambda: None, "t").start()
    assert threading.active_count() <= before, "those of earlier tests may end meanwhile"


def test_whoever_comes_behind_it_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-61: each would wait for a thread of its own, some under a lock."""
    begun: list[object] = []

    def start(self: threading.Thread) -> None:
        begun.append(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(background, "_BEGIN_S", 0.05)
    with pytest.raises(RuntimeError, match="did not begin"):
        Background(lambda: None, "t").start()
    with pytest.raises(RuntimeError, match="just failed"):
        Background(lambda: None, "t").start()
    assert len(begun) == 1


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started it has gone on without it."""
    monkeypatch.setattr(background, "_BEGIN_S", 0.01)
    goes, done = threading.Event(), []
    run = Background.run

    def late(self: Background) -> None:
        assert goes.wait(60)
        run(self)

    monkeypatch.setattr(Background, "run", late)
    thread = Background(lambda: done.append(1), "t")
    with pytest.raises(RuntimeError, match="did not begin"):
        thread.start()
    goes.set()
    thread.join(60)
    assert not done


@pytest.mark.parametrize("is_known", [True, False])
def test_a_barrier_that_needs_such_a_thread_is_unproven(no_memory: None, is_known: bool) -> None:
    """BAR-61, BAR-28: the one that asks a server, and the one that asks which servers there are."""
    if is_known:
        fake_store("posts", Target("first", always(VISIBLE)))
    else:
        client = Client(Target("first", always(VISIBLE)))
        store = join_store("posts", FakeShim, StoreOptions())
        store.follow_client(client, lambda it: it.leads_to, lambda it: [it.leads_to], "a client")
    result = judge()
    assert not result.satisfied
    assert result.stores["posts"].kind is UnprovenKind.OWN_FAULT


def test_all_is_whole_again_when_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-61: the next barrier starts another one."""
    monkeypatch.setattr(background, "_BEGIN_S", 0.05)
    fake_store("posts", Target("first", always(VISIBLE)))
    with monkeypatch.context() as patched:
        patched.setattr(Background, "_bootstrap", lambda _: None)
        assert not judge().satisfied
    until(lambda: judge().satisfied)


def test_a_bell_wakes_whoever_sleeps_or_is_about_to() -> None:
    bell = Bell()
    assert not bell.wait(0.0)
    bell.ring()
    bell.ring()
    assert bell.wait(60.0), "it rang before"
    assert not bell.wait(0.0), "once"
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(bell.wait(60.0)))
    thread.start()
    bell.ring()
    thread.join(70)
    assert woken == [True]


def test_what_is_recorded_while_the_writer_starts_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-2: by a signal's handler, or a finalizer, of the thread that starts it."""
    antipode.configure(records=tmp_path)
    writer = RecordWriter()
    start = Background.start
    waited: list[bool] = []

    def interrupted(self: Background) -> None:
        handler = threading.Thread(target=writer.put, args=({"record": 2},), daemon=True)
        handler.start()
        handler.join(10)
        waited.append(handler.is_alive())
        start(self)

    monkeypatch.setattr(Background, "start", interrupted)
    writer.put({"record": 1})
    assert writer.flush(60)
    assert waited == [False]
    [file] = tmp_path.glob("*.jsonl")
    assert len(file.read_text().splitlines()) == 2
