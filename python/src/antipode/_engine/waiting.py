"""Waiting for writes at servers, blocking or awaiting: places, deadlines, giving up (spec BAR-28, BAR-32, BAR-39)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from antipode._base.permit import current_permit
from antipode._base.settings import settings
from antipode._engine.judgement import judge_server
from antipode._engine.pending_wait import JudgedServer, WaitGroup
from antipode._model.lineage import Lineage
from antipode._model.verdict import VISIBLE, UnprovenKind, Verdict, Visibility, not_yet, unproven
from antipode._model.write_id import WriteId

LOOK_S = 0.1
"""How long a look without waiting (`timeout=0`) may take to ask the servers, in seconds."""


def wait(
    wanted: Iterable[tuple[JudgedServer, WriteId]],
    timeout: float,
    *,
    looks_twice: bool = False,
    since: float | None = None,
    has_lost: Callable[[JudgedServer], bool] | None = None,
) -> WaitGroup:
    """Block until every write is settled at its server, or `timeout` seconds have passed.

    looks_twice: several servers each show their writes once more when the last has shown them (BAR-64). since: where
    it goes on for another wait, when that began (`time.monotonic()`): the deadline is the same. has_lost: whether a
    server is none of those that are known by now: then a wait there ends, and the group is outdated (BAR-65).
    """
    done = threading.Lock()
    done.acquire()
    group = WaitGroup(timeout, done.release, None, since)
    group.has_lost = has_lost
    try:
        if _park(group, wanted, looks_twice):
            if group.take_places(settings().max_waiters):
                with _without_permit():
                    done.acquire(timeout=seconds_left(group))
            else:
                _overloaded(group)
    except BaseException:
        group.cancelled = True
        raise
    finally:
        _give_up(group)
    return group


async def wait_async(
    wanted: Iterable[tuple[JudgedServer, WriteId]],
    timeout: float,
    *,
    looks_twice: bool = False,
    since: float | None = None,
    has_lost: Callable[[JudgedServer], bool] | None = None,
) -> WaitGroup:
    """`wait` without blocking the event loop. Cancelling it gives the place up."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def release() -> None:
        if not done.done():
            done.set_result(None)

    group = WaitGroup(timeout, release, loop, since)
    group.has_lost = has_lost
    try:
        if _park(group, wanted, looks_twice):
            if group.take_places(settings().max_tasks):
                alarm = loop.call_later(seconds_left(group), release)
                try:
                    with _without_permit():
                        await done
                finally:
                    alarm.cancel()
            else:
                _overloaded(group)
    except BaseException:
        group.cancelled = True
        raise
    finally:
        _give_up(group)
    return group


@contextmanager
def _without_permit() -> Iterator[None]:
    """Give the request's permit back for the block: who waits does no work (THR-4)."""
    permit = current_permit()
    if permit is None:
        yield
        return
    permit.park()
    try:
        yield
    finally:
        permit.resume()


def _park(group: WaitGroup, wanted: Iterable[tuple[JudgedServer, WriteId]], looks_twice: bool) -> bool:
    """Park every write at its server, for as long as the deadline allows; return True where something is waited for."""
    until = _deadline(group)
    group.looks_twice = looks_twice
    for server, write_id in wanted:
        need = group.add(write_id, server)
        if time.monotonic() < until:
            server.park(need)
    group.has_waited = group.parked()
    # What left before it was parked there, nobody else sees.
    return group.has_waited and not any(group.end_without(each) for each in group.open_at)


def _deadline(group: WaitGroup) -> float:
    return group.since + (group.timeout or LOOK_S)


def seconds_left(group: WaitGroup) -> float:
    """Return the seconds until the deadline; a look without waiting still asks each server once."""
    return max(_deadline(group) - time.monotonic(), 0.0)


def _give_up(group: WaitGroup) -> None:
    group.give_places_back()
    for need in group.end():
        need.server.give_up(need)


def _overloaded(group: WaitGroup) -> None:
    group.overloaded = True
    for need in group.end():
        need.server.give_up(need)  # first: what is over, no answer changes any more
        need.answer = not_yet("overloaded: as many barriers wait for it as this process allows", overloaded=True)


# One server: what a read waits for


def wait_for_server(server: JudgedServer, lineage: Lineage, timeout: float) -> Visibility:
    """Block until one server has shown the lineage's writes to its store; return its answer, nothing enforced."""
    return _answer(server, wait(_at(server, lineage), timeout))


async def wait_for_server_async(server: JudgedServer, lineage: Lineage, timeout: float) -> Visibility:
    """`wait_for_server` for asyncio."""
    return _answer(server, await wait_async(_at(server, lineage), timeout))


def _at(server: JudgedServer, lineage: Lineage) -> list[tuple[JudgedServer, WriteId]]:
    return [(server, write_id) for write_id in lineage.of_store(server.store.name)]


def _answer(server: JudgedServer, group: WaitGroup) -> Visibility:
    found = judge_server(server.address, group.needs, looked=False)
    if found.verdict is Verdict.VISIBLE:
        return VISIBLE
    if found.verdict is Verdict.UNPROVEN:
        return unproven(found.told, found.kind or UnprovenKind.OTHER)
    return not_yet(found.told, overloaded=found.overloaded)
