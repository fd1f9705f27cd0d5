"""Steps that a blocking and an asyncio client share."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import FrameType
from typing import Any

import pytest
from antipode.shim.both_ways import BlockingCall, Steps, run, run_async


class Client:
    def ask(self, fails: bool) -> Any:
        if fails:
            raise ConnectionError
        return "reply"


class AsyncClient(Client):
    async def ask(self, fails: bool) -> Any:
        await asyncio.sleep(0)
        return super().ask(fails)


def steps(client: Client, log: list[Any]) -> Steps[str]:
    try:
        log.append((yield client.ask(False)))
        log.append((yield BlockingCall(threading.current_thread)) is threading.main_thread())
        log.append((yield from inner(client)))
        yield client.ask(True)
    except ConnectionError:
        log.append((yield client.ask(False)))
    return "end"


def inner(client: Client) -> Steps[str]:
    try:
        yield BlockingCall(lambda: client.missing)  # type: ignore[attr-defined]
    except AttributeError:
        return "refused"
    return "there"


def test_both_forms_do_the_same_steps() -> None:
    blocking: list[Any] = []
    waiting: list[Any] = []
    assert run(steps(Client(), blocking)) == asyncio.run(run_async(steps(AsyncClient(), waiting))) == "end"
    assert blocking == ["reply", True, "refused", "reply"]
    assert waiting == ["reply", False, "refused", "reply"]


def test_a_cancellation_is_raised_at_the_step_that_waits() -> None:
    log: list[str] = []

    def waits() -> Steps[None]:
        try:
            yield asyncio.sleep(60)
        except asyncio.CancelledError:
            yield asyncio.sleep(0)
            log.append("closed")
            raise

    async def cancel() -> None:
        task = asyncio.create_task(run_async(waits()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert log == ["closed"]


def test_an_interrupt_between_two_steps_is_raised_at_the_step() -> None:
    """Else a connection would be given back while a reply is on its way."""
    log: list[str] = []

    def asks() -> Steps[str]:
        log.append("sent")
        try:
            reply: str = yield "reply"
            return reply
        except KeyboardInterrupt:
            log.append((yield "closed"))
            raise

    def interrupt(frame: FrameType, _event: str, _: Any) -> Any:
        if frame.f_code is run.__code__ and log == ["sent"]:
            raise KeyboardInterrupt
        return interrupt

    steps = asks()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(steps)
    finally:
        sys.settrace(None)
    assert log == ["sent", "closed"]
