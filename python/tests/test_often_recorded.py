"""What could be a record a request: one at once, then one a minute with how many there were (REC-17, REC-18)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antipode
import jsonschema
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.dryrun.held_records import HeldRecords
from antipode._model.verdict import VISIBLE
from antipode._scope.context import activate
from antipode.propagation import Inbound, extract_request, inject_request
from antipode.testing import isolated
from fakes import Target, always, fake_store
from opentelemetry.sdk.trace import TracerProvider
from scopes import Counts

SCHEMA = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())
HERE = "tests/test_often_recorded.py:"
LINEAGE = Lineage([WriteId.position("posts", "e", 1)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with isolated():
        records.forget()
        antipode.configure(mode="dry-run", records=tmp_path / "records", region="b", sample=1.0)
        yield tmp_path / "records"


def records_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    assert records.flush()
    found = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    return [line for line in found if line["kind"] == kind]


def write(scope: antipode.Scope) -> None:
    store = fake_store("posts", Target("p", always(VISIBLE)))
    with activate(scope), store.writing("k") as one:
        one.record(Ordered("", 1))


def test_a_write_of_a_scope_that_has_ended(folder: Path) -> None:
    """REC-17: at the end of the process what was held back is written, too."""
    with antipode.scope() as scope:
        pass
    for _ in range(5):
        write(scope)
    [first] = records_of(folder, "late_write")
    assert (first["store"], first["reason"], first.get("count")) == ("posts", "closed", None)
    assert first["site"].startswith(HERE)
    records.end()
    assert [line.get("count") for line in records_of(folder, "late_write")] == [None, 4]


def test_a_write_after_the_header_has_left(folder: Path) -> None:
    """REC-17, PROP-16."""
    inbound = Inbound()
    inbound.response_text()
    write(inbound.scope)
    [record] = records_of(folder, "late_write")
    assert record["reason"] == "sent"


def test_a_write_in_flight_of_another_task_is_no_violation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-9, REC-17, SCOPE-18."""
    counted = Counts(monkeypatch)
    store = fake_store("posts", Target("p", always(VISIBLE)))
    with antipode.scope():
        begun = antipode.carry(lambda: store.begin("k"))
        writes: list[Any] = []
        other = threading.Thread(target=lambda: writes.append(begun()))
        other.start()
        other.join()
        antipode.serialize()
        writes[0].abandon()
    assert counted.of("antipode.finding.count", kind="concurrent_write") == 1
    [record] = records_of(folder, "concurrent_write")
    assert record["store"] == "posts"
    assert record["site"].startswith(HERE)
    assert record["written_at"].startswith(HERE)
    assert records_of(folder, "published_before_commit") == []


def test_a_lineage_that_becomes_incomplete_here_or_came_in_so(folder: Path) -> None:
    """REC-17."""
    with antipode.scope() as scope:
        scope.mark_incomplete("rights", "posts")
    with antipode.message_scope(LINEAGE.marked_incomplete("posts").serialize()):
        pass
    here, came = records_of(folder, "incomplete")
    assert (here["reason"], here["store"], here["origin"]["scope"]) == ("rights", "posts", "root")
    assert here["site"].startswith(HERE)
    assert (came["reason"], came["store"], came["origin"]["scope"]) == ("received", "posts", "message")


def test_each_key_is_written_once_a_minute_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-17."""
    held = HeldRecords()
    now = [1000.0]
    monkeypatch.setattr("antipode._diagnostics.dryrun.held_records.time.monotonic", lambda: now[0])
    assert held.admit("a", {"n": 0})
    for number in range(1, 4):
        assert not held.admit("a", {"n": number})
    assert held.admit("b", {"n": 0})
    assert held.due() == []
    now[0] += 60
    assert held.due() == [{"n": 3, "count": 3}]
    assert not held.admit("a", {"n": 4})
    now[0] += 60
    assert held.due() == [{"n": 4, "count": 1}]
    now[0] += 60
    assert held.due() == []
    assert held.admit("a", {"n": 5})


def test_what_is_finalized_meanwhile_may_have_a_record_of_its_own() -> None:
    """REC-2: the collector of garbage may end a stream that nobody read, in the middle of anything."""
    held, found = HeldRecords(), []

    class Collecting(dict[str, Any]):
        def __or__(self, other: Any) -> Any:
            found.append(held.admit("a", {"n": 2}))
            return super().__or__(other)

    def admit() -> None:
        assert held.admit("a", {"n": 0})
        found.append(held.admit("a", Collecting(n=1)))

    thread = threading.Thread(target=admit, daemon=True)
    thread.start()
    thread.join(10)
    assert found == [False, False]


def test_so_many_different_ones_stand_together() -> None:
    """REC-17: bounded, and still counted."""
    held = HeldRecords()
    written = sum(held.admit(number, {}) for number in range(1500))
    assert written == 1000
    assert held.due(all_of_them=True) == [{"count": 500}]


def test_a_lineage_that_came_with_a_message_leaves_with_a_call(folder: Path) -> None:
    """REC-18: once a scope and site, where a barrier would have come before what the callee reads."""
    tracers = TracerProvider(shutdown_on_exit=False)

    def call() -> None:
        inject_request({}, "post-storage.local")

    with tracers.get_tracer("app").start_as_current_span("message") as span:
        with antipode.message_scope(LINEAGE.serialize()) as scope:
            scope.queue = "notifications"
            call()
            call()
        [record] = records_of(folder, "passed_on")
        with antipode.scope(LINEAGE):  # it has brought nothing
            call()
        with extract_request({}):
            call()
    with antipode.message_scope(LINEAGE.serialize()):  # in no trace
        call()
    antipode.configure(sample=0.0)
    with tracers.get_tracer("app").start_as_current_span("message"), antipode.message_scope(LINEAGE.serialize()):
        call()
    assert records_of(folder, "passed_on") == [record]
    assert record["site"].startswith(HERE)
    assert record["target"] == "post-storage.local"
    assert record["origin"] == {
        "scope": "message",
        "opened_by": record["origin"]["opened_by"],
        "store": "notifications",
    }
    assert record["trace_id"] == f"{span.get_span_context().trace_id:032x}"
