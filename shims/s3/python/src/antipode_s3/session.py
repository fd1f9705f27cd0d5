"""Asking one bucket for many objects: who is due, and how often a server is asked (spec BAR-38)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import uniform
from typing import Final

from antipode import Verdict, WriteId
from antipode.shim import NOT_YET, UnprovenKind, Visibility, events, unproven

from antipode_s3.judging import Bucket, Look, without_proxy
from antipode_s3.probe import Facts, probe
from antipode_s3.targets import POOL, Target

POLL_S: Final = 0.01
"""The shortest time between two questions about one object: quicker ones slow the write down (MinIO locks objects)."""
_STEADY_S: Final = 1.0
"""So long an object is asked for at the shortest interval; then the interval grows."""
_GROWTH: Final = 1.5
_MOST_S: Final = 0.1
_RATE: Final = 400.0
"""Questions a second to one server, however many objects are waited for."""
_AT_ONCE: Final = 32
_PROBE_S: Final = 60.0
"""What a bucket allows is asked anew after so long; where it proves nothing, after `_UNFIT_S`."""
_UNFIT_S: Final = 1.0
_FORGET_S: Final = 5.0


@dataclass(slots=True)
class _Turn:
    """When one write is asked for again."""

    since: float
    due: float
    interval: float = POLL_S
    look: Look = field(default_factory=Look)
    asked_for: float = 0.0
    """When somebody last wanted to know."""
    answer: Visibility = NOT_YET


class Session:
    """Our own connections to one bucket, and what is known there. Used by the engine's thread for that server."""

    def __init__(self, target: Target, timeout: float, store: str, known: dict[str, tuple[Facts, float]]) -> None:
        self.target = target
        self.known = known
        """What buckets allow, by address, and when that was asked: it outlives a session."""
        self._store = store
        self._client = target.connect(timeout)
        self._client.meta.events.register("before-call.s3", without_proxy)
        self.bucket = Bucket(self._client, target.bucket)
        self._turns: dict[WriteId, _Turn] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._timeout = timeout
        self._tokens = float(_AT_ONCE)
        self._filled_at = time.monotonic()

    def close(self) -> None:
        """Gives the connections up."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._client.close()

    def _probe(self) -> Facts:
        """What the bucket allows; raises what the client raises out of reach."""
        facts = probe(self._client, self.target.bucket, self.target.address, reads=True)
        self.known[self.target.address] = facts, time.monotonic()
        return facts

    def answers(self, ids: Sequence[WriteId]) -> list[Visibility]:
        """One answer a write: by a question now for those that are due, else as it was at the last question."""
        now = time.monotonic()
        facts, probed_at = self.known.get(self.target.address, (Facts(), -1e9))
        if not facts.reached or (facts.unfit and now - probed_at > _UNFIT_S):
            facts = self._probe()
        if facts.unfit:
            return [unproven(facts.unfit, UnprovenKind.UNFIT)] * len(ids)
        due: list[WriteId] = []
        for write_id in ids:
            turn = self._turns.get(write_id)
            if turn is None:
                turn = self._turns[write_id] = _Turn(now, now)
            turn.asked_for = now
            if turn.due <= now:
                due.append(write_id)
        if not ids:
            self._client.head_bucket(Bucket=self.target.bucket)
        due.sort(key=lambda write_id: self._turns[write_id].due)
        self._ask(due[: self._allowed(now)])
        answers = [self._turns[write_id].answer for write_id in ids]
        self._forget(now)
        if 0 < probed_at < now - _PROBE_S:
            self._probe()  # after the answers: nobody waits for it
        return answers

    def _allowed(self, now: float) -> int:
        """How many questions may be asked now: bounded a second, a little more at first."""
        self._tokens = min(self._tokens + (now - self._filled_at) * _RATE, float(_AT_ONCE))
        self._filled_at = now
        return max(int(self._tokens), 0)

    def _ask(self, ids: Sequence[WriteId]) -> None:
        if not ids:
            return
        before = self.bucket.requests
        if len(ids) == 1:
            self._ask_one(ids[0])
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(POOL, thread_name_prefix="antipode-s3")
            futures: list[Future[None]] = [self._pool.submit(self._ask_one, write_id) for write_id in ids]
            errors = [error for future in futures if (error := future.exception()) is not None]
            if errors:
                raise errors[0]
        asked = self.bucket.requests - before
        self._tokens -= asked
        for _ in range(asked):
            events.on_server_asked(self._store, "wait")

    def _ask_one(self, write_id: WriteId) -> None:
        turn = self._turns[write_id]
        turn.answer = self.bucket.judge(write_id, turn.look)
        now = time.monotonic()
        if now - turn.since > _STEADY_S:
            turn.interval = min(turn.interval * _GROWTH, _MOST_S)
        turn.due = now + turn.interval * uniform(0.9, 1.1)

    def _forget(self, now: float) -> None:
        """Drops what is settled, or nobody has waited for lately."""
        for write_id, turn in list(self._turns.items()):
            if turn.answer.verdict is not Verdict.NOT_YET or now - turn.asked_for > _FORGET_S:
                del self._turns[write_id]
