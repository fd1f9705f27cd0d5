"""Reads in dry-run: followed in the background, behind or stale, confirmed or not, and counted (spec REC)."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import jsonschema
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._diagnostics.dryrun import counts, following, records, repeats
from antipode._diagnostics.dryrun.followed_reads import followed_read
from antipode._diagnostics.history import digests
from antipode._model.verdict import NOT_YET, VISIBLE, not_yet, unproven
from antipode.shim import Server
from antipode.testing import isolated
from fakes import Answer, Target, always, down, fake_store
from inner import poller
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

SCHEMA = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())
HERE = "tests/test_followed_reads.py:"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with isolated():
        counts.reset()
        antipode.configure(mode="dry-run", records=tmp_path / "records", region="b", sample=1.0)
        yield tmp_path / "records"


def lines_of(folder: Path) -> list[dict[str, Any]]:
    assert records.flush()
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    return found


def wait_for(holds: Callable[[], Any], seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def finding(folder: Path) -> dict[str, Any]:
    [record] = wait_for(lambda: [line for line in lines_of(folder) if line["kind"] in {"behind", "stale"}])
    assert isinstance(record, dict)
    return record


def counted(what: str) -> int:
    return sum(count for key, count in counts.snapshot().items() if key.what == what)


def posts(versions: Any = "position", lag: float = 0.7) -> tuple[Any, antipode.memory.Client, antipode.memory.Client]:
    store = antipode.memory.Store("posts", lag=lag, versions=versions)
    return store, store.client("a"), store.client("b")


@pytest.mark.parametrize("versions", ["position", "object", "opaque"])
def test_a_read_of_what_has_not_come_is_stale(folder: Path, versions: str) -> None:
    """REC-6, REC-12, REC-14: the same read returned something else once the write was there."""
    _, writer, reader = posts(versions)
    with antipode.message_scope("") as scope:
        scope.queue = "notifications"
        writer.set("private-key", "private-value")
        assert reader.get("private-key") is None
        record = finding(folder)
    assert record["kind"] == "stale"
    assert record["confirmed"] == "repeat"
    assert record["site"].startswith(HERE)
    assert record["origin"]["scope"] == "message"
    assert record["origin"]["store"] == "notifications"
    assert (record["store"], record["store_kind"], record["server"]) == ("posts", "memory", "memory://posts/b")
    assert 0.05 < record["visible_after"] < 5
    assert "private" not in json.dumps(record)
    if versions == "position":
        assert record["wanted"]["epoch"] == record["seen"]["epoch"]
        assert int(record["wanted"]["counter"]) == int(record["seen"]["counter"]) + 1
    assert "wanted" in record or versions == "opaque"


def test_an_object_is_stale_by_its_own_version(folder: Path) -> None:
    """REC-14: the value carries its version, exactly; nothing is repeated, and the value may be the same."""
    antipode.configure(repeat_reads=False)
    _, writer, reader = posts("object")
    writer.set("k", "v")
    wait_for(lambda: reader.get("k"))
    with antipode.scope():
        writer.set("k", "v")
        assert reader.get("k") == b"v"
        record = finding(folder)
    assert (record["kind"], record["confirmed"]) == ("stale", "version")
    assert int(record["seen"]["counter"]) < int(record["wanted"]["counter"])
    assert record["visible_after"] > 0.05


def test_what_returns_the_same_later_is_behind_and_not_stale(folder: Path) -> None:
    """REC-6."""
    _, writer, reader = posts()
    with antipode.scope():
        writer.set("k", "v")
        assert reader.get("another") is None
        assert finding(folder)["kind"] == "behind"
    assert counted("behind") == 1
    assert counted("stale") == 0


@pytest.mark.parametrize("way", ["switched off", "cannot be compared", "the repeat fails", "too many wait"])
def test_without_a_repeat_nothing_is_confirmed(folder: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-14."""
    antipode.configure(repeat_reads=way != "switched off")
    if way == "too many wait":
        monkeypatch.setattr(repeats, "later", lambda differs, over: False)
    store = fake_store("posts", Target("p", later(0.05)))
    repeated = threading.Event()

    def repeat() -> bytes:
        repeated.set()
        raise OSError("gone")

    with antipode.scope(ONE):
        followed = followed_read(store)
        assert followed is not None
        value = object() if way == "cannot be compared" else b"old"
        followed.over(store.servers()[0], lambda: value, repeat=repeat)
        assert finding(folder)["kind"] == "behind"
    assert repeated.is_set() is (way == "the repeat fails")


ONE = Lineage([WriteId.position("posts", "e", 1)])


def later(seconds: float) -> Answer:
    """A server that has the write so long after the first question."""
    asked: list[float] = []

    def answer(ids: Any, server: Server) -> Any:
        asked.append(time.monotonic())
        return [VISIBLE if asked[-1] - asked[0] > seconds else NOT_YET for _ in ids]

    return answer


def test_no_repeat_before_all_is_there(folder: Path) -> None:
    """REC-14: one that is still missing would make the comparison say nothing."""
    target = Target(
        "p",
        lambda ids, server: [VISIBLE if write_id.version == antipode.Ordered("e", 1) else NOT_YET for write_id in ids],
    )
    store = fake_store("posts", target)
    repeats: list[int] = []
    with antipode.scope(Lineage([WriteId.position("posts", "e", 1), WriteId.position("posts", "f", 2)])):
        followed = followed_read(store)
        assert followed is not None
        followed.over(store.servers()[0], lambda: b"old", repeat=lambda: repeats.append(1))
        wait_for(lambda: following._followed and all(w.first for f in following._followed for w in f.writes))
        following.give_up_all()
        record = finding(folder)
    assert (record["kind"], record["visible_after"]) == ("behind", None)
    assert record["wanted"] == {"epoch": "f", "counter": "2"}
    assert not repeats


@pytest.mark.parametrize(
    "answer",
    [always(VISIBLE), always(unproven("ended")), always(not_yet("?", unknown_epoch=True)), down],
    ids=["visible", "unproven", "unknown epoch", "down"],
)
def test_only_not_yet_is_a_finding(
    folder: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """REC-13, REC-20: what cannot be proved, and a server that does not answer, are none; they are counted."""
    monkeypatch.setattr(following, "FOLLOW_S", 0.2)
    store = fake_store("posts", Target("p", answer))
    with antipode.scope(ONE):
        followed = followed_read(store)
        assert followed is not None
        followed.over(store.servers()[0], lambda: b"", repeat=lambda: b"other")
        wait_for(lambda: not following._followed)
    assert counted("followed_reads") == 1
    assert counted("unjudged_reads") == ("visible" not in request.node.callspec.id)
    assert [line["kind"] for line in lines_of(folder)] == []


def test_a_position_behind_another_that_is_there_is_asked_for_by_itself(folder: Path) -> None:
    """REC-13: never invented. This shim proves no more than what it is asked, so that one answer says nothing of it."""

    def answer(ids: Any, server: Server) -> Any:
        time.sleep(0.02)  # so that the reads come together
        return [VISIBLE] * len(ids)

    store = fake_store("posts", Target("p", answer))
    for counter in range(1, 30):
        with antipode.scope(Lineage([WriteId.position("posts", "e", counter)])):
            followed = followed_read(store)
            assert followed is not None
            followed.over(store.servers()[0])
    wait_for(lambda: not following._followed)
    assert counted("behind") == 0
    assert counted("followed_reads") == 29


def test_waits_that_timed_out_before_are_no_finding_of_a_later_read(folder: Path) -> None:
    """REC-13: the overload rule speaks of barriers that wait. What is recorded is what the server said."""
    antipode.configure(mode="enforce")
    target = Target("p", always(NOT_YET))
    store = fake_store("posts", target)

    def one(key: str) -> Lineage:
        return Lineage([store.write_id(key.encode(), Ordered("", 1))])

    for _ in range(6):
        antipode.barrier(one("k"), timeout=0.02, on_timeout="proceed")
    crowd = threading.Thread(target=lambda: antipode.barrier(one("another"), timeout=20, on_timeout="proceed"))
    crowd.start()
    wait_for(lambda: poller(store.servers()[0]).waiters.live)
    read = store.write_id(b"read", Ordered("", 1))
    target.answer = lambda ids, server: [VISIBLE if write_id == read else NOT_YET for write_id in ids]
    antipode.configure(mode="dry-run", sample=1.0)
    with antipode.scope(Lineage([read])):
        followed = followed_read(store)
        assert followed is not None
        followed.over(store.servers()[0])
        wait_for(lambda: not following._followed)
    assert counted("behind") == 0
    target.answer = always(VISIBLE)
    crowd.join()


def test_what_is_given_up_in_the_background_is_no_timeout_of_a_barrier(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-48: what is only recorded makes no barrier fail early."""
    monkeypatch.setattr(following, "FOLLOW_S", 0.02)
    store = fake_store("posts", Target("p", always(NOT_YET)))
    for _ in range(8):
        with antipode.scope(Lineage([store.write_id(b"k", Ordered("", 1))])):
            followed = followed_read(store)
            assert followed is not None
            followed.over(store.servers()[0])
            wait_for(lambda: not following._followed)
    assert poller(store.servers()[0]).waiters._stuck == {}


def test_in_monkey_mode_a_repeated_read_makes_nothing_visible(folder: Path) -> None:
    """MONKEY-6."""
    chosen: list[int] = []

    def choose(read: Any) -> int:
        chosen.append(read.most)
        return int(read.most)

    store = antipode.memory.Store("posts", monkey=choose)
    writer, reader = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        assert reader.get("k") is None
        assert reader._read_again(b"k") is None
    assert chosen == [1]
    assert store.look("b", "k") is None


def test_what_the_scope_wrote_after_the_read_was_sent_is_none_of_its_lineage(folder: Path) -> None:
    """REC-12."""
    antipode_store, writer, reader = posts()
    store = reader._joined
    with antipode.scope():
        followed = followed_read(store)  # sent
        writer.set("k", "v")  # another task of the scope
        assert followed is None
    with antipode.scope():
        writer.set("k", "v")
        wait_for(lambda: antipode_store.look("b", "k"))
        followed = followed_read(store)
        writer.set("k", "w")
        assert followed is not None
        followed.over(reader._server, lambda: b"v", repeat=lambda: b"w")
        wait_for(lambda: not following._followed)
    assert counted("behind") == counted("stale") == 0


def test_in_a_store_of_objects_only_those_that_are_read_are_looked_at(folder: Path) -> None:
    """REC-13."""
    _, writer, reader = posts("object", lag=30)
    with antipode.scope():
        writer.set("k", "v")
        assert reader.get("another") is None
    assert counted("followed_reads") == 0


def test_reads_that_would_wait_do_not_in_dry_run(folder: Path) -> None:
    """REC-12, BAR-48: neither `wait_on_read` nor `reading(after=…)`."""
    store = antipode.memory.Store("posts", lag=30)
    writer, reader = store.client("a"), store.client("b", wait_on_read=True)
    with antipode.scope():
        writer.set("k", "v")
        lineage = antipode.current_scope().lineage  # type: ignore[union-attr]
        began = time.monotonic()
        assert reader.get("k") is None
    with antipode.reading(after=lineage):
        assert store.client("b").get("k") is None
    assert time.monotonic() - began < 0.1, "each would have looked for so long"
    wait_for(lambda: counted("followed_reads") == 2)


class Fixed(RandomIdGenerator):
    def __init__(self, trace: int) -> None:
        self.trace = trace

    def generate_trace_id(self) -> int:
        return self.trace


def test_the_trace_decides_for_every_process_alike(folder: Path) -> None:
    """REC-12: the last 7 octets of its id, as a share of 2^56."""
    antipode.configure(sample=0.25)
    store = fake_store("posts", Target("p", always(VISIBLE)))
    for trace, sampled in [
        ((0xABC << 56) | (2**54 - 1), True),
        ((0xABC << 56) | 2**54, False),
        ((0xABC << 56) | (2**56 - 1), False),
        (0xABC << 56, True),
    ]:
        tracers = TracerProvider(id_generator=Fixed(trace), shutdown_on_exit=False)
        with tracers.get_tracer("app").start_as_current_span("request"), antipode.scope(ONE):
            assert (followed_read(store) is not None) is sampled


def test_without_a_trace_chance_decides(folder: Path) -> None:
    """REC-10, REC-12."""
    antipode.configure(sample=0.25)
    store = fake_store("posts", Target("p", always(VISIBLE)))
    with antipode.scope(ONE):
        followed = sum(followed_read(store) is not None for _ in range(4000))
    assert 800 < followed < 1200
    assert counted("reads") == 4000
    antipode.configure(sample=0.0)
    with antipode.scope(ONE):
        assert followed_read(store) is None


def test_so_many_are_followed_and_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-15: what comes beyond is neither followed nor counted as followed."""
    monkeypatch.setattr(following, "MOST_FOLLOWED", 3)
    store = fake_store("posts", Target("p", always(NOT_YET)))
    with antipode.scope(ONE):
        for _ in range(5):
            followed = followed_read(store)
            assert followed is not None
            followed.over(store.servers()[0])
    assert counted("followed_reads") == 3
    wait_for(lambda: all(write.first for each in following._followed for write in each.writes))
    following.give_up_all()
    assert [line["visible_after"] for line in lines_of(folder)] == [None] * 3


def test_the_finding_is_an_event_of_the_span_and_in_its_trace(folder: Path) -> None:
    """REC-9, OBS-11: what `antipode check` reads from exports of traces, and no key."""
    _, writer, reader = posts()
    tracers = TracerProvider(shutdown_on_exit=False)
    with tracers.get_tracer("app").start_as_current_span("request") as span, antipode.scope():
        writer.set("k", "v")
        reader.get("k")
        record = finding(folder)
        events = [(event.name, dict(event.attributes or {})) for event in span.events]  # type: ignore[attr-defined]
    [(name, told)] = events
    assert name == "antipode.finding"
    origin = {f"antipode.origin.{name}": word for name, word in record["origin"].items()}
    fields = ("kind", "site", "region", "process", "store", "server", "confirmed", "visible_after")
    known = {f"antipode.{name}": record[name] for name in fields if record[name] != ""}
    assert told == origin | known | {"antipode.store.kind": record["store_kind"]}
    assert record["trace_id"] == f"{span.get_span_context().trace_id:032x}"


def test_the_reads_of_an_event_loop_are_followed(folder: Path) -> None:
    _, writer, reader = posts()

    async def request() -> None:
        with antipode.scope():
            writer.set("k", "v")
            reader.get("k")
            await asyncio.sleep(0)

    asyncio.run(request())
    assert finding(folder)["kind"] == "stale"


def test_a_summary_counts_what_was_since_the_last(folder: Path) -> None:
    """REC-16, REC-19."""
    _, writer, reader = posts()
    began = time.time()
    for _ in range(3):
        with antipode.message_scope(""):
            writer.set("k", "v")
            reader.get("k")
            antipode.barrier()
    wait_for(lambda: not following._followed and counted("behind") + counted("stale") == 3)
    records.end()
    antipode.configure(sample=0.25)
    reader.get("k")
    records.end()
    records.end()  # nothing since
    first, second = [line for line in lines_of(folder) if line["kind"] == "summary"]
    totals: dict[str, int] = {}
    for count in first["counts"]:
        totals[count["what"]] = totals.get(count["what"], 0) + count["count"]
        assert count["what"] not in {"barriers", "followed_reads", "behind"} or count["site"].startswith(HERE)
        assert count["what"] in {"barriers", "messages"} or count["store"] == "posts"
    found = totals.pop("behind", 0) + totals.pop("stale", 0)
    assert found == 3
    assert totals == {"messages": 3, "reads": 3, "followed_reads": 3, "barriers": 3, "writes": 3}
    assert first["since"] <= began <= first["time"]
    assert second["since"] == first["time"]
    assert (first["sample"], second["sample"]) == (1.0, 0.25)
    assert second["counts"] == [{"what": "reads", "store": "posts", "count": 1}]


def test_a_summary_comes_every_minute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-16: also of a process that finds nothing."""
    from antipode._diagnostics.dryrun import record_writer

    monkeypatch.setattr(record_writer, "DUE_S", 0.05)
    monkeypatch.setattr(records, "_writer", record_writer.RecordWriter(records._due))
    _, _, reader = posts()
    reader.get("k")
    wait_for(lambda: [line for line in lines_of(folder) if line["kind"] == "summary"])


def test_digests_are_of_plain_data_alone() -> None:
    """REC-14."""
    different = [
        (1, True),
        ("a", b"a"),
        ("1", 1),
        (None, b""),
        ([], {}),
        ([1, 2], [2, 1]),
        ({1: 2}, {2: 1}),
        ([[1], 2], [1, [2]]),
    ]
    for one, other in different:
        assert digests.digest(one) != digests.digest(other)
    assert digests.digest({"a": 1, "b": {2, 3}}) == digests.digest({"b": {3, 2}, "a": 1})
    assert digests.digest(object()) is None
    assert digests.digest([object()]) is None
    assert digests.digest(b"x" * (digests.MOST_OCTETS + 1)) is None
    parts: list[Any] = []

    class Noted(bytes):
        def __bytes__(self) -> bytes:
            parts.append(self)
            return self

    assert digests.digest([Noted(b"x")] * 100_000) is None
    assert digests.digest({number: [Noted(b"x")] * 100 for number in range(4_000)}) is None
    assert len(parts) < 10_000, "the parts of a long one take their time, too"
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    assert digests.digest(deep) is None


def test_reads_behind_a_barrier_are_no_finding_over_many_requests(folder: Path) -> None:
    """REC-6: a correct run of ten thousand messages, each of which waits for what it reads, has none."""
    store = antipode.memory.Store("posts", regions=("a", "b", "c"), lag=0.0005)
    writer, readers = store.client("a"), [store.client("b"), store.client("c")]
    for number in range(10_000):
        with antipode.scope():
            writer.set("post", str(number))
            message = antipode.serialize()
        reader = readers[number % 2]
        with antipode.message_scope(message) as scope:
            # What a barrier does where this one site is not in dry-run.
            assert reader._server.wait_for(scope.lineage, 10.0).verdict is antipode.Verdict.VISIBLE
            assert reader.get("post") == str(number).encode()
    wait_for(lambda: not following._followed)
    assert counted("followed_reads") == 10_000
    assert [line for line in lines_of(folder) if line["kind"] != "summary"] == []
