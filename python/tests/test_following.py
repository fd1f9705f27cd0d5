"""What dry-run follows in the background never invents, raises, keeps or loses anything (spec REC)."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._base.settings import Mode, mode_of
from antipode._diagnostics.dryrun import counts, following, records, repeats
from antipode._diagnostics.dryrun.followed_reads import followed_read
from antipode._diagnostics.dryrun.following import FollowedWrite
from antipode._diagnostics.dryrun.record_writer import RecordWriter
from antipode._model.verdict import NOT_YET, VISIBLE, Verdict, not_yet, unproven
from antipode._store.store import Store
from antipode.shim import Server, Visibility
from antipode.testing import isolated
from fakes import Answer, PushShim, Target, always, down, fake_store
from inner import poller
from opentelemetry.sdk.trace import TracerProvider

HERE = "tests/test_following.py:"
ONE = WriteId.position("posts", "e", 1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with isolated():
        records.forget()
        antipode.configure(mode="dry-run", records=tmp_path / "records", region="b", sample=1.0)
        yield tmp_path / "records"


def read_lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def lines_of(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    assert records.flush()
    return [line for line in read_lines(folder) if not kinds or line["kind"] in kinds]


def wait_for(holds: Callable[[], Any], seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def read(store: Store, *ids: WriteId, repeat: Callable[[], Any] | None = None) -> None:
    """A read that is sent with this lineage, and has come."""
    with antipode.scope(Lineage(ids)):
        followed = followed_read(store)
        assert followed is not None
        followed.over(store.servers()[0], lambda: b"old", repeat=repeat)


def in_turn(*answers: Visibility) -> Answer:
    """A server whose first answers are these; from then on it gives the last one."""
    left = list(answers)

    def answer(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        return [left.pop(0) if len(left) > 1 else left[0]] * len(ids)

    return answer


def test_where_nobody_waits_a_server_is_asked_at_leisure() -> None:
    """REC-21: it moves with every question, and could push."""
    PushShim.channels.clear()
    asked_at: list[float] = []

    def moving(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        asked_at.append(time.monotonic())
        server.applied("i", "f", {"f": len(asked_at)})
        return [VISIBLE if len(asked_at) > 13 else NOT_YET] * len(ids)

    store = fake_store("posts", Target("p", moving), shim=PushShim)
    seen: list[FollowedWrite] = []
    assert following.follow([(poller(store.servers()[0]), ONE)], seen.extend) is not None
    wait_for(lambda: seen)
    assert seen[0].visible_after is not None
    assert asked_at[12] - asked_at[2] > 0.15, "from 5 ms on, a quarter more each time"
    assert not PushShim.channels, "no push of every change, for a record"


def test_a_barrier_beside_what_is_followed_waits_as_ever() -> None:
    """REC-21, BAR-38: by the store's push, whoever was there before."""
    PushShim.channels.clear()
    antipode.configure(mode="enforce")
    there = threading.Event()
    target = Target("p", lambda ids, server: [VISIBLE if there.is_set() else NOT_YET] * len(ids))
    store = fake_store("posts", target, shim=PushShim)
    seen: list[FollowedWrite] = []
    assert following.follow([(poller(store.servers()[0]), ONE)], seen.extend) is not None
    wait_for(lambda: target.asked > 2)
    passed: list[bool] = []
    later = WriteId.position("posts", "e", 2)
    waiting = threading.Thread(
        target=lambda: passed.append(antipode.barrier(Lineage([later]), timeout=20).satisfied), daemon=True
    )
    waiting.start()
    wait_for(lambda: PushShim.channels and PushShim.channels[-1].pushed > 20)
    asked = target.asked
    wait_for(lambda: target.asked > asked)
    there.set()
    waiting.join(20)
    assert passed == [True]
    wait_for(lambda: seen)
    for channel in PushShim.channels:
        channel.close()


class Kept:
    def over(self, writes: Any) -> None:
        """As what is called at the end."""


def test_what_has_ended_is_not_kept() -> None:
    """REC-15: a thousand at once, and not as many as half a minute brings."""
    store = fake_store("posts", Target("p", always(VISIBLE)))
    kept = [Kept() for _ in range(50)]
    for each in kept:
        assert following.follow([(poller(store.servers()[0]), ONE)], each.over) is not None
    wait_for(lambda: not following._followed)
    left = [weakref.ref(each) for each in kept]
    kept.clear()
    del each

    def are_gone() -> bool:
        gc.collect()
        return all(ref() is None for ref in left)

    wait_for(are_gone, 5)


def test_what_is_given_up_before_every_server_has_answered_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-13: who did not answer is not behind, also where another answers while it is given up."""
    ends, answers = threading.Event(), threading.Event()

    def silent(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        ends.wait(10)
        return [VISIBLE] * len(ids)

    def slow(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        answers.wait(10)
        return [VISIBLE] * len(ids)

    store = fake_store("posts", Target("silent", silent), Target("slow", slow))
    first, second = store.servers()
    found: list[Any] = []
    followed = following.follow([(poller(first), ONE), (poller(second), ONE)], found.append)
    assert followed is not None
    give_up, release, released = poller(first).give_up, followed._look._release, threading.Event()

    def note() -> None:
        release()
        released.set()

    def then_the_other_answers(need: Any) -> None:
        give_up(need)
        answers.set()
        assert released.wait(10)

    followed._look._release = note
    monkeypatch.setattr(first, "give_up", then_the_other_answers)
    try:
        following._give_up(followed)
        [writes] = found
        assert [write.late for write in writes] == [False, False]
    finally:
        ends.set()


def test_waits_that_timed_out_refuse_no_look(folder: Path) -> None:
    """REC-13: where barriers are refused because others timed out, the server has not been asked."""
    never = [WriteId("posts", b"never%d" % number, Ordered("", 1)) for number in range(6)]
    there = WriteId("posts", b"there", Ordered("", 1))
    store = fake_store("posts", Target("p", lambda ids, _: [VISIBLE if each == there else NOT_YET for each in ids]))
    read(store, never[0])  # so that there is a crowd
    server = store.servers()[0]
    for write_id in never[1:]:
        assert server.wait_for(Lineage([write_id]), 0.01).verdict is not Verdict.VISIBLE
    read(store, there)
    wait_for(lambda: len(following._followed) == 1)
    assert lines_of(folder, "behind") == []


def test_what_is_followed_in_vain_refuses_no_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dry-run changes nothing: what it gives up is nobody's wait that timed out (BAR-40)."""
    monkeypatch.setattr(following, "FOLLOW_S", 0.05)
    came = threading.Event()
    there = WriteId("posts", b"there", Ordered("", 1))

    def answer(ids: Sequence[WriteId], _: Server) -> Sequence[Visibility]:
        return [VISIBLE if each == there and came.is_set() else NOT_YET for each in ids]

    store = fake_store("posts", Target("p", answer))
    for number in range(6):
        read(store, WriteId("posts", b"never%d" % number, Ordered("", 1)))
    wait_for(lambda: not following._followed)
    monkeypatch.setattr(following, "FOLLOW_S", 30.0)
    read(store, WriteId("posts", b"crowd", Ordered("", 1)))
    threading.Timer(0.05, came.set).start()
    assert store.servers()[0].wait_for(Lineage([there]), 10).verdict is Verdict.VISIBLE


def test_a_question_that_was_put_off_is_no_finding(folder: Path) -> None:
    """REC-13: a server that throttles or recovers did not say that the write is not there."""
    store = fake_store("posts", Target("p", in_turn(not_yet("throttled", unanswered=True), VISIBLE)))
    read(store, ONE, repeat=lambda: b"new")
    wait_for(lambda: not following._followed)
    assert lines_of(folder, "behind", "stale") == []
    with antipode.scope(Lineage([ONE])):
        antipode.barrier()
    wait_for(lambda: lines_of(folder, "barrier"))


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (always(VISIBLE), "visible"),
        (always(unproven("the epoch has ended")), "unproven"),
        (always(not_yet("?", unknown_epoch=True)), "unproven"),
        (always(not_yet("throttled", unanswered=True)), "unproven"),
        (down, "unproven"),
        (in_turn(NOT_YET, VISIBLE), "not_yet"),
    ],
    ids=["visible", "unproven", "unknown epoch", "throttled", "down", "not yet"],
)
def test_a_barrier_says_not_yet_only_of_what_a_server_said(
    folder: Path, answer: Answer, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-5, CHECK-3: `not_yet` at a server that was looked at is a confirmed violation."""
    monkeypatch.setattr(following, "FOLLOW_S", 0.2)
    antipode.configure(replica_out_after=0.1)
    fake_store("posts", Target("p", answer))
    with antipode.scope(Lineage([ONE])):
        antipode.barrier()
    [record] = wait_for(lambda: lines_of(folder, "barrier"))
    assert record["stores"][0]["verdict"] == verdict
    assert record["satisfied"] is (verdict == "visible")


def test_a_barrier_leaves_out_a_server_that_does_not_answer(folder: Path) -> None:
    """REC-5, BAR-26: what an enforced one would have found."""
    antipode.configure(replica_out_after=0.1)
    fake_store("posts", Target("p", always(VISIBLE)), Target("gone", down))
    with antipode.scope(Lineage([ONE])):
        antipode.barrier()
    [record] = wait_for(lambda: lines_of(folder, "barrier"))
    assert record["satisfied"] is True


def test_of_a_barrier_that_is_not_followed_nobody_looked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-15, CHECK-4."""
    monkeypatch.setattr(following, "MOST_FOLLOWED", 0)
    fake_store("posts", Target("p", always(NOT_YET)))
    with antipode.scope(Lineage([ONE])):
        antipode.barrier()
    [record] = lines_of(folder, "barrier")
    assert (record["stores"][0]["verdict"], record["stores"][0]["servers"]) == ("unproven", [])


def test_without_a_thread_nothing_is_raised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-2, REC-13: too many threads, or an interpreter that ends; what can be, is recorded later."""
    monkeypatch.setattr(records, "_writer", RecordWriter(records._due))
    monkeypatch.setattr(following, "_thread", None)
    monkeypatch.setattr(repeats, "_thread", None)
    store = fake_store("posts", Target("p", in_turn(NOT_YET, VISIBLE)))

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        with antipode.scope(Lineage([ONE])):
            antipode.barrier()
        read(store, ONE)
        with store.writing("k") as write:  # an orphan
            write.record(Ordered("", 1))
    assert not following._followed
    assert poller(store.servers()[0]).waiters.live == 0
    read(store, ONE)
    wait_for(lambda: lines_of(folder, "behind"))
    assert len(lines_of(folder, "orphan")) == 1
    assert store.servers()[0].wait_for(Lineage([ONE]), 10).verdict is Verdict.VISIBLE


def test_what_waits_to_be_read_again_is_not_lost_at_the_end(folder: Path) -> None:
    """REC-6, REC-16: each has its record, and none is confirmed."""
    asked, ends = threading.Event(), threading.Event()

    def hangs() -> bytes:
        asked.set()
        ends.wait(10)
        return b"new"

    store = fake_store("posts", Target("p", later(0.05)))
    for counter in range(1, 4):
        read(store, WriteId.position("posts", "e", counter), repeat=hangs)
    assert asked.wait(10)
    wait_for(lambda: not following._followed)
    try:
        records.end()
        assert [line["kind"] for line in lines_of(folder, "behind", "stale")] == ["behind"] * 3
    finally:
        ends.set()
    wait_for(lambda: repeats._running is None)
    assert len(lines_of(folder, "behind", "stale")) == 3


def later(seconds: float) -> Answer:
    """A server that has everything so long after the first question."""
    asked: list[float] = []

    def answer(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        asked.append(time.monotonic())
        return [VISIBLE if asked[-1] - asked[0] > seconds else NOT_YET for _ in ids]

    return answer


ENDS_AT_ONCE = """
import time, antipode
from antipode._diagnostics.dryrun.followed_reads import followed_read
from inner import poller
from fakes import Target, fake_store
from antipode._model.verdict import NOT_YET

def answer(ids, server):
    time.sleep(0.03)  # as a server far away
    return [NOT_YET] * len(ids)

store = fake_store("posts", Target("p", answer))
with antipode.scope(antipode.Lineage([antipode.WriteId.position("posts", "e", 1)])):
    followed = followed_read(store)
    followed.over(store.servers()[0])
"""


def test_a_record_that_is_being_made_is_not_lost_at_the_end() -> None:
    """REC-15: the end of the process waits a moment for the engine's thread."""
    began, goes_on = threading.Event(), threading.Event()
    told: list[Sequence[FollowedWrite]] = []

    def over(writes: Sequence[FollowedWrite]) -> None:
        began.set()
        assert goes_on.wait(10)
        told.append(writes)

    store = fake_store("posts", Target("p", always(VISIBLE)))
    engine = threading.Thread(target=lambda: following.follow([(poller(store.servers()[0]), ONE)], over), daemon=True)
    engine.start()
    assert began.wait(10)
    threading.Timer(0.05, goes_on.set).start()
    following.give_up_all()
    assert len(told) == 1


def test_a_job_that_ends_at_once_hears_the_first_answer(tmp_path: Path) -> None:
    """REC-6: what was read there was behind."""
    environment = os.environ | {
        "ANTIPODE_MODE": "dry-run",
        "ANTIPODE_RECORDS": str(tmp_path),
        "ANTIPODE_SAMPLE": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    subprocess.run([sys.executable, "-c", ENDS_AT_ONCE], env=environment, check=True, timeout=60)
    assert [line["kind"] for line in read_lines(tmp_path)] == ["behind", "summary"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_ends_at_once(folder: Path) -> None:
    """REC-2: its exit hooks wait for no thread of its parent's."""
    program = """
import os, time, antipode
with antipode.scope() as scope:
    pass
scope.append(antipode.WriteId("posts", "k", antipode.Ordered("", 1)))
if os.fork():
    _, status = os.wait()
    raise SystemExit(os.waitstatus_to_exitcode(status))
began = time.monotonic()
import atexit
atexit.register(lambda: None)
atexit._run_exitfuncs()
os._exit(time.monotonic() - began > 0.5)
"""
    environment = os.environ | {"ANTIPODE_MODE": "dry-run", "ANTIPODE_RECORDS": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


def write_late(folder: Path) -> None:  # pragma: no cover: in a child
    antipode.configure(mode="dry-run", records=folder)
    with antipode.scope() as scope:
        pass
    for _ in range(3):
        scope.append(WriteId("posts", "k", Ordered("", 1)))
    counts.add(counts.CounterKey("reads", "", "posts"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_multiprocessing_leaves_its_records(folder: Path) -> None:
    """REC-2, REC-16: it ends without exit hooks."""
    child = multiprocessing.get_context("fork").Process(target=write_late, args=(folder,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    found = [(line["kind"], line.get("count")) for line in read_lines(folder)]
    assert found == [("late_write", None), ("late_write", 2), ("summary", None)]


def test_no_count_is_lost_among_threads() -> None:
    """REC-16: nor does one go back, which would be less than nothing in a summary."""
    counted, ready = counts.CounterKey("reads", "", "posts"), threading.Barrier(4)
    before = sys.getswitchinterval()

    def many() -> None:
        ready.wait()
        for _ in range(50_000):
            counts.add(counted)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert counts.snapshot()[counted] == 200_000


def test_so_many_sites_are_counted_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-16: the others stand together."""
    monkeypatch.setattr(counts, "_MOST", 3)
    counts.reset()
    for number in range(5):
        counts.add(counts.CounterKey("behind", f"a.py:{number + 1}", "posts"))
    assert counts.snapshot() == {
        **{counts.CounterKey("behind", f"a.py:{number + 1}", "posts"): 1 for number in range(3)},
        counts.CounterKey("behind", "", "posts"): 2,
    }


def test_a_mode_that_changes_while_it_is_looked_at_is_seen_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CONF-2."""
    store = fake_store("posts", Target("p", always(VISIBLE)))
    assert store.dry_run
    antipode.configure(mode="enforce")

    def meanwhile(*args: Any) -> Mode:
        found = mode_of(*args)
        if found is Mode.ENFORCE:
            antipode.configure(mode="dry-run")
        return found

    monkeypatch.setattr("antipode._store.contract.mode_of", meanwhile)
    assert [store.dry_run, store.dry_run] == [False, True]


def test_a_framework_that_cannot_say_its_route_raises_nothing(folder: Path) -> None:
    """REC-7."""
    fake_store("posts", Target("p", always(VISIBLE)))

    def route() -> str:
        raise KeyError("route")

    with antipode.scope(Lineage([ONE])) as scope:
        scope.endpoint = route
        antipode.barrier()
    [record] = wait_for(lambda: lines_of(folder, "barrier"))
    assert record["origin"]["opened_by"].startswith(HERE)


def test_a_barrier_that_judged_nothing_is_an_event_of_its_own(folder: Path) -> None:
    """REC-9, OBS-11: with what the lineage has and what is registered."""
    fake_store("others", Target("p", always(VISIBLE)))
    tracers = TracerProvider(shutdown_on_exit=False)
    with tracers.get_tracer("app").start_as_current_span("request") as span, antipode.scope(Lineage([ONE])):
        antipode.barrier()
        events = [dict(event.attributes or {}) for event in span.events]  # type: ignore[attr-defined]
    assert [told["antipode.kind"] for told in events] == ["barrier", "vacuous"]
    assert events[1]["antipode.lineage_stores"] == ("posts",)
    assert events[1]["antipode.registered"] == ("others",)
