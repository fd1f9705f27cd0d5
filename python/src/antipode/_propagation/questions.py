"""Messages that are answered by another one: what the answer depends on joins the scope that asked (spec SCOPE-29)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from antipode._base.observers import events
from antipode._scope.scope import Scope, current_scope
from antipode.messages import message_scope

MOST: Final = 10_000
"""Messages that were sent and whose scope is open; and queues."""
_FEW: Final = 100
UNTOLD: Final = "a message was sent to be answered, and nobody can tell which one is its answer"
_NO_ANSWER: Final = object()
"""In the place of an identifier: no message is known as the answer."""


class Question:
    """One message of one scope, which is incomplete from `wait` until the answer has come."""

    __slots__ = ("_answered", "detail", "dropped", "holds", "reason", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.reason = "unanswered"
        self.detail = "a message that was sent was not answered"
        self.holds = True
        self.dropped = False
        self._answered = False

    @property
    def answered(self) -> bool:
        """Whether its answer has come."""
        return self._answered

    def wait(self) -> None:
        """Marks the scope until the answer has come."""
        if not self._answered and all(each is not self for each in self.scope.streams.open):
            self.scope.streams.expect(self)

    def answer(self) -> None:
        """The answer's lineage has joined the scope."""
        self._answered = True
        if not self.scope.closed:  # else it ended without
            self.scope.streams.forget(self)

    def lost(self, why: str) -> None:
        """As a response stream's: here nothing is dropped before its end."""


def join_message(
    scope: Scope,
    headers: Mapping[Any, Any] | str | None,
    *,
    lineage_in: bool | None = None,
    sender: str = "a message",
    look: Callable[[Scope], None] | None = None,
) -> None:
    """Joins what a message brings into a scope that has it, too. `look` may add what the message lacks."""
    with message_scope(headers, lineage_in=lineage_in, sender=sender) as own:
        if look is not None:
            look(own)
        scope.merge(own.recorded_lineage)
        for gap in own.gaps:
            scope.note_gap(gap.reason, gap.store, gap.detail)
        events.on_scopes_joined(own, scope)


class Questions:
    """The questions of this process, by the place where the answer comes and by what it bears.

    `is_private` says of a queue's name whether the broker made it, for answers alone.
    """

    def __init__(self, is_private: Callable[[Hashable], bool]) -> None:
        self._is_private = is_private
        self.after_fork()

    def after_fork(self) -> None:
        """A child has asked nothing."""
        self._lock = threading.RLock()  # what logs may publish
        self._open: dict[tuple[Hashable, Hashable], list[Question]] = {}
        self._consumed: dict[Hashable, None] = {}
        self._size = 0
        self._due = _FEW

    def ask(self, place: Hashable | None, identifier: str | None) -> OpenQuestion | None:
        """A message is about to be sent whose answer is to come there; None where nobody waits for one."""
        scope = current_scope()
        if scope is None or place is None:
            return None
        question = Question(scope)
        known_by: Hashable = _NO_ANSWER if identifier is None and not self._is_private(place) else identifier
        return OpenQuestion(self, place, known_by, question, is_kept=self._keep(place, known_by, question))

    def _keep(self, place: Hashable, identifier: Hashable, question: Question) -> bool:
        """Keep a question, unless its answer has no identifier and may be that of another scope which waits there."""
        key = place, identifier
        with self._lock:
            if identifier is None:
                self._forget(key, lambda each: each.answered or each.scope.closed)
                if any(each.scope is not question.scope for each in self._open.get(key, ())):
                    return False
            self._open.setdefault(key, []).append(question)
            self._size += 1
            self._bound()
            return True

    def _forget(self, key: tuple[Hashable, Hashable], which: Callable[[Question], bool]) -> None:
        held = self._open.get(key)
        if held is not None:
            left = [each for each in held if not which(each)]
            self._size -= len(held) - len(left)
            if left:
                self._open[key] = left
            else:
                del self._open[key]

    def _bound(self) -> None:
        """Forget those of closed scopes; where there are too many of open ones, the eldest, which stay incomplete."""
        if self._size <= self._due:
            return
        for key in list(self._open):
            self._forget(key, lambda each: each.scope.closed)
        if self._size > MOST:
            for key in list(self._open):
                for each in self._open[key]:
                    if not each.answered:
                        each.scope.mark_incomplete("unanswered", detail=UNTOLD)
                self._forget(key, lambda _: True)
                if self._size <= MOST - MOST // 10:  # not one by one: each time all are looked at
                    break
        self._due = min(MOST, max(_FEW, 2 * self._size))

    def consuming(self, place: Hashable) -> None:
        """This process takes messages there from now on; a question may have been sent before."""
        with self._lock:
            if self._consumed.pop(place, self) is self:
                waiting = [(key[1], each) for key, all_ in self._open.items() if key[0] == place for each in all_]
            else:
                waiting = []
            if isinstance(place, str):  # a channel's own place is consumed before anything is asked
                self._consumed[place] = None
                if len(self._consumed) > MOST:
                    del self._consumed[next(iter(self._consumed))]
            is_private = self._is_private(place)
            for identifier, each in waiting:
                if identifier is _NO_ANSWER:
                    each.scope.mark_incomplete("unanswered", detail=UNTOLD)
                elif is_private:
                    each.wait()
            self._forget((place, _NO_ANSWER), lambda _: True)

    def came(self, place: Hashable, identifier: str | None, join: Callable[[Scope], None]) -> None:
        """A message has come there: each open scope that asked so may be meant, the first before all."""
        with self._lock:
            held = list(self._open.get((place, identifier), ()))
        for scope in dict.fromkeys(each.scope for each in held):
            if not scope.closed:  # else nobody waits for it: it is a message as others are
                join(scope)
        with self._lock:
            first = next((each for each in held if not each.answered), None)
            if first is not None:
                first.answer()

    def _withdraw(self, asking: OpenQuestion) -> None:
        with self._lock:
            self._forget((asking.place, asking.identifier), lambda each: each is asking.question)

    def _sent(self, asking: OpenQuestion) -> None:
        private, question = self._is_private(asking.place), asking.question
        with self._lock:
            consumed = not isinstance(asking.place, str) or asking.place in self._consumed
            if asking.place in self._consumed:  # what is used is forgotten last
                self._consumed[asking.place] = self._consumed.pop(asking.place)
            is_known = asking.is_kept and asking.identifier is not _NO_ANSWER
            if is_known and private and consumed:
                question.wait()
        if not is_known and (private or consumed):  # another process may consume a queue of a name of its own
            question.scope.mark_incomplete("unanswered", detail=UNTOLD)
            self._withdraw(asking)


class OpenQuestion:
    """One question on its way."""

    __slots__ = ("_questions", "identifier", "is_kept", "place", "question")

    def __init__(
        self, questions: Questions, place: Hashable, identifier: Hashable, question: Question, *, is_kept: bool
    ) -> None:
        self._questions = questions
        self.place = place
        self.identifier = identifier
        self.question = question
        self.is_kept = is_kept

    def sent(self) -> None:
        """It has left."""
        self._questions._sent(self)

    def failed(self, *, not_sent: bool) -> None:
        """It was not sent, so that nobody answers; or nobody knows (PROP-27)."""
        self._questions._withdraw(self)
        if not not_sent:
            self.question.scope.mark_incomplete("unanswered", detail=UNTOLD)
