"""Cases about waiting: deadlines, cancellation, crowds, the free path, own faults (spec BAR-28 to BAR-41)."""

from __future__ import annotations

import asyncio
import errno
import resource
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from antipode._base import observers
from antipode._engine.barrier import barrier, barrier_async
from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult, BarrierTimeout
from antipode._model.verdict import UnprovenKind, Verdict
from antipode._model.write_id import WriteId
from antipode._scope.operations import scope
from antipode.shim import Server, Visibility
from antipode.testing.conformance.cases import Cases, only, parked, registered, unheard_of
from antipode.testing.under_test import StoreUnderTest

_CROWD = 2000
_LINEAGES = 20
_IN_VAIN = 7
_FAULTS = [RuntimeError("no thread"), MemoryError("no memory"), OSError(errno.EMFILE, "no descriptor")]


class _Questions:
    """Counts the questions that the shim asks its servers."""

    def __init__(self, store: StoreUnderTest, patch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        shim = registered(store).shim
        visible, wait = shim.visible, shim.wait

        def counted(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
            self.asked += 1
            return visible(ids, server)

        def counted_wait(ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
            self.asked += 1
            return wait(ids, server, timeout)

        patch.setattr(shim, "visible", counted)
        patch.setattr(shim, "wait", counted_wait)


class WaitingCases(Cases):
    """How barriers wait for this store."""

    def test_deadline(self, store: StoreUnderTest) -> None:
        """A barrier ends at its deadline, with an error that names the store; `timeout=0` looks (BAR-28, BAR-29)."""
        key = store.new_key()
        store.partition(store.near)
        lineage = store.written(key, "v")
        with pytest.raises(BarrierTimeout, match=store.name) as raised:
            barrier(lineage, timeout=store.brief)
        assert raised.value.result.stores[store.name].verdict is Verdict.TIMED_OUT
        assert store.judge(lineage, 0).stores[store.name].verdict is Verdict.NOT_YET
        store.heal(store.near)
        assert store.judge(lineage).satisfied
        assert store.shows(key, "v")

    async def test_cancellation(self, store: StoreUnderTest) -> None:
        """A cancelled barrier gives its place up, and the next one passes (BAR-32)."""
        store.partition(store.near)
        lineage = store.written(store.new_key(), "v")
        task = asyncio.create_task(barrier_async(lineage, timeout=store.patience))
        async with asyncio.timeout(store.patience):
            while not parked(store):
                await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert parked(store) == 0
        store.heal(store.near)
        assert (await barrier_async(lineage, timeout=store.patience)).satisfied

    async def test_thousands_of_waiters(self, store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
        """A crowd waits with no more questions than one barrier asks, and all of it is released (BAR-38)."""
        configure(max_tasks=2 * _CROWD)
        store.partition(store.near)
        keys = [store.new_key() for _ in range(_LINEAGES)]
        lineages = [store.written(key, "v") for key in keys]
        questions = _Questions(store, monkeypatch)
        waits = [
            asyncio.create_task(barrier_async(lineages[number % _LINEAGES], timeout=6 * store.patience))
            for number in range(_CROWD)
        ]
        async with asyncio.timeout(3 * store.patience):
            while parked(store) < _CROWD:
                await asyncio.sleep(0.005)
        await asyncio.to_thread(store.heal, store.near)
        results = await asyncio.gather(*waits)
        assert all(result.satisfied for result in results)
        assert questions.asked < _CROWD, f"{questions.asked} questions for {_CROWD} waiters"
        for key in keys:
            assert store.shows(key, "v")

    def test_push(self, store: StoreUnderTest) -> None:
        """A shim that declares a push is woken by it: without, the next question would come too late (SHIM-18)."""
        if not store.capabilities.push:
            pytest.skip("the shim declares no push")
        configure(poll=10 * store.patience)
        store.partition(store.near)
        key = store.new_key()
        lineage = store.written(key, "v")
        results: list[BarrierResult] = []
        thread = threading.Thread(target=lambda: results.append(store.judge(lineage)), daemon=True)
        thread.start()
        store.until(lambda: parked(store) == 1, "the barrier waits")
        store.heal(store.near)
        thread.join(store.patience + store.slack)
        assert [result.satisfied for result in results] == [True]
        assert store.shows(key, "v")

    def test_overload(self, store: StoreUnderTest) -> None:
        """Past the greatest number of waiters a barrier is answered at once (BAR-39)."""
        configure(max_waiters=1)
        store.partition(store.near)
        lineage = store.written(store.new_key(), "v")
        results: list[BarrierResult] = []
        thread = threading.Thread(target=lambda: results.append(store.judge(lineage)), daemon=True)
        thread.start()
        store.until(lambda: parked(store) == 1, "the barrier waits")
        refused = store.judge(lineage).stores[store.name]
        assert refused.verdict is Verdict.TIMED_OUT
        assert "overloaded" in refused.reason
        assert not results
        store.heal(store.near)
        thread.join(store.patience + store.slack)
        assert [result.satisfied for result in results] == [True]

    def test_reopened_need(self, store: StoreUnderTest) -> None:
        """Behind waits in vain for a key or epoch what is there is found, and what comes in time passes (BAR-40)."""
        configure(free_path_ttl=0)
        key, deadline = store.new_key(), 2 * store.brief
        there = store.written(key, "v")
        store.until(lambda: store.shows(key, "v"), "the write arrives")
        never = Lineage(unheard_of(write_id) for write_id in there.of_store(store.name))
        for _ in range(_IN_VAIN):
            assert not store.judge(never, deadline).satisfied
        result = store.judge(there, deadline)
        assert result.satisfied, result.explain()
        store.partition(store.near)
        late_key = store.new_key()
        late = store.written(late_key, "v")
        results: list[BarrierResult] = []
        thread = threading.Thread(target=lambda: results.append(store.judge(late)), daemon=True)
        thread.start()
        store.until(lambda: parked(store) or results, "the barrier waits")
        store.heal(store.near)
        thread.join(store.patience + store.slack)
        assert [result.satisfied for result in results] == [True], results
        assert store.shows(late_key, "v")

    @pytest.mark.parametrize("asked", ["one server", "every server"])
    @pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: type(fault).__name__)
    def test_own_fault(
        self, store: StoreUnderTest, fault: Exception, asked: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An exception of our own while a server is asked proves nothing, and leaves nothing out (BAR-13, BAR-61)."""
        configure(free_path_ttl=0, replica_out_after=4 * store.brief)  # a sound server may be late for a moment
        key = store.new_key()
        assert store.judge(store.written(store.new_key())).satisfied
        shim, [broken, *_] = registered(store).shim, registered(store).servers()

        def faulty(ask: Callable[..., Any]) -> Callable[..., Any]:
            def answer(ids: Sequence[WriteId], server: Server, *timeout: float) -> Any:
                if asked == "every server" or server is broken:
                    raise fault
                return ask(ids, server, *timeout)

            return answer

        lineage = store.written(key, "v")
        with monkeypatch.context() as patch:
            for name in ("visible", "wait"):
                patch.setattr(shim, name, faulty(getattr(shim, name)))
            for _ in range(5):
                result = store.judge(lineage, 2 * store.brief)
                assert not result.satisfied, result.explain()
                assert not result.stores[store.name].left_out
        store.until(lambda: store.judge(lineage, 1.0).complete, "it is whole again")
        assert store.shows(key, "v")

    @pytest.mark.parametrize("lacks", ["a thread's pipe", "a connection"])
    def test_no_descriptors(self, store: StoreUnderTest, lacks: str) -> None:
        """A process without descriptors says so, leaves no server out, and is whole when it has some (BAR-61)."""
        configure(free_path_ttl=0, replica_out_after=4 * store.brief, reconnect=0.1)
        key = store.new_key()
        assert store.judge(store.written(store.new_key())).satisfied
        store.partition(store.near)
        lineage = store.written(key, "v")
        if lacks == "a thread's pipe":
            for server in registered(store).servers():
                server.retire()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))  # what is open stays open
        try:
            results = [store.judge(lineage, 2 * store.brief) for _ in range(5)]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        answers = [result.stores[store.name] for result in results]
        assert not any(result.satisfied for result in results), [result.explain() for result in results]
        assert not any(answer.left_out for answer in answers)
        if lacks == "a thread's pipe":
            assert [answer.kind for answer in answers] == [UnprovenKind.OWN_FAULT] * len(answers)
        assert {answer.kind for answer in answers} <= {None, UnprovenKind.OWN_FAULT}, answers
        store.heal(store.near)
        store.until(lambda: store.judge(lineage, 1.0).complete, "it is whole again")
        assert store.shows(key, "v")

    @only("position")
    def test_free_path(self, store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
        """A barrier that repeats what was proved lately asks nobody (BAR-35)."""
        configure(free_path_ttl=60)
        with scope():
            store.write(store.new_key(), "v")
            assert barrier(timeout=store.patience).satisfied
            before = observers.barriers["free"]
            for _ in range(10):
                assert barrier(timeout=store.patience).satisfied
            assert observers.barriers["free"] == before + 10
