"""The wait engine: single flight, push, back-off, overload, the free path, ended and unknown epochs."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from typing import ClassVar

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Ordered, Verdict, WriteId
from antipode._base import observers
from antipode._base.settings import reset_settings
from antipode._model.verdict import NOT_YET, VISIBLE, not_yet, unproven
from antipode._store.store import registry
from antipode.shim import Capabilities, Server, Visibility
from fakes import FakeShim, Target, always, down, fake_store
from inner import poller


def until(condition: object, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.002)


class LogShim(FakeShim):
    """Positions; the server says how far it is."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="position")


class Log(Target):
    def __init__(self, name: str) -> None:
        super().__init__(name, self._judge)
        self.instance, self.epoch, self.applied = "i1", "e1", 0

    def _judge(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        server.applied(self.instance, self.epoch, {self.epoch: self.applied})
        return [self._one(each) for each in ids]

    def _one(self, write_id: WriteId) -> Visibility:
        assert isinstance(write_id.version, antipode.Ordered)
        epoch, counter = write_id.version
        if epoch == self.epoch:
            return VISIBLE if counter <= self.applied else not_yet(f"at {self.applied}")
        return not_yet("unknown", unknown_epoch=True)


def at(counter: int, epoch: str = "e1") -> Lineage:
    return Lineage([WriteId.position("log", epoch, counter)])


def log_store() -> Log:
    target = Log("log-1")
    fake_store("log", target, shim=LogShim)
    return target


def server() -> Server:
    return registry().need("log").servers()[0]


def test_one_poller_however_many_barriers_wait() -> None:
    """BAR-38: at most 25 questions a second to a silent server."""
    log = log_store()
    threads = [threading.Thread(target=lambda n=n: antipode.barrier(at(n), timeout=3)) for n in range(1, 101)]
    for thread in threads:
        thread.start()
    until(lambda: registry().need("log").parked_threads == 100)
    time.sleep(0.3)  # past the first, quick polls: what is measured is the steady state
    before, began = log.asked, time.monotonic()
    time.sleep(1.0)
    assert (log.asked - before) / (time.monotonic() - began) <= 25
    log.applied = 100
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_a_release_wakes_only_those_whose_position_is_reached() -> None:
    """BAR-41."""
    log = log_store()
    passed: list[int] = []

    def wait(counter: int) -> None:
        if antipode.barrier(at(counter), timeout=5, on_timeout="proceed").satisfied:
            passed.append(counter)

    threads = [threading.Thread(target=wait, args=(counter,)) for counter in (10, 20, 30)]
    for thread in threads:
        thread.start()
    until(lambda: registry().need("log").parked_threads == 3)
    log.applied = 20
    until(lambda: sorted(passed) == [10, 20])
    assert registry().need("log").parked_threads == 1
    log.applied = 30
    until(lambda: sorted(passed) == [10, 20, 30])


def test_the_free_path_asks_nothing_and_expires() -> None:
    """BAR-33 to BAR-35."""
    antipode.configure(free_path_ttl=0.2)
    log = log_store()
    log.applied = 10
    with antipode.scope(at(5)):
        antipode.barrier()

        def passed_freely() -> bool:
            """The first barrier may have the server asked once more behind its back: no question of this one's."""
            asked, free = log.asked, observers.barriers["free"]
            antipode.barrier()
            return log.asked == asked and observers.barriers["free"] == free + 1

        until(passed_freely)

        def asked_anew() -> bool:
            """A question from before may be answered behind the expiry: then the next one is waited for."""
            expired, asked = not poller(server()).holds("e1", 5, time.monotonic()), log.asked
            antipode.barrier()
            return expired and log.asked > asked

        until(asked_anew)


def test_a_free_pass_still_refuses_mistakes() -> None:
    log = log_store()
    log.applied = 10
    with antipode.scope(at(5)):
        antipode.barrier()
        for wrong in ({"on_timeout": "redeliver"}, {"on_unproven": "whenever"}, {"timeout": None}, {"timeout": -1}):
            with pytest.raises(antipode.ConfigurationError):
                antipode.barrier(**wrong)


def test_a_free_path_of_zero_always_asks() -> None:
    antipode.configure(free_path_ttl=0)
    log = log_store()
    log.applied = 10
    with antipode.scope(at(5)):
        for _ in range(3):
            asked = log.asked
            antipode.barrier()
            assert log.asked > asked


@pytest.mark.parametrize("change", ["instance", "epoch", "back"])
def test_proofs_are_dropped_with_another_instance_or_epoch_or_a_step_back(change: str) -> None:
    """BAR-33, EPOCH-15."""
    antipode.configure(free_path_ttl=60)
    log = log_store()
    log.applied = 10
    antipode.barrier(at(10))
    assert poller(server()).holds("e1", 10, time.monotonic())
    if change == "instance":
        log.instance, log.applied = "i2", 5
    elif change == "epoch":
        log.epoch, log.applied = "e2", 50
    else:
        log.applied = 5
    antipode.barrier(at(11), timeout=0.05, on_timeout="proceed", on_unproven="proceed")
    assert not poller(server()).holds("e1", 10, time.monotonic())
    assert not antipode.barrier(at(10), timeout=0.05, on_timeout="proceed", on_unproven="proceed").satisfied


def test_what_a_server_said_last_is_what_is_told_of_it() -> None:
    """BAR-43: in the words of a late write, also behind a reset, and where it counts in another history."""
    quiet = Log("log-1")
    quiet.answer = always(NOT_YET)
    fake_store("log", quiet, shim=LogShim)
    [server] = registry().need("log").servers()

    def told(lineage: Lineage) -> str:
        return antipode.barrier(lineage, timeout=0.1, on_timeout="proceed").stores["log"].reason

    assert "is at an unknown position, wanted e1….9" in told(at(9))
    server.applied("i1", "e1", {"e1": 7})
    server.reset()
    assert "is at e1….7, wanted e1….9" in told(at(9))
    server.applied("i1", "e1-later", {"e1-later": 3})
    server.reset()
    assert "is at e1-l….3 of another epoch, wanted e1….9" in told(at(9))


def test_a_server_that_breaks_off_loses_its_proofs() -> None:
    antipode.configure(free_path_ttl=60)
    log = log_store()
    log.applied = 10
    antipode.barrier(at(10))
    answer, log.answer = log.answer, lambda ids, server: (_ for _ in ()).throw(ConnectionResetError("reset"))
    antipode.barrier(at(11), timeout=0.05, on_timeout="proceed")
    assert not poller(server()).holds("e1", 10, time.monotonic())
    log.answer = answer
    assert antipode.barrier(at(10), timeout=5).satisfied


def test_an_unknown_epoch_is_waited_for_then_unproven_at_once_until_the_server_changes() -> None:
    """EPOCH-12, EPOCH-13."""
    log = log_store()
    began = time.monotonic()
    first = antipode.barrier(at(7, "e2"), timeout=0.3, on_unproven="proceed")
    assert first.stores["log"].verdict is Verdict.UNPROVEN
    assert time.monotonic() - began >= 0.29
    began = time.monotonic()
    second = antipode.barrier(at(8, "e2"), timeout=0.3, on_unproven="proceed")
    assert second.stores["log"].verdict is Verdict.UNPROVEN
    assert time.monotonic() - began < 0.2
    began = time.monotonic()
    longer = antipode.barrier(at(8, "e2"), timeout=1.5, on_unproven="proceed")
    assert longer.stores["log"].verdict is Verdict.UNPROVEN
    assert time.monotonic() - began > 0.4, "a longer deadline has not passed in vain yet"
    log.epoch, log.applied = "e2", 9
    assert antipode.barrier(at(8, "e2"), timeout=1).satisfied


def test_an_impossible_position_does_not_stop_others() -> None:
    log = log_store()
    log.applied = 10
    for _ in range(3):
        assert not antipode.barrier(at(2**64 - 1), timeout=0.05, on_timeout="proceed").satisfied
    log.applied = 11
    assert antipode.barrier(at(11), timeout=1).satisfied


def test_at_most_so_many_park() -> None:
    """BAR-39."""
    antipode.configure(max_waiters=3, max_tasks=2)
    log = log_store()
    threads = [threading.Thread(target=lambda: antipode.barrier(at(1), timeout=5)) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: registry().need("log").parked_threads == 3)
    began = time.monotonic()
    result = antipode.barrier(at(1), timeout=5, on_timeout="proceed")
    assert time.monotonic() - began < 1
    assert "overloaded" in result.stores["log"].reason
    log.applied = 1
    for thread in threads:
        thread.join(5)
    assert registry().need("log").parked_threads == 0


def test_ten_thousand_tasks_are_released_together() -> None:
    log = log_store()

    async def main() -> int:
        tasks = [asyncio.create_task(antipode.barrier_async(at(1 + n), timeout=20)) for n in range(10_000)]
        while registry().need("log").parked_tasks < 10_000:
            await asyncio.sleep(0.01)
        log.applied = 10_000
        return sum(result.satisfied for result in await asyncio.gather(*tasks))

    assert asyncio.run(main()) == 10_000
    assert registry().need("log").parked_tasks == 0


def test_a_cancelled_task_gives_its_place_up() -> None:
    """BAR-32."""
    log_store()

    async def main() -> None:
        task = asyncio.create_task(antipode.barrier_async(at(1), timeout=30))
        while registry().need("log").parked_tasks < 1:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert registry().need("log").parked_tasks == 0
    until(lambda: poller(server()).waiters.live == 0)


def test_two_event_loops_share_the_poller_and_nothing_else() -> None:
    """SCOPE-13."""
    log = log_store()
    results: list[bool] = []

    def loop() -> None:
        results.append(asyncio.run(antipode.barrier_async(at(1), timeout=10)).satisfied)

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: registry().need("log").parked_tasks == 2)
    log.applied = 1
    for thread in threads:
        thread.join(5)
    assert results == [True, True]


@pytest.mark.parametrize("waiting", [False, True])
def test_a_forked_child_begins_without_pollers_and_proofs(waiting: bool) -> None:
    """SCOPE-13."""
    antipode.configure(free_path_ttl=60)
    log = log_store()
    log.applied = 5
    antipode.barrier(at(5))
    parked = threading.Thread(target=lambda: antipode.barrier(at(6), timeout=20))
    if waiting:
        parked.start()
        until(lambda: registry().need("log").parked_threads == 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            assert not poller(server()).holds("e1", 5, time.monotonic())
            assert registry().need("log").parked_threads == 0
            log.applied = 7
            assert antipode.barrier(at(7), timeout=5).satisfied
            os.write(write, b"ok")
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 2) == b"ok"
    os.close(read)
    assert antipode.barrier(at(5), timeout=1).satisfied
    log.applied = 6
    if waiting:
        parked.join(5)
        assert not parked.is_alive()


def test_the_thread_ends_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antipode._engine.server.LINGER_S", 0.05)
    log = log_store()
    log.applied = 1
    antipode.barrier(at(1))
    until(lambda: poller(server())._thread is None)
    log.applied = 2
    assert antipode.barrier(at(2), timeout=5).satisfied, "and begins again for the next"


def test_objects_and_several_epochs_are_asked_together() -> None:
    wanted = {b"a": VISIBLE, b"b": NOT_YET, b"c": unproven("no")}
    target = Target("o1", lambda ids, server: [wanted[each.key] for each in ids])
    fake_store("o", target)

    def verdict(*keys: str) -> Verdict:
        ids = [WriteId("o", key, antipode.Ordered("", 1)) for key in keys]
        result = antipode.barrier(Lineage(ids), timeout=0.05, on_timeout="proceed", on_unproven="proceed")
        return result.stores["o"].verdict

    assert verdict("a") is Verdict.VISIBLE
    assert verdict("a", "b") is Verdict.TIMED_OUT
    assert verdict("a", "b", "c") is Verdict.UNPROVEN


def test_a_shim_that_answers_too_little_proves_nothing() -> None:
    fake_store("o", Target("o1", lambda ids, server: []))
    with pytest.raises(antipode.BarrierUnproven, match="answers"):
        antipode.barrier(Lineage([WriteId("o", "k", antipode.Ordered("", 1))]), timeout=5)


def test_a_server_that_was_down_and_then_refuses_is_not_asked_in_a_loop() -> None:
    """BAR-38."""
    target = Target("o1", down)
    fake_store("o", target)
    lineage = Lineage([WriteId("o", "k", antipode.Ordered("", 1))])
    antipode.barrier(lineage, timeout=0.2, on_timeout="proceed", on_unproven="proceed")

    def refuses(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        raise ValueError("NOAUTH")

    target.answer = refuses
    with pytest.raises(antipode.BarrierUnproven, match="NOAUTH"):
        antipode.barrier(lineage, timeout=10)
    before, began = target.asked, time.monotonic()
    time.sleep(0.5)
    assert (target.asked - before) / (time.monotonic() - began) <= 100


class BlockingShim(FakeShim):
    """A store that waits by itself."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="object", blocking_wait=True)
    arrived: ClassVar[threading.Event]

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        self.arrived.wait(timeout)
        return [VISIBLE if self.arrived.is_set() else NOT_YET for _ in ids]


def test_a_stores_own_blocking_wait_is_used() -> None:
    BlockingShim.arrived = threading.Event()
    fake_store("w", Target("w1", always(NOT_YET)), shim=BlockingShim)
    lineage = Lineage([WriteId("w", "k", antipode.Ordered("", 1))])
    assert not antipode.barrier(lineage, timeout=0.1, on_timeout="proceed").satisfied
    threading.Timer(0.2, BlockingShim.arrived.set).start()
    result = antipode.barrier(lineage, timeout=5)
    assert result.satisfied
    assert result.waited < 2


class InterruptedShim(BlockingShim):
    """A store whose own wait would last long: it must be told of whoever comes, and not be used for a look."""

    waits: ClassVar[int]

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        type(self).waits += 1
        deadline = time.monotonic() + 20
        answers = [VISIBLE if write_id.key == b"there" else NOT_YET for write_id in ids]
        while VISIBLE not in answers and not server.interrupted and time.monotonic() < deadline:
            time.sleep(0.001)
        return answers


def test_a_blocking_wait_is_told_of_a_newcomer() -> None:
    InterruptedShim.waits = 0
    fake_store("w", Target("w1", always(NOT_YET)), shim=InterruptedShim)
    first = threading.Thread(
        target=antipode.barrier,
        args=(Lineage([WriteId("w", "k", antipode.Ordered("", 1))]),),
        kwargs={"timeout": 3, "on_timeout": "proceed"},
    )
    first.start()
    until(lambda: InterruptedShim.waits)
    result = antipode.barrier(Lineage([WriteId("w", "there", antipode.Ordered("", 1))]), timeout=10)
    first.join()
    assert result.satisfied
    assert result.waited < 2


def test_a_look_does_not_wait_at_the_server() -> None:
    InterruptedShim.waits = 0
    fake_store("w", Target("w1", always(NOT_YET)), shim=InterruptedShim)
    result = antipode.barrier(Lineage([WriteId("w", "k", antipode.Ordered("", 1))]), timeout=0, on_timeout="proceed")
    assert not result.satisfied
    assert InterruptedShim.waits == 0


def test_settings_that_cannot_be_read_anew_do_not_end_the_thread_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its barriers would wait for a thread that is gone, and nobody would start another."""
    log = log_store()
    log.applied = 1
    assert antipode.barrier(at(1), timeout=5).satisfied
    thread, answer = poller(server())._thread, log.answer
    assert thread is not None
    monkeypatch.setenv("ANTIPODE_TIMEOUT_MS", "-1")
    reset_settings()
    log.answer = down
    until(lambda: poller(server()).down)
    rounds = log.asked
    until(lambda: log.asked > rounds + 1)
    monkeypatch.delenv("ANTIPODE_TIMEOUT_MS")
    log.answer, log.applied = answer, 2
    assert antipode.barrier(at(2), timeout=5).satisfied
    assert poller(server())._thread is thread


class OwnPaceShim(FakeShim):
    kind = "fake-own-pace"
    own_pace = 0.05


def test_a_shim_with_a_pace_of_its_own_is_called_without_back_off() -> None:
    """BAR-38: with back-off the fortieth question would come after 19 s."""
    target = Target("paced", always(NOT_YET))
    fake_store("paced", target, shim=OwnPaceShim)
    waiting = threading.Thread(
        target=lambda: antipode.barrier(
            Lineage([WriteId("paced", b"k", Ordered("", 1))]), timeout=14, on_timeout="proceed"
        )
    )
    waiting.start()
    until(lambda: target.asked >= 40, 14)
    target.answer = always(VISIBLE)
    waiting.join(5)
    assert not waiting.is_alive()


class ReturningShim(LogShim):
    """Its wait comes back at once: the server does not know the epoch."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="position", blocking_wait=True)

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        return self.visible(ids, server)


def test_a_wait_of_the_stores_own_that_does_not_wait_is_spaced_like_a_poll() -> None:
    """BAR-38: at most 25 questions a second to a silent server."""
    log = Log("log-1")
    fake_store("log", log, shim=ReturningShim)
    start = time.monotonic()
    antipode.barrier(at(1), timeout=2, on_timeout="proceed")
    assert log.asked <= 25 * (time.monotonic() - start) + 10
