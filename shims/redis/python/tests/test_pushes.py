"""What a server pushes beside its answers, on real servers (BAR-66)."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from antipode_lab.stores.redis import RedisStore
from antipode_redis.judging import ServerState
from antipode_redis.marks import DEFAULT_KEY
from antipode_redis.session import Session
from antipode_redis.targets import target_of
from regions import until


@pytest.fixture
def session(redis_lab: RedisStore) -> Iterator[Session]:
    made = Session(target_of(redis_lab.url("a")), 20.0)
    made.track()
    yield made
    made.close()


def test_a_push_that_comes_with_an_answer_is_no_reason_for_another_question(
    redis_lab: RedisStore, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-66: under many writes each answer has one behind it; the engine is told, and asks in its time."""
    other = redis_lab.client("a")
    asked: list[ServerState] = []
    told: list[None] = []
    receive, look_once = session._receive, session._look_once

    def receive_both(deadline: float) -> None:
        if not told and not asked:
            other.set("key", "value")
            until(lambda: b"invalidate" in session._socket.recv(65536, socket.MSG_PEEK))
        receive(deadline)

    def look(*of: object) -> ServerState:
        seen = look_once(*of)  # type: ignore[arg-type]
        asked.append(seen)
        return seen

    session.look([], DEFAULT_KEY)
    asked.clear()
    monkeypatch.setattr(session, "_receive", receive_both)
    monkeypatch.setattr(session, "_look_once", look)
    session.on_change = lambda: told.append(None)
    session.look([], DEFAULT_KEY)
    assert len(asked) == 1
    assert told == [None]
    session.look([], DEFAULT_KEY)
    assert told == [None]
