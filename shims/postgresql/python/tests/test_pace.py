"""How often a standby is asked that replays all the time (BAR-66), on real servers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._diagnostics.dryrun import following
from antipode._engine.pending_wait import judged_server
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.session import Session
from pg_regions import INSERT, STORE, Posts, until

MOST_A_SECOND = 100


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When Antipode asked a server how far it is."""
    asked: list[float] = []
    prepared = Session.prepared

    def ask(self: Session, name: str) -> list[str | None]:
        asked.append(time.monotonic())
        return prepared(self, name)

    monkeypatch.setattr(Session, "prepared", ask)
    return asked


@pytest.fixture
def writes(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> Iterator[None]:
    """The primary takes writes all the time."""
    ended = threading.Event()

    def write() -> None:
        with quiet_lab.connect("a", user="app") as plain:
            plain.autocommit = True
            number = 0
            while not ended.wait(0.001):
                number += 1
                plain.execute(INSERT, (f"load-{number}",))

    thread = threading.Thread(target=write)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_a_standby_that_replays_all_the_time_is_asked_when_a_position_should_be_there(
    quiet_posts: Posts, writes: None, questions: list[float]
) -> None:
    """BAR-66: for what is far it is looked at once in fifty milliseconds; what is near is seen all the same."""
    [near] = quiet_posts.write("near").of_store(STORE)
    assert isinstance(near.version, antipode.Ordered)
    far = Lineage([WriteId.position(STORE, near.version.epoch, near.version.counter + 10**12)])

    async def wait() -> None:
        waiting = asyncio.create_task(antipode.barrier_async(far, timeout=60, on_timeout="proceed"))
        await asyncio.to_thread(until, _is_asked_seldom, 50.0)
        waiting.cancel()

    def _is_asked_seldom() -> bool:
        now = time.monotonic()
        last = [each for each in questions if each > now - 1]
        return bool(questions) and questions[0] < now - 1 and len(last) <= MOST_A_SECOND

    asyncio.run(wait())
    for number in range(5):
        lineage = quiet_posts.write(f"again-{number}")
        assert antipode.barrier(lineage, timeout=50).satisfied
        assert quiet_posts.shows("b1", f"again-{number}")


def test_a_standby_is_asked_at_leisure_for_what_is_followed(
    quiet_posts: Posts, writes: None, questions: list[float]
) -> None:
    """REC-21, BAR-66: for a record of a write it is neither glanced at nor looked at twice a millisecond."""
    [near] = quiet_posts.write("near").of_store(STORE)
    assert isinstance(near.version, antipode.Ordered)
    far = WriteId.position(STORE, near.version.epoch, near.version.counter + 10**12)
    followed = following.follow([(judged_server(quiet_posts.server("b1")), far)], lambda _: None)
    assert followed is not None
    until(lambda: len(questions) > 40, 60.0)
    followed.forget()
    assert questions[40] - questions[0] > 0.5, "from 5 ms on, a quarter longer each time"
