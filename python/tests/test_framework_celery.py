"""The page of Celery, and its adapter: python/docs/frameworks/celery.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import antipode
import antipode.celery
import antipode.memory
import pytest
from antipode import ConfigurationError, Lineage, WriteId
from antipode._model.branch_ids import branches_of
from antipode._scope.pending_write import PendingWrite
from antipode_lab.fixtures import LabFactory
from celery import Celery, chain, chord, signals  # type: ignore[import-untyped]
from celery.contrib.testing.worker import start_worker  # type: ignore[import-untyped]
from kombu.common import Broadcast
from kombu.entity import Queue
from pages import imported

DEADLINE = 60.0


def write(name: str) -> WriteId:
    return WriteId.position(f"store-{name}", "e", 1)


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A worker in this process would set the root logger's level and handlers, for all later tests too."""

    def leave_it(**_: object) -> None:
        pass

    signals.setup_logging.connect(leave_it)
    yield
    signals.setup_logging.disconnect(leave_it)


@contextmanager
def working(app: Celery) -> Iterator[None]:
    """A worker of this application in a thread of this process."""
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30.0):
        yield


@pytest.fixture
def app() -> Iterator[Celery]:
    made = antipode.celery.instrument(Celery("test", broker="memory://", backend="cache+memory://"))
    assert antipode.celery.instrument(made) is made
    yield made
    made.close()


class Ran:
    """What tasks have seen, in the process of the test."""

    def __init__(self) -> None:
        self.lineages: list[Lineage] = []
        self.scopes: list[antipode.Scope] = []

    def note(self) -> Lineage:
        scope = antipode.current_scope()
        assert scope is not None
        assert scope.kind == "message"
        self.scopes.append(scope)
        self.lineages.append(scope.lineage)
        return scope.lineage


@pytest.fixture
def ran() -> Ran:
    return Ran()


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier in the task waits for what the sender wrote; one in vain has Celery try again."""
    monkeypatch.setenv("BROKER", "memory://page")
    retried: list[str] = []
    done: dict[str, Any] = {}

    def note_retry(request: Any = None, **_: Any) -> None:
        retried.append(request.id)

    def note_success(sender: Any = None, result: Any = None, **_: Any) -> None:
        done[sender.name] = result

    with imported("celery.md", tmp_path) as get:
        tasks, stores = get("tasks"), get("stores")
        signals.task_retry.connect(note_retry)
        signals.task_success.connect(note_success)
        try:
            with working(tasks.app):
                stores.store.freeze("b")
                get("send")
                until(lambda: retried, "a barrier has ended in vain")
                stores.store.heal("b")
                until(lambda: "tasks.index" in done, "the task after it has run")
        finally:
            signals.task_retry.disconnect(note_retry)
            signals.task_success.disconnect(note_success)
    assert done == {"tasks.notify": "body", "tasks.index": "body"}


def test_a_scope_a_task(app: Celery, ran: Ran) -> None:
    """SCOPE-3, SCOPE-6, PROP-17."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def one() -> str:
        ran.note()
        antipode.append(write("inside"))
        return antipode.serialize()

    with working(app):
        with antipode.scope() as scope:
            antipode.append(write("a"))
            first = one.delay()
            assert first.get(timeout=DEADLINE) == Lineage([write("a"), write("inside")]).serialize()
            antipode.append(write("b"))
            one.apply_async(countdown=0.05).get(timeout=DEADLINE)
            assert scope.lineage == Lineage([write("a"), write("b")])
        one.delay().get(timeout=DEADLINE)
    assert ran.lineages == [Lineage([write("a")]), Lineage([write("a"), write("b")]), Lineage()]
    assert len(set(ran.scopes)) == 3
    assert all(each.closed for each in ran.scopes)
    assert ran.scopes[0].endpoint is not None
    assert ran.scopes[0].endpoint() == f"task {one.name}"


def test_chains_and_callbacks_carry_what_the_task_before_wrote(app: Celery, ran: Ran) -> None:
    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def step(name: str) -> str:
        ran.note()
        antipode.append(write(name))
        return f"{name}x"

    with working(app), antipode.scope():
        antipode.append(write("before"))
        result = chain(step.s("a"), step.s())()
        result.get(timeout=DEADLINE)
        step.apply_async(("l",), link=step.s())
        until(lambda: len(ran.lineages) == 4, "the callback has run")
    assert ran.lineages[:2] == [Lineage([write("before")]), Lineage([write("before"), write("a")])]
    assert ran.lineages[2:] == [Lineage([write("before")]), Lineage([write("before"), write("l")])]


def test_a_retry_carries_what_was_written_until_then(app: Celery, ran: Ran) -> None:
    @app.task(bind=True, max_retries=2, shared=False)  # type: ignore[untyped-decorator]
    def again(self: Any) -> None:
        ran.note()
        antipode.append(write(f"{self.request.retries}"))
        if self.request.retries < 2:
            raise self.retry(countdown=0)

    with working(app), antipode.scope():
        antipode.append(write("before"))
        again.delay().get(timeout=DEADLINE)
    assert ran.lineages == [Lineage([write("before"), *map(write, "01"[:n])]) for n in range(3)]
    assert len(set(ran.scopes)) == 3


@pytest.mark.parametrize("eager", [False, True])
def test_a_branch_is_closed_by_the_attempt_that_succeeds(app: Celery, eager: bool) -> None:
    """BRANCH-6: a retry takes the place of the task, and a barrier waits until it has closed the branch."""
    orders = antipode.memory.Store("orders", regions=["a"]).client("a")
    antipode.configure(branches=orders)
    app.conf.task_always_eager = eager

    @app.task(bind=True, max_retries=3, shared=False)  # type: ignore[untyped-decorator]
    def refund(self: Any) -> None:
        if self.request.retries < 2:
            raise self.retry(countdown=0)
        orders.set("order:1", "refunded")
        antipode.close()

    with nullcontext() if eager else working(app):
        with antipode.scope() as scope:
            with antipode.branch(within=60):
                refund.delay()
            assert antipode.barrier(timeout=50).complete
            assert list(scope.lineage.stores) == ["orders"]


def test_a_task_that_fails_ends_its_scope(app: Celery, ran: Ran) -> None:
    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def broken() -> None:
        ran.note()
        raise ValueError("broken")

    with working(app), antipode.scope():
        with pytest.raises(ValueError, match="broken"):
            broken.delay().get(timeout=DEADLINE)
        until(lambda: ran.scopes[0].closed, "its scope has ended")


def test_eager_tasks_have_scopes_of_their_own(app: Celery, ran: Ran) -> None:
    """Also one within another; what they write is theirs, as with a broker."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def inner() -> None:
        ran.note()

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def outer() -> None:
        ran.note()
        antipode.append(write("outer"))
        inner.delay()
        ran.note()

    app.conf.task_always_eager = True
    with antipode.scope() as scope:
        antipode.append(write("before"))
        outer.delay()
        assert antipode.current_scope() is scope
        assert scope.lineage == Lineage([write("before")])
    both = Lineage([write("before"), write("outer")])
    assert ran.lineages == [Lineage([write("before")]), both, both]
    first, second, third = ran.scopes
    assert first is third
    assert first is not second
    outer.apply()  # outside any scope
    assert ran.lineages[3] == Lineage()


def test_eager_chains_and_chords_carry_what_the_tasks_before_wrote(app: Celery, ran: Ran) -> None:
    """PROP-35: the next task has it, and the sender has not, as with a broker; nor has what comes after."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def step(*arguments: Any) -> str:
        ran.note()
        antipode.append(write(arguments[-1]))
        return "done"

    app.conf.task_always_eager = True
    with antipode.scope() as scope:
        chain(step.si("a"), step.si("b"), step.si("c")).delay()
        assert [sorted(each.stores) for each in ran.lineages] == [[], ["store-a"], ["store-a", "store-b"]]
        chord([step.si("d"), step.si("e")])(step.si("f"))
        assert sorted(ran.lineages[-1].stores) == ["store-d", "store-e"]
        step.delay("g")
        assert ran.lineages[-1] == Lineage()
        assert scope.lineage == Lineage()


def test_on_pending_reaches_who_sends(app: Celery) -> None:
    """SCOPE-19: `delay` before the commit."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def one() -> None: ...

    antipode.configure(on_pending="raise")
    with antipode.scope() as scope:
        scope.begin(PendingWrite("orders"))
        with pytest.raises(antipode.PendingWriteError):
            one.delay()


def test_a_relay_sends_the_header_that_its_row_has(app: Celery, ran: Ran) -> None:
    """Outside any scope a header of the application's own stays; in one, the scope's is sent."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def one() -> None:
        ran.note()

    row = {"antipode-lineage": Lineage([write("row")]).serialize(), "own": "1"}
    with working(app):
        one.apply_async(headers=row).get(timeout=DEADLINE)
        with antipode.scope(Lineage([write("scope")])):
            one.apply_async(headers=row).get(timeout=DEADLINE)
    assert ran.lineages == [Lineage([write("row")]), Lineage([write("scope")])]


def test_redeliver_is_refused_with_the_words_that_help(app: Celery) -> None:
    """BAR-45."""

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def one() -> None:
        antipode.barrier(on_timeout="redeliver")

    antipode.memory.Store("s", regions=["a"]).client("a")
    with working(app), pytest.raises(ConfigurationError, match="autoretry_for"):
        one.delay().get(timeout=DEADLINE)


def test_another_application_in_the_process_stays_as_it_is(app: Celery) -> None:
    seen: list[antipode.Scope | None] = []
    other = Celery("other", broker="memory://other", backend="cache+memory://")

    @other.task(shared=False)  # type: ignore[untyped-decorator]
    def one() -> None:
        seen.append(antipode.current_scope())

    other.conf.task_always_eager = True
    one.delay()
    assert seen == [None]
    other.close()


WORKER = """
import json, os, pathlib, time
import antipode, antipode.celery
from antipode import WriteId
from celery import Celery

app = antipode.celery.instrument(Celery("killed", broker=os.environ["BROKER"]))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, broker_connection_retry_on_startup=True
)
log = pathlib.Path(os.environ["LOG"])


@app.task(name="die_once")
def die_once():
    scope = antipode.current_scope()
    deliveries = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as out:
        out.write(json.dumps([os.getpid(), scope.kind, antipode.serialize()]) + "\\n")
    antipode.append(WriteId.position("store-inside", "e", 1))
    if deliveries == 0:
        time.sleep(60)  # killed here
"""


def test_a_redelivery_has_the_lineage_that_the_message_had(
    tmp_path: Path, lab_factory: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """acks_late on a real broker, with preforked workers of which one is killed in the task (SCOPE-13)."""
    port = lab_factory("redis").redis.server("a").port
    log = tmp_path / "log"
    (tmp_path / "worker_of_test.py").write_text(WORKER)
    environment = {**os.environ, "BROKER": f"redis://127.0.0.1:{port}/0", "LOG": str(log)}
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "worker_of_test",
        "worker",
        "-c",
        "1",
        "-P",
        "prefork",
        "-l",
        "info",
    ]

    def entries() -> list[Any]:
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    sender = antipode.celery.instrument(Celery("sender", broker=environment["BROKER"]))
    with (tmp_path / "output").open("w") as output:
        worker = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            with antipode.scope(Lineage([write("before")])):
                sender.send_task("die_once")
            until(lambda: len(entries()) == 1, (tmp_path / "output").read_text())
            os.kill(entries()[0][0], signal.SIGKILL)
            until(lambda: len(entries()) == 2, (tmp_path / "output").read_text())
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(30)
            sender.close()
    [first, second] = entries()
    assert first[0] != second[0]
    assert [first[1:], second[1:]] == [["message", Lineage([write("before")]).serialize()]] * 2


@pytest.mark.parametrize("way", ["broadcast", "topic", "past its queue"])
def test_a_task_is_handed_to_no_exchange_with_several_queues(app: Celery, way: str) -> None:
    """BRANCH-28: nothing is announced, and nothing is sent."""
    orders = antipode.memory.Store("orders", regions=["a"]).client("a")
    antipode.configure(branches=orders)
    app.conf.task_queues = [Queue("celery"), Broadcast("everybody")]  # type: ignore[no-untyped-call]
    options: dict[str, dict[str, Any]] = {
        "broadcast": {"queue": "everybody"},
        "topic": {"exchange": "orders", "routing_key": "x", "exchange_type": "topic"},
        "past its queue": {"exchange": "celery", "routing_key": "celery"},
    }

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def refund() -> None:
        antipode.close()

    with antipode.scope() as scope:
        with antipode.branch(within=60), pytest.raises(ConfigurationError, match="AP119"):
            refund.apply_async(**options[way])
        assert not scope.lineage
        with antipode.branch(within=60):
            refund.apply_async()
        assert len(branches_of(scope.lineage)) == 1
