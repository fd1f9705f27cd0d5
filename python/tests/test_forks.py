"""The child of a fork begins without scopes (SCOPE-13). Servers and their proofs: test_engine.py."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import antipode
import pytest
from antipode import ConfigurationError, WriteId
from antipode._model.verdict import VISIBLE
from antipode._store.store import registry
from fakes import Target, always, fake_store
from scopes import Counts

WRITE = WriteId.position("log", "e1", 1)
DEADLINE_S = 20.0

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


def in_child(work: Callable[[], None]) -> int:
    """Forks, and does this there; what it raised is printed. The child's pid."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print("in the child:", repr(error), flush=True)
        finally:
            os._exit(code)
    return child


def ended_well(child: int) -> bool:
    """Waits for a child with a deadline: one that hangs is ended."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.005)


def test_a_forked_child_begins_outside_any_scope(counts: Counts) -> None:
    """SCOPE-13: in every Context that the parent had, and when it leaves the parent's blocks; the parent goes on."""

    @antipode.carry
    def carried() -> None:
        assert antipode.current_scope() is None

    with antipode.scope() as outer, antipode.scope() as inner:
        carries = antipode.carry(antipode.current_scope)

        def child() -> None:
            assert antipode.current_scope() is None
            antipode.append(WRITE)  # outside any scope: counted, and no harm to the parent's
            assert counts.of("antipode.write.lost", reason="orphan", store="other") == 1
            with pytest.raises(ConfigurationError):
                antipode.barrier(timeout=1)
            assert carries() is None
            carried()
            with antipode.scope() as own:
                antipode.append(WRITE)
                assert own.lineage == antipode.Lineage([WRITE])
            assert antipode.current_scope() is None

        assert ended_well(in_child(child))
        assert antipode.current_scope() is inner
        assert carries() is inner
        antipode.append(WRITE)
    assert inner.lineage == antipode.Lineage([WRITE])
    assert not outer.lineage
    assert counts.of("antipode.write.lost", reason="orphan", store="other") == 0


def test_a_child_leaves_the_blocks_of_its_parent_though_another_thread_held_a_lock() -> None:
    """SCOPE-13: that thread does not exist in the child, and would never let the lock go."""
    held, let_go = threading.Event(), threading.Event()

    def hold(scope: antipode.Scope) -> None:
        with scope._lock:
            held.set()
            let_go.wait(DEADLINE_S)

    with antipode.scope():
        scope = antipode.current_scope()
        assert scope is not None
        holder = threading.Thread(target=hold, args=(scope,))
        holder.start()
        assert held.wait(DEADLINE_S)

        def leave_off() -> None:
            antipode.configure(mode="off")
            antipode.configure(mode="enforce")

        left = ended_well(in_child(scope.stop))  # as the end of the block does
        well = ended_well(in_child(leave_off))  # SCOPE-26
        let_go.set()
        holder.join(DEADLINE_S)
    assert left
    assert well


def locks() -> dict[str, Any]:
    """Every lock that a module of ours, the registry, a store or a server has now, by its place."""
    kinds = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "antipode"]
    store = registry().need("log")
    holders = [*modules, registry(), store, *store.servers()]
    return {
        f"{holder} {name}": lock for holder in holders for name, lock in vars(holder).items() if isinstance(lock, kinds)
    }


def test_no_lock_of_the_parent_is_held_in_the_child() -> None:
    """SCOPE-13: whichever lock another thread held when the process forked, nobody hangs for it in the child."""
    importlib.import_module("antipode.propagation")  # the propagator has one, too

    fake_store("log", Target("log-1", always(VISIBLE)))
    held, let_go = threading.Event(), threading.Event()
    all_of_them = locks()
    assert len(all_of_them) > 8

    def hold() -> None:
        with ExitStack() as stack:
            for lock in all_of_them.values():
                stack.enter_context(lock)
            held.set()
            let_go.wait(DEADLINE_S)

    def child() -> None:
        stuck = [place for place, lock in locks().items() if not lock.acquire(blocking=False)]
        assert not stuck, stuck

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(DEADLINE_S)
    well = ended_well(in_child(child))
    let_go.set()
    holder.join(DEADLINE_S)
    assert well
