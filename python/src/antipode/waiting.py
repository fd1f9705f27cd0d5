"""Waiting for writes at servers, blocking or awaiting: places, deadlines, giving up (spec BAR-28, BAR-32, BAR-39)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from antipode import telemetry
from antipode.lineage import Lineage
from antipode.need import Group, Need
from antipode.server import Server
from antipode.settings import settings
from antipode.store import Store
from antipode.verdict import Verdict, not_yet
from antipode.writeid import WriteId

LOOK_S = 0.1
"""How long a look without waiting (`timeout=0`) may take to ask the servers, in seconds."""


def wait(wanted: Iterable[tuple[Server, WriteId]], timeout: float) -> Group:
    """Blocks until every write is settled at its server, or `timeout` seconds have passed."""
    done = threading.Lock()
    done.acquire()
    group = Group(timeout, done.release, None)
    with _given_up_at_the_end(group):
        if _park(group, wanted):
            with _place(group, tasks=False) as placed:
                if placed:
                    done.acquire(timeout=_patience(group))
    return group


async def wait_async(wanted: Iterable[tuple[Server, WriteId]], timeout: float) -> Group:
    """`wait` without blocking the event loop. Cancelling it gives the place up."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def release() -> None:
        if not done.done():
            done.set_result(None)

    group = Group(timeout, release, loop)
    with _given_up_at_the_end(group):
        if _park(group, wanted):
            with _place(group, tasks=True) as placed:
                if placed:
                    alarm = loop.call_later(_patience(group), release)
                    try:
                        await done
                    finally:
                        alarm.cancel()
    return group


def _park(group: Group, wanted: Iterable[tuple[Server, WriteId]]) -> bool:
    """Parks every write at its server; True where something is to be waited for."""
    for server, write_id in wanted:
        server.park(group.add(write_id, server))
    return group.parked()


def _patience(group: Group) -> float:
    """Seconds until the deadline; a look without waiting still asks each server once."""
    return max(group.since + (group.timeout or LOOK_S) - time.monotonic(), 0.0)


@contextmanager
def _given_up_at_the_end(group: Group) -> Iterator[None]:
    try:
        yield
    except BaseException:
        group.cancelled = True
        raise
    finally:
        for need in group.needs:
            if not need.done:
                need.server.give_up(need)


@contextmanager
def _place(group: Group, *, tasks: bool) -> Iterator[bool]:
    """A place among those that wait, counted a store and process; False where all are taken (overload)."""
    stores = {need.server.store for need in group.needs if not need.done}
    limit = settings().max_tasks if tasks else settings().max_waiters
    taken: list[Store] = []
    try:
        for store in stores:
            if not store.take_place(limit, tasks=tasks):
                _overloaded(group)
                break
            taken.append(store)
            telemetry.parked(store.name, 1)
        yield len(taken) == len(stores)
    finally:
        for store in taken:
            store.give_place_back(tasks=tasks)
            telemetry.parked(store.name, -1)


def _overloaded(group: Group) -> None:
    group.overloaded = True
    for need in group.needs:
        if not need.done:
            need.answer = not_yet("overloaded: as many barriers wait for it as this process allows")


# One store, one server: what a shim's wait on read uses


def wait_for_server(server: Server, lineage: Lineage, timeout: float) -> Verdict:
    """Blocks until one server has shown every write of the lineage to its store; the verdict, nothing enforced."""
    return _verdict(wait(_at(server, lineage), timeout).needs)


async def wait_for_server_async(server: Server, lineage: Lineage, timeout: float) -> Verdict:
    """`wait_for_server` for asyncio."""
    return _verdict((await wait_async(_at(server, lineage), timeout)).needs)


def _at(server: Server, lineage: Lineage) -> list[tuple[Server, WriteId]]:
    return [(server, write_id) for write_id in lineage.of_store(server.store.name)]


def _verdict(needs: Sequence[Need]) -> Verdict:
    for need in needs:
        if need.left_out or (need.answer is not None and need.answer.verdict is Verdict.UNPROVEN):
            return Verdict.UNPROVEN
    if all(need.answer is not None and need.answer.verdict is Verdict.VISIBLE for need in needs):
        return Verdict.VISIBLE
    if any(need.answer is not None and need.answer.unknown_epoch for need in needs):
        return Verdict.UNPROVEN
    return Verdict.TIMED_OUT
