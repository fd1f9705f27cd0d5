"""The next connection to a server is opened beside the one that answers (BAR-55, BAR-69)."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._base.background import Background
from antipode._engine.renewal import ConnectionAttempt, Renewal
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode.shim import Server, Visibility
from antipode.testing import isolated
from fakes import FakeShim, Target, fake_store, until
from inner import poller

_LIFE_S = 600.0
_numbers = itertools.count()


class Connection:
    def __init__(self, leads_to: str) -> None:
        self.leads_to = leads_to
        self.opened_by = threading.current_thread()
        self.is_closed = False


class RenewingShim(FakeShim):
    """Each connection goes where the address leads when it is made; the next one is made when a test lets it."""

    renews = True
    leads_to = "old"
    renewed_to = ""
    gate: ClassVar[threading.Event]
    made: ClassVar[list[Connection]]
    begun: ClassVar[int]
    fault: ClassVar[Exception | None]

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        server.session = server.session or self._open()
        assert not server.session.is_closed
        return super().visible(ids, server)

    def _open(self, leads_to: str = "") -> Connection:
        self.made.append(Connection(leads_to or self.leads_to))
        return self.made[-1]

    def renew(self, server: Server) -> Connection:
        RenewingShim.begun += 1
        self.gate.wait(60)
        if self.fault is not None:
            raise self.fault
        return self._open(self.renewed_to)

    def close(self, server: Server) -> None:
        session, server.session = server.session, None
        if session is not None:
            session.is_closed = True


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Holds the next connection back until it is set."""
    gate = threading.Event()
    fresh = {"gate": gate, "made": [], "begun": 0, "fault": None, "leads_to": "old", "renewed_to": ""}
    for name, value in fresh.items():
        monkeypatch.setattr(RenewingShim, name, value, raising=False)
    with isolated():
        antipode.configure(reconnect=_LIFE_S, free_path_ttl=0)
        yield gate
        gate.set()


@pytest.fixture
def server(gate: threading.Event) -> Server:
    """A server that shows its writes where a connection leads to the old one."""

    def answer(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        return [VISIBLE if server.session.leads_to == "old" else NOT_YET] * len(ids)

    [server] = fake_store("posts", Target("vip", answer), shim=RenewingShim).servers()
    assert ask()
    return server


def ask(timeout: float = 30) -> bool:
    """Return whether a barrier for a write that nobody has asked for is satisfied."""
    lineage = Lineage([WriteId("posts", f"k{next(_numbers)}".encode(), antipode.Opaque("1"))])
    return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed").satisfied


def grow_old(server: Server, left: float) -> None:
    """Let its connection have so many seconds left."""
    renewal: Renewal = poller(server)._renewal
    assert renewal._made_at is not None
    renewal._made_at = time.monotonic() + left - _LIFE_S


def test_the_one_that_is_there_answers_until_the_next_one_stands(gate: threading.Event, server: Server) -> None:
    """BAR-69: nobody stands still meanwhile; then the next one answers, and the old one is closed."""
    grow_old(server, _LIFE_S / 20)
    assert ask()
    until(lambda: RenewingShim.begun)
    assert all(ask() for _ in range(20))
    assert len(RenewingShim.made) == RenewingShim.begun == 1
    generation = poller(server).generation
    gate.set()
    until(lambda: ask() and len(RenewingShim.made) == 2 and server.session is RenewingShim.made[1])
    old, new = RenewingShim.made
    assert old.is_closed
    assert new.opened_by is not old.opened_by
    assert poller(server).generation > generation, "what the old one proved is dropped (BAR-33)"
    assert RenewingShim.begun == 1, "its time begins anew"


def test_what_it_proved_is_no_answer_of_the_next_one(gate: threading.Event, server: Server) -> None:
    """BAR-55, BAR-33: the address leads to another server by then."""
    RenewingShim.leads_to = "new"
    grow_old(server, _LIFE_S / 20)
    assert ask(), "in its time it answers"
    gate.set()
    until(lambda: not ask(0.05))


def test_behind_its_time_it_answers_nothing(gate: threading.Event, server: Server) -> None:
    """BAR-55, BAR-69: however long the next one takes; that is closed when it comes after all."""
    grow_old(server, _LIFE_S / 20)
    assert ask()
    until(lambda: RenewingShim.begun)
    RenewingShim.leads_to = "new"
    grow_old(server, 0)
    assert not ask(2)
    assert server.session is RenewingShim.made[1]
    gate.set()
    until(lambda: len(RenewingShim.made) == 3 and RenewingShim.made[2].is_closed)
    assert not server.session.is_closed


def test_the_next_one_answers_nothing_behind_its_own_time(gate: threading.Event, server: Server) -> None:
    """BAR-55, BAR-69: it stood there while nobody asked, or while the process was paused."""
    grow_old(server, _LIFE_S / 20)
    assert ask()
    until(lambda: RenewingShim.begun)
    opening = poller(server)._renewal._next
    assert opening is not None
    opening.began_at -= _LIFE_S
    RenewingShim.leads_to, RenewingShim.renewed_to = "new", "old"  # that was looked up before
    gate.set()
    until(lambda: opening.is_over)
    assert not ask(2)
    assert opening.session is None
    assert RenewingShim.made[1].is_closed


def test_one_that_cannot_be_opened_is_no_silence(gate: threading.Event, server: Server) -> None:
    """BAR-69, BAR-26: the server answers by the other one; behind that one's time the thread that asks opens one."""
    antipode.configure(replica_out_after=0.01)
    RenewingShim.fault = ConnectionRefusedError("too many connections")
    gate.set()
    grow_old(server, _LIFE_S / 20)
    assert all(ask() for _ in range(20))
    until(lambda: RenewingShim.begun)
    assert not poller(server).down
    assert RenewingShim.begun == 1, "it is not tried again and again"
    grow_old(server, 0)
    assert ask()
    assert len(RenewingShim.made) == 2


def test_no_thread_to_open_one(gate: threading.Event, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-69, BAR-61: it answers to its end."""

    def start(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Background, "start", start)
    grow_old(server, _LIFE_S / 20)
    assert all(ask() for _ in range(5))
    grow_old(server, 0)
    assert ask()
    assert len(RenewingShim.made) == 2


def test_one_that_nobody_wants_any_more_is_closed(gate: threading.Event, server: Server) -> None:
    """BAR-69: the server was given up while it was opened, or just behind."""
    grow_old(server, _LIFE_S / 20)
    assert ask()
    until(lambda: RenewingShim.begun)
    poller(server).retire()
    gate.set()
    until(lambda: len(RenewingShim.made) == 2 and RenewingShim.made[1].is_closed)
    opening = ConnectionAttempt(server)
    opening.run()
    opening.give_up()
    assert RenewingShim.made[2].is_closed
