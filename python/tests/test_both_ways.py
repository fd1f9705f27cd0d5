"""Steps that a blocking and an asyncio client share."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import FrameType
from typing import Any

import pytest
from antipode.shim import both_ways
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
    traced = {both_ways.run.__code__}
    for first in range(1000):
        log: list[str] = []
        seen = 0

        def asks(log: list[str] = log) -> Steps[str]:
            log.append("sent")
            try:
                reply: str = yield "reply"
            except BaseException:
                log.append("closed")
                yield "closed"
                raise
            log.append("received")
            return reply

        def interrupt(frame: FrameType, event: str, _: Any, first: int = first) -> Any:
            nonlocal seen
            if frame.f_code not in traced:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                seen += 1
                if seen == first + 1:
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            run(asks())
        except KeyboardInterrupt:
            assert log in ([], ["sent", "closed"], ["sent", "received"]), f"at opcode {first}: {log}"
        else:
            assert first > 20, "nothing was interrupted"
            return
        finally:
            sys.settrace(None)
    pytest.fail("it never comes to its end")


class InterruptedTwice:
    """Steps whose driver is interrupted, and once more while it looks what to do about that."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self.send, self.throw = steps.send, steps.throw
        self._looks = 0

    @property
    def gi_frame(self) -> Any:
        self._looks += 1
        if self._looks == 1:
            raise KeyboardInterrupt
        return self._steps.gi_frame  # type: ignore[attr-defined]


def test_a_second_interrupt_leaves_nothing_open() -> None:
    log: list[str] = []

    def fails() -> None:
        raise KeyboardInterrupt

    def asks() -> Steps[None]:
        log.append("sent")
        try:
            yield BlockingCall(fails)
        except BaseException:
            log.append("closed")
            yield "closed"
            raise

    kept = asks()  # as the traceback of the interrupt keeps it
    with pytest.raises(KeyboardInterrupt):
        run(InterruptedTwice(kept))  # type: ignore[arg-type]
    assert log == ["sent", "closed"]


def test_a_client_s_own_stop_iteration_is_raised() -> None:
    def asks() -> Steps[None]:
        yield next(iter(()))

    with pytest.raises(StopIteration):
        run(asks())
