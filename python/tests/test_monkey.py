"""`antipode.memory` in monkey mode: any version that a replica may show, and none that it may not (spec MONKEY)."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import Verdict
from antipode.memory import Client, StaleRead, Store
from antipode.testing import drawn, isolated
from branching import eventually, look
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
KINDS = ["position", "object", "opaque"]


def newest(read: StaleRead) -> int:
    return 0


def stalest(read: StaleRead) -> int:
    return read.most


def refused(read: StaleRead) -> int:
    raise AssertionError(f"there is nothing to choose: {read}")


# Vectors


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text())
    assert found["kind"] == kind
    assert found["cases"]
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


@pytest.mark.parametrize("case", cases("monkey-store"))
def test_what_is_read(case: dict[str, Any]) -> None:
    store = Store("s", regions=case["regions"], versions=case["versions"], monkey=True, seed=int(case["seed"]))
    clients = {region: store.client(region) for region in case["regions"]}
    primary = clients[case["regions"][0]]
    with antipode.scope() as scope:
        for number, step in enumerate(case["steps"]):
            if "set" in step:
                primary.set(step["set"], step["value"])
            elif "delete" in step:
                primary.delete(step["delete"])
            elif "barrier" in step:
                assert antipode.barrier(timeout=10).satisfied
            elif step.get("waits"):
                with antipode.reading(after=scope.lineage):
                    assert clients[step["at"]].get(step["get"]) == octets(step["value"]), number
            else:
                assert clients[step["at"]].get(step["get"]) == octets(step["value"]), number


def octets(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


# What is legal


@pytest.mark.parametrize("versions", KINDS)
def test_every_version_can_be_read(versions: Any) -> None:
    """From what the replica shows to the newest, what was there before and deletions too (MONKEY-3)."""
    seen = set()
    for behind in range(5):
        store = Store("s", versions=versions, monkey=lambda read, b=behind: min(b, read.most))  # type: ignore[misc]
        a, b = store.client("a"), store.client("b")
        for value in ("1", "2", None, "3"):
            a.delete("k") if value is None else a.set("k", value)
            a.set("other", "x")
        seen.add((behind, b.get("k")))
    assert seen == {(0, b"3"), (1, None), (2, b"2"), (3, b"1"), (4, None)}


@pytest.mark.parametrize("versions", KINDS)
def test_what_was_read_is_no_choice_again(versions: Any) -> None:
    """Reads at one replica never go back, whichever keys they are of (MONKEY-2)."""
    choices: list[int] = []

    def choose(read: StaleRead) -> int:
        choices.append(read.most)
        return 0 if read.key == b"second" else read.most

    store = Store("s", versions=versions, monkey=choose)
    a, b = store.client("a"), store.client("b")
    a.set("first", "1")
    a.set("second", "1")
    a.set("first", "2")
    assert b.get("first") is None
    assert b.get("second") == b"1"  # and so the write of the first before it
    assert b.get("first") == b"1"
    assert b.get("second") == b"1"
    assert choices == [2, 1, 1]


@pytest.mark.parametrize("versions", KINDS)
def test_there_is_nothing_to_choose_at_a_primary_or_where_nothing_can_arrive(versions: Any) -> None:
    """MONKEY-4."""
    store = Store("s", versions=versions, monkey=refused)
    a, b = store.client("a"), store.client("b")
    assert b.get("k") is None
    store.freeze("b")
    a.set("k", "1")
    assert a.get("k") == b"1"
    assert b.get("k") is None
    assert store.look("b", "k") is None
    store.heal("b")
    a.set("other", "1")
    with antipode.scope() as scope:
        a.set("k", "2")
    with antipode.reading(after=scope.lineage):
        assert b.get("k") == b"2"
    assert store.look("b", "other") == b"1"


def test_a_replica_of_a_replica_reads_what_can_come_by_that() -> None:
    """MONKEY-3, MONKEY-4."""
    store = Store("s", regions=["a", "b", "c"], monkey=newest)
    a, c = store.client("a"), store.client("c")
    store.client("b")
    store.repoint("c", "b")
    a.set("k", "1")
    assert c.get("k") == b"1"
    assert store.look("b", "k") == b"1"
    store.freeze("b")
    a.set("k", "2")
    assert c.get("k") == b"1"
    store.heal("b")
    with antipode.scope() as scope:
        a.set("k", "3")
        antipode.barrier(timeout=10)
    assert store.look("c", "k") == store.look("b", "k") == b"3"
    assert scope.lineage


class Legal(RuleBasedStateMachine):
    """Random writes, reads, barriers and faults, against the list of every value that each key had."""

    versions: Any = "position"
    data: st.DataObject

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.isolation = isolated()
        self.isolation.__enter__()
        self.store = Store("s", regions=["a", "b", "c"], versions=self.versions, monkey=drawn(data))
        self.clients = {region: self.store.client(region) for region in "abc"}
        self.history: list[dict[str, bytes]] = [{}]
        self.least = {"b": 0, "c": 0}
        self.frozen: set[str] = set()
        self.scope = antipode.scope()
        self.scope.__enter__()

    @rule(key=st.sampled_from(["k", "l"]), deletes=st.booleans())
    def write(self, key: str, deletes: bool) -> None:
        now = dict(self.history[-1])
        value = f"{len(self.history)}".encode()
        if deletes:
            self.clients["a"].delete(key)
            now.pop(key, None)
        else:
            self.clients["a"].set(key, value)
            now[key] = value
        self.history.append(now)

    @rule(key=st.sampled_from(["k", "l"]), region=st.sampled_from(["b", "c"]))
    def read(self, key: str, region: str) -> None:
        value = self.clients[region].get(key)
        fits = [
            place for place in range(self.least[region], len(self.history)) if self.history[place].get(key) == value
        ]
        assert fits, f"{key} in {region}: {value!r} was there before what the replica has shown"
        self.least[region] = fits[0]

    @rule(region=st.sampled_from(["b", "c"]))
    def freeze_or_heal(self, region: str) -> None:
        (self.store.heal if region in self.frozen else self.store.freeze)(region)
        self.frozen ^= {region}

    @rule()
    def wait(self) -> None:
        if not self.frozen and self.versions != "opaque":  # opaque: what was overwritten proves nothing
            assert antipode.barrier(timeout=10).satisfied
            self.least = dict.fromkeys(self.least, len(self.history) - 1)

    def teardown(self) -> None:
        if hasattr(self, "scope"):
            self.scope.__exit__(None, None, None)
            self.isolation.__exit__(None, None, None)


@pytest.mark.parametrize("versions", KINDS)
def test_what_is_read_is_always_legal(versions: str) -> None:
    """MONKEY-2, MONKEY-3, MONKEY-5."""
    machine = type("Machine", (Legal,), {"versions": versions})
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=20, deadline=None))


# Waiting, and only looking


@pytest.mark.parametrize("versions", KINDS)
def test_a_barrier_leaves_nothing_stale_of_what_it_waited_for(versions: Any) -> None:
    """And nothing more is applied than that (MONKEY-5)."""
    store = Store("s", versions=versions, monkey=stalest)
    a, b = store.client("a"), store.client("b")
    store.put("k", "0")
    with antipode.scope():
        a.set("k", "1")
        assert b.get("k") is None
        message = antipode.serialize()
    if versions != "opaque":  # what was overwritten there proves nothing
        store.put("k", "2")
    store.put("later", "x")
    with antipode.message_scope(message):
        assert antipode.barrier(timeout=10).satisfied
    assert b.get("k") == b"1"
    assert store.look("b", "later") is None


def test_looking_applies_nothing() -> None:
    """With timeout=0, in dry-run, and after a barrier has given up (MONKEY-6)."""
    store = Store("s", monkey=stalest)
    a, b = store.client("a"), store.client("b")
    with antipode.scope():
        a.set("k", "1")
        result = antipode.barrier(timeout=0, on_timeout="proceed")
        assert result.stores["s"].verdict is Verdict.NOT_YET
        assert antipode.barrier(dry_run=True).satisfied
        store.freeze("b")
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)
        store.heal("b")
        server = b._server
        asked = threading.Event()
        shim = server.store.shim
        original = shim.wait

        def wait(*arguments: Any) -> Any:
            answers = original(*arguments)
            asked.set()
            return answers

        shim.wait = wait  # type: ignore[method-assign, assignment]
        assert asked.wait(10), "the prober, and what is followed in dry-run, ask on"
        assert b.get("k") is None
        assert antipode.barrier(timeout=10).satisfied
        assert b.get("k") == b"1"


def test_a_read_that_waits_waits() -> None:
    """MONKEY-5."""
    store = Store("s", monkey=stalest)
    a, b = store.client("a"), store.client("b", wait_on_read=True)
    with antipode.scope():
        a.set("k", "1")
        assert b.get("k") == b"1"


def test_the_row_of_a_branch_is_shown_where_a_barrier_waits_for_it() -> None:
    """And nothing behind it is applied (MONKEY-5, MONKEY-6)."""
    store = Store("orders", monkey=stalest)
    a = store.client("a")
    antipode.configure(branches=a)
    store.register("b")
    with antipode.scope():
        with antipode.branch(within=30):
            task = antipode.serialize()
        after = antipode.serialize()
    with antipode.message_scope(task):
        a.set("k", "1")
        antipode.close()
    store.put("later", "x")
    assert not look(after).satisfied
    assert store.look("b", "k") is None
    assert eventually(after).satisfied
    assert store.look("b", "k") == b"1"
    assert store.look("b", "later") is None


@pytest.mark.parametrize("versions", KINDS)
def test_a_lost_write_is_no_pass(versions: Any) -> None:
    """A failover is as in every mode (MONKEY-2)."""
    store = Store("s", versions=versions, monkey=newest)
    a, _ = store.client("a"), store.client("b")
    with antipode.scope():
        a.set("k", "1")
        store.promote("b", lose=1)
        with pytest.raises(antipode.BarrierError):
            antipode.barrier(timeout=0.3)


# A unit test of a service, without a cluster


def publish(posts: Client) -> str:
    with antipode.scope():
        posts.set("acl:42", "friends")
        posts.set("post:42", "draft")
        posts.set("post:42", "hi")
        return antipode.serialize()


def follower(posts: Client, message: str, *, waits: bool) -> bytes | None:
    with antipode.message_scope(message):
        if waits:
            antipode.barrier(timeout=10)
        posts.get("acl:42")
        posts.get("post:41")
        return posts.get("post:42")


def services(choose: Any, *, waits: bool) -> list[bytes | None]:
    with isolated():
        store = Store("blog-posts", monkey=choose)
        return [follower(store.client("b"), publish(store.client("a")), waits=waits) for _ in range(3)]


def test_without_a_barrier_it_fails_and_shrinks_to_one_stale_read() -> None:
    """MONKEY-3, MONKEY-7."""
    chosen: list[tuple[str, int]] = []

    @seed(1)
    @settings(max_examples=200, database=None, deadline=None)
    @given(data=st.data())
    def unprotected(data: st.DataObject) -> None:
        chosen.clear()
        draw = drawn(data)

        def choose(read: StaleRead) -> int:
            chosen.append((str(read), draw(read)))
            return chosen[-1][1]

        assert services(choose, waits=False) == [b"hi"] * 3

    with pytest.raises(AssertionError) as failure:
        unprotected()
    stale = [(read, behind) for read, behind in chosen if behind]
    assert stale == [("blog-posts in b, post:42: versions behind the newest", 1)]
    notes = "\n".join(failure.value.__notes__)
    assert "blog-posts in b, post:42: versions behind the newest): 1" in notes, notes


def test_with_the_barrier_it_never_fails() -> None:
    """MONKEY-5."""

    @settings(max_examples=100, database=None, deadline=None)
    @given(data=st.data())
    def protected(data: st.DataObject) -> None:
        assert services(drawn(data), waits=True) == [b"hi"] * 3

    protected()


def test_a_seed_repeats_itself_and_another_one_differs() -> None:
    """MONKEY-8."""

    def run(number: int) -> list[bytes | None]:
        with isolated():
            store = Store("blog-posts", monkey=True, seed=number)
            a, b = store.client("a"), store.client("b")
            values = []
            for value in range(20):
                a.set("k", str(value))
                values.append(b.get("k"))
            return values

    runs = [run(number) for number in range(8)]
    assert runs == [run(number) for number in range(8)]
    assert len({tuple(values) for values in runs}) == 8


# Threads and tasks


def test_threads_in_other_regions_do_not_disturb_each_other() -> None:
    """MONKEY-8."""
    regions = ["a", "b", "c", "d"]

    def values(client: Client) -> list[bytes | None]:
        return [client.get(f"k{number}") for number in range(50)]

    def run(workers: int) -> list[list[bytes | None]]:
        with isolated(), ThreadPoolExecutor(workers) as pool:
            store = Store("s", regions=regions, monkey=True, seed=7)
            a = store.client("a")
            for number in range(50):
                a.set(f"k{number}", "v")
            return list(pool.map(values, [store.client(region) for region in regions[1:]]))

    assert run(1) == run(3)


def test_threads_at_one_replica_read_what_is_legal() -> None:
    """MONKEY-2."""
    store = Store("s", monkey=True, seed=7)
    a, b = store.client("a"), store.client("b")

    def values() -> list[int]:
        return [int(b.get("k") or -1) for _ in range(300)]

    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(values) for _ in range(4)]
        for value in range(300):
            a.set("k", str(value))
        for read in reads:
            found = read.result(60)
            assert all(before <= after for before, after in itertools.pairwise(found))


def test_tasks_wait_and_read(recwarn: pytest.WarningsRecorder) -> None:
    """MONKEY-5, with asyncio."""
    store = Store("blog-posts", monkey=stalest)
    a, b = store.client("a"), store.client("b")

    async def one(number: int) -> tuple[bytes | None, bytes | None]:
        with antipode.scope():
            a.set(f"k{number}", "v")
            before = b.get(f"k{number}")
            await antipode.barrier_async(timeout=10)
            return before, b.get(f"k{number}")

    async def all_of_them() -> list[tuple[bytes | None, bytes | None]]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    found = asyncio.run(all_of_them())
    assert {after for _, after in found} == {b"v"}
    assert None in {before for before, _ in found}


# Mistakes


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Store("s", monkey=True, lag=0.1), "lag"),
        (lambda: Store("s", monkey=True).set_lag("b", 0.1), "no clock"),
        (lambda: Store("s", seed=7), "monkey=True"),
        (lambda: Store("s", monkey=newest, seed=7), "monkey=True"),
        (lambda: Store("s", monkey=True, seed=-1), "2\\^64-1"),
        (lambda: Store("s", monkey=True, seed=2**64), "2\\^64-1"),
    ],
)
def test_what_does_not_go_together_is_refused(make: Callable[[], Any], words: str) -> None:
    """MONKEY-1, MONKEY-8."""
    with pytest.raises(antipode.ConfigurationError, match=words):
        make()


@pytest.mark.parametrize("answer", [-1, 2, None, "1", 0.5])
def test_an_answer_out_of_range_is_refused(answer: Any) -> None:
    """MONKEY-7."""
    store = Store("s", monkey=lambda read: answer)
    store.put("k", "1")
    with pytest.raises(antipode.ConfigurationError, match=r"want 0 \(the newest\) to 1"):
        store.client("b").get("k")
    assert store.look("b", "k") is None
