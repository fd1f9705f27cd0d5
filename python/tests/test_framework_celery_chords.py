"""Fan-in of Celery: whoever a result backend sends for has the lineages of all that it speaks of (PROP-35)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode.celery
import pytest
from antipode import Lineage, WriteId
from antipode_lab.fixtures import LabFactory
from celery import Celery, chain, chord, group, signals  # type: ignore[import-untyped]
from celery.contrib.testing.worker import start_worker  # type: ignore[import-untyped]

DEADLINE = 60.0


def write(name: str) -> WriteId:
    return WriteId.position(f"store-{name}", "e", 1)


def stores(*names: str) -> list[str]:
    return [f"store-{name}" for name in sorted(names)]


class Tasks:
    """An application on a real broker, and what its tasks have seen."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.seen: dict[str, Lineage] = {}

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def step(*arguments: Any) -> str:
            antipode.append(write(arguments[-1]))
            return str(arguments[-1])

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def fails() -> None:
            antipode.append(write("failed"))
            raise ValueError("broken")

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def note(*arguments: Any) -> str:
            scope = antipode.current_scope()
            assert scope is not None
            self.seen[str(arguments[-1])] = scope.lineage
            antipode.append(write(f"of-{arguments[-1]}"))
            return "noted"

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def note_failure(_: str) -> None:
            note("errback")

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def note_error(_: Any, _error: Any, _traceback: Any) -> None:
            note("errback")

        @app.task(bind=True, shared=False)  # type: ignore[untyped-decorator]
        def twice(task: Any) -> None:
            name = f"run{len(self.runs)}"
            self.runs.append(name)
            if name == "run0":  # as after a broker's time to acknowledge: the second run is over first
                task.signature_from_request().apply_async()
                self.wait_for("the second run", lambda: self.ended == [task.request.id])
            antipode.append(write(name))

        @app.task(shared=False)  # type: ignore[untyped-decorator]
        def waits() -> None:
            self.wait_for("both runs", lambda: len(self.ended) == 2)

        @app.task(bind=True, shared=False)  # type: ignore[untyped-decorator]
        def grows(task: Any) -> None:
            task.add_to_chord(step.si("added"))

        @app.task(bind=True, max_retries=2, shared=False)  # type: ignore[untyped-decorator]
        def again(task: Any, name: str) -> str:
            antipode.append(write(f"{name}{task.request.retries}"))
            if task.request.retries < 1:
                raise task.retry(countdown=0)
            return name

        self.step, self.fails, self.note, self.again = step, fails, note, again
        self.note_failure, self.note_error, self.grows = note_failure, note_error, grows
        self.twice, self.waits = twice, waits
        self.runs: list[str] = []
        self.ended: list[str] = []
        signals.task_success.connect(self._note_end, sender=twice)

    def _note_end(self, sender: Any, **_: object) -> None:
        self.ended.append(sender.request.id)

    def seen_by(self, name: str) -> Lineage:
        self.wait_for(name, lambda: name in self.seen)
        return self.seen[name]

    def wait_for(self, name: str, is_there: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE
        while not is_there():
            assert time.monotonic() < end, f"{name} has not run"
            time.sleep(0.02)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    def leave_it(**_: object) -> None:
        pass

    signals.setup_logging.connect(leave_it)
    yield
    signals.setup_logging.disconnect(leave_it)


@pytest.fixture(params=["redis", "database", "cache"])
def tasks(request: pytest.FixtureRequest, lab_factory: LabFactory, tmp_path: Path) -> Iterator[Tasks]:
    """By a backend that counts the parts of a chord, one that polls for them, and one that counts by another way."""
    url = f"redis://127.0.0.1:{lab_factory('redis').redis.server('a').port}"
    backends = {"redis": f"{url}/1", "database": f"db+sqlite:///{tmp_path}/results.db", "cache": "cache+memory://"}
    app = antipode.celery.instrument(Celery("chords", broker=f"{url}/0", backend=backends[request.param]))
    app.conf.update(result_chord_retry_interval=0.1, task_default_queue=f"chords-{request.param}")
    # A result of the test before, whose server has ended, would try for twenty seconds to say that it is gone.
    app.conf.result_backend_transport_options = {"retry_policy": {"max_retries": 1, "interval_start": 0}}
    made = Tasks(app)
    with start_worker(app, pool="threads", concurrency=3, perform_ping_check=False, shutdown_timeout=30.0):
        yield made
    gc.collect()  # results, which say to the backend that they are gone
    app.close()


Make = Callable[[Tasks], Any]
CHORDS: dict[str, tuple[Make, list[str]]] = {
    "chord": (lambda t: chord([t.step.si("a"), t.step.si("b")])(t.note.si("body")), stores("a", "b")),
    "group": (lambda t: (group(t.step.si("a"), t.step.si("b")) | t.note.si("body")).delay(), stores("a", "b")),
    "chain in the header": (
        lambda t: chord([chain(t.step.si("a"), t.step.si("c")), t.step.si("b")])(t.note.si("body")),
        stores("a", "b", "c"),
    ),
    "group in the header": (
        lambda t: chord([group(t.step.si("a"), t.step.si("c")), t.step.si("b")])(t.note.si("body")),
        stores("a", "b", "c"),
    ),
    "chord in the header": (
        lambda t: chord([chord([t.step.si("a"), t.step.si("c")], t.step.si("d")), t.step.si("b")])(t.note.si("body")),
        stores("a", "b", "c", "d"),
    ),
    "a part tried again": (
        lambda t: chord([t.again.si("a"), t.step.si("b")])(t.note.si("body")),
        stores("a0", "a1", "b"),
    ),
    "chain of groups": (
        lambda t: chain(
            group(t.step.si("a"), t.step.si("b")), group(t.step.si("c"), t.step.si("d")), t.note.si("body")
        ).delay(),
        stores("a", "b", "c", "d"),
    ),
    "a body that is a chain": (
        lambda t: chord([t.step.si("a"), t.step.si("b")])(chain(t.step.si("c"), t.note.si("body"))),
        stores("a", "b", "c"),
    ),
}


@pytest.mark.parametrize("name", CHORDS)
def test_the_body_depends_on_every_part(tasks: Tasks, name: str) -> None:
    make, wanted = CHORDS[name]
    with antipode.scope(Lineage([write("sender")])):
        make(tasks)
    seen = tasks.seen_by("body")
    assert sorted(seen.stores) == sorted([*wanted, "store-sender"])
    assert seen.is_complete()


def test_each_member_of_a_group_body_depends_on_every_part(tasks: Tasks) -> None:
    with antipode.scope():
        chord([tasks.step.si("a"), tasks.step.si("b")])(group(tasks.note.si("one"), tasks.note.si("two")))
    for name in ("one", "two"):
        assert sorted(tasks.seen_by(name).stores) == stores("a", "b")


@pytest.mark.parametrize("name", ["note_failure", "note_error"])
def test_the_errback_of_a_chord_depends_on_its_parts(tasks: Tasks, name: str) -> None:
    """What a part has left that had not ended is not known: incomplete. One that takes the error has no message."""
    with antipode.scope():
        body = tasks.note.si("body").on_error(getattr(tasks, name).s())
        ended = chord([tasks.step.si("a"), tasks.fails.si()])(body)
    seen = tasks.seen_by("errback")
    tasks.wait_for("the body's end", ended.failed)
    assert "store-failed" in seen.stores
    assert "store-a" in seen.stores or not seen.is_complete()


@pytest.mark.parametrize("tasks", ["redis", "database"], indirect=True)  # the other counts a second run as a part
def test_the_body_depends_on_each_run_of_a_part(tasks: Tasks) -> None:
    """PROP-35: a broker delivers a task twice, and both have written."""
    with antipode.scope():
        chord([tasks.twice.si(), tasks.waits.si()])(tasks.note.si("body"))
    seen = tasks.seen_by("body")
    assert sorted(seen.stores) == stores("run0", "run1")
    assert seen.is_complete()
    resting = tasks.app.backend.get_task_meta(f"antipode-{tasks.ended[0]}")
    assert resting["date_done"], "without a date a database keeps it for ever"


def test_a_part_whose_lineage_is_not_there_leaves_the_body_incomplete(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = type(tasks.app.backend).store_result

    def forget(self: Any, task_id: str, result: Any, *args: Any, **kwargs: Any) -> Any:
        if task_id.startswith("antipode-") and "store-a" in str(result):
            return None
        return stored(self, task_id, result, *args, **kwargs)

    monkeypatch.setattr(type(tasks.app.backend), "store_result", forget)
    with antipode.scope():
        chord([tasks.step.si("a"), tasks.step.si("b")])(tasks.note.si("body"))
    seen = tasks.seen_by("body")
    assert "store-b" in seen.stores
    assert "store-a" in seen.stores or not seen.is_complete()


@pytest.mark.parametrize("tasks", ["redis"], indirect=True)
def test_a_part_that_joins_a_running_chord_leaves_the_body_incomplete(tasks: Tasks) -> None:
    with antipode.scope():
        chord([tasks.grows.si(), tasks.step.si("b")])(tasks.note.si("body"))
    assert not tasks.seen_by("body").is_complete()
