"""The owner's side of a delegated wait: what the middlewares answer to `POST /antipode/wait` (spec DELEG)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from antipode._base.settings import Mode
from antipode._engine.pending_wait import WaitGroup
from antipode._engine.waiting import wait, wait_async
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.verdict import NOT_YET, VISIBLE, Verdict, Visibility, not_yet, unproven
from antipode._model.write_id import WriteId
from antipode._store.store import Store, registry
from antipode._trust.trust import Caller, TrustSettings, outgoing_text, trust_settings

PATH: Final = "/antipode/wait"
MOST_OCTETS: Final = 16_384
MOST_MS: Final = 1000
_NONCE: Final = re.compile("[0-9a-f]{32}")
_PURPOSE: Final = b"antipode wait "
MOST_AT_ONCE: Final = 32
"""So many questions are answered at once; whoever asks past that is to come again (DELEG-13)."""
_places = threading.BoundedSemaphore(MOST_AT_ONCE)


class Answer(NamedTuple):
    """A status and a body of JSON."""

    status: int
    body: bytes

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that go with it."""
        named = [("content-type", "application/json"), ("content-length", str(len(self.body)))]
        return [*named, ("retry-after", "1")] if self.status == _BUSY.status else named


def answers_trust(trust: TrustSettings, nonce: str) -> TrustSettings:
    """These, by which the answer to one question is sealed and judged; nothing else that is sealed is one (DELEG-4)."""
    return replace(trust, keys=trust.keys.for_purpose(_PURPOSE + nonce.encode("ascii")))


def refusal(status: int, words: str) -> Answer:
    """An answer that says what is wrong with the question."""
    return Answer(status, json.dumps({"error": words}).encode())


_BUSY: Final = refusal(429, f"{MOST_AT_ONCE} questions are answered already")


@contextmanager
def _place() -> Iterator[bool]:
    places = _places
    placed = places.acquire(blocking=False)
    try:
        yield placed
    finally:
        if placed:
            places.release()


def after_fork() -> None:
    """In the child of a fork: the questions that are answered are the parent's."""
    global _places
    _places = threading.BoundedSemaphore(MOST_AT_ONCE)


class Question:
    """What an asker wants to know; `refused` is the answer where it is not to be had."""

    def __init__(self, body: bytes, caller: Caller, *, edge: bool | None) -> None:
        self.refused: Answer | None = None
        self.ids: list[WriteId] = []
        self._store: Store | None = None
        self._words = ""
        self._trust: TrustSettings = trust_settings().at_edge(edge)
        try:
            asked = json.loads(body)
            text, milliseconds, nonce = asked["lineage"], asked["timeout_ms"], asked["nonce"]
        except (ValueError, TypeError, KeyError, RecursionError):
            text = milliseconds = nonce = None
        is_nonce = isinstance(nonce, str) and _NONCE.fullmatch(nonce)
        is_time = type(milliseconds) is int and 0 <= milliseconds <= MOST_MS
        if not isinstance(text, str) or not is_nonce or not is_time:
            words = f"want a lineage, timeout_ms, 0 to {MOST_MS}, and a nonce of 32 hexadecimal digits"
            self.refused = refusal(400, words)
            return
        self._answers_trust = answers_trust(self._trust, nonce)
        self.timeout = milliseconds / 1000
        decision = caller.judge_request(text, self._trust)
        if not decision.accepted:
            self.refused = refusal(403, f"{decision.reason} {decision.about}".strip())
            return
        self._read(decision.text)

    def _read(self, text: str) -> None:
        try:
            lineage = Lineage.deserialize(text)
        except MalformedLineageError as error:
            self.refused = refusal(400, str(error))
            return
        if not lineage.stores:
            return  # a sign of life
        if len(lineage.stores) != 1:
            self.refused = refusal(400, "want the writes of one store")
            return
        [name] = lineage.stores
        self.ids = lineage.of_store(name)
        self._store = registry().get(name)
        if self._store is None:
            self._words = f"the owner has not registered the store {name}"
        elif self._store.kind == "delegated":
            self._words = f"the owner itself asks another service for {name}"
        elif self._store.mode is not Mode.ENFORCE:
            self._words = f"the owner has {name} in mode {self._store.mode}"

    def answer(self) -> Answer:
        """Block up to the question's time (DELEG-5)."""
        with _place() as placed:
            if self.refused is not None or not placed:
                return self.refused or _BUSY
            found = self._judged(wait(self._wanted(self.ids), 0))
            if self._waits_on(found):
                wait(self._wanted(self.ids[:1]), self.timeout)
                found = self._judged(wait(self._wanted(self.ids), 0))
            return self._said(found)

    async def answer_async(self) -> Answer:
        """`answer` for asyncio."""
        with _place() as placed:
            if self.refused is not None or not placed:
                return self.refused or _BUSY
            found = self._judged(await wait_async(self._wanted(self.ids), 0))
            if self._waits_on(found):
                await wait_async(self._wanted(self.ids[:1]), self.timeout)
                found = self._judged(await wait_async(self._wanted(self.ids), 0))
            return self._said(found)

    def _wanted(self, ids: Iterable[WriteId]) -> list[Any]:
        if self._store is None or self._words:
            return []
        servers = self._store.servers(own=False)  # once: the same for each write
        return [(server, write_id) for write_id in ids for server in servers]

    def _waits_on(self, found: Sequence[Visibility]) -> bool:
        undecided = all(each.verdict is Verdict.NOT_YET for each in found)
        return self.timeout > 0 and bool(found) and undecided

    def _judged(self, group: WaitGroup) -> list[Visibility]:
        """One answer a write: of all its servers the worst."""
        if self._words or self._store is None or not group.needs:
            return [unproven(self._words or "the owner has no server of this store")] * len(self.ids)
        judged = {(need.server, need.write_id) for need in group.needs if not need.divided}
        servers = self._store.servers(own=False)
        if not judged.issuperset((server, write_id) for server in servers for write_id in self.ids):  # BAR-65
            return [not_yet("the owner's servers of this store have just changed")] * len(self.ids)
        answers: dict[WriteId, Visibility] = {}
        for need in group.needs:
            if need.left_out:
                answer = not_yet(f"{need.server.address} does not answer the owner")
            else:
                answer = need.answer or NOT_YET
            worst = answers.get(need.write_id, VISIBLE)
            if worst.verdict is Verdict.VISIBLE or answer.verdict is Verdict.UNPROVEN:
                answers[need.write_id] = answer
        return [answers.get(each, NOT_YET) for each in self.ids]

    def _said(self, found: Sequence[Visibility]) -> Answer:
        visible = EMPTY
        others: dict[str, dict[str, str]] = {"not_yet": {}, "unproven": {}}
        for write_id, answer in zip(self.ids, found, strict=True):
            if answer.verdict is Verdict.VISIBLE:
                visible = visible.including(write_id)
            else:
                others[answer.verdict][Lineage([write_id]).serialize()] = answer.reason
        text = outgoing_text(visible.serialize(), self._answers_trust, None)
        return Answer(200, json.dumps({"visible": text, **others}).encode())
