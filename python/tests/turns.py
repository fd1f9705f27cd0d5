"""Two threads that take turns: which of them goes on is decided at each byte code of the engine, by a plan.

A simulation takes the steps of one actor at a time and so sees no race inside a step; the interpreter switches where it
likes, so that no run of real threads is played again. Here each byte code of the traced files may be the last one
before the other thread goes on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

MOST_STEPS: Final = 50_000
"""Whoever takes more goes round in circles."""
_PATIENCE_S: Final = 60.0


class Stuck(BaseException):
    """A thread goes round in circles, or both wait for each other. No `Exception`: the engine catches those."""


class Turns:
    """One run of two actors.

    legs: how many byte codes the first one takes before the other goes on, how many that one takes then, and so on;
    behind them each runs to its end. Who wants a lock that the other holds has him go on until it is free.
    """

    def __init__(self, files: frozenset[str], legs: Sequence[int]) -> None:
        self._files = files
        self._legs = iter(legs)
        self._left = next(self._legs, -1)
        self.steps = [0, 0]
        """So many byte codes each of them took."""
        self._go = (threading.Semaphore(0), threading.Semaphore(0))
        self._ended = [False, False]
        self._waits: list[TurnLock | None] = [None, None]
        self._errors: list[BaseException] = []
        self._actors: dict[int, int] = {}
        self.switched = 0
        """So many legs were gone to their end."""

    def run(self, *actors: Callable[[], None]) -> None:
        """Run both to their ends, the first one first. Raise what one of them raised."""
        threads = [threading.Thread(target=self._run, args=each, daemon=True) for each in enumerate(actors)]
        for thread in threads:
            thread.start()
        self._go[0].release()
        for thread in threads:
            thread.join(_PATIENCE_S)
            if thread.is_alive():
                raise Stuck("it does not end")
        for error in self._errors:
            raise error

    def _run(self, actor: int, act: Callable[[], None]) -> None:
        self._actors[threading.get_ident()] = actor
        self._go[actor].acquire()
        sys.settrace(self._trace)
        try:
            act()
        except BaseException as error:
            self._errors.append(error)
        finally:
            sys.settrace(None)
            self._ended[actor] = True
            self._go[1 - actor].release()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[[FrameType, str, Any], Any] | None:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Callable[[FrameType, str, Any], Any]:
        if event == "opcode":
            actor = self._actors[threading.get_ident()]
            self.steps[actor] += 1
            if self.steps[actor] > MOST_STEPS:
                raise Stuck(f"it goes round in {frame.f_code.co_name}")
            if self._left > 0 and self._waits[1 - actor] is None:
                self._left -= 1
                if self._left == 0:
                    self._left = next(self._legs, -1)
                    self.switched += 1
                    self._hand_over(actor)
        return self._step

    def _hand_over(self, actor: int) -> None:
        if not self._ended[1 - actor]:
            self._go[1 - actor].release()
            self._go[actor].acquire()

    # For locks

    @property
    def actor(self) -> int | None:
        """Return which actor asks; None for a thread that is none: the others are at rest then."""
        return self._actors.get(threading.get_ident())

    def wait_for(self, lock: TurnLock, actor: int) -> None:
        """Have the other one go on until he gives the lock back."""
        if self._ended[1 - actor] or self._waits[1 - actor] is not None:
            raise Stuck("nobody gives the lock back")
        self._waits[actor] = lock
        self._hand_over(actor)
        self._waits[actor] = None

    def given_back(self, lock: TurnLock, actor: int) -> None:
        """Have him go on who waits for it."""
        if self._waits[1 - actor] is lock:
            self._hand_over(actor)


class TurnLock:
    """A lock of the engine, for actors of which only one runs."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_held = False

    def __enter__(self) -> None:
        actor = self._turns.actor
        while self._is_held:
            if actor is None:
                raise Stuck("an actor ended with a lock")
            self._turns.wait_for(self, actor)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        actor = self._turns.actor
        if actor is not None:
            self._turns.given_back(self, actor)
