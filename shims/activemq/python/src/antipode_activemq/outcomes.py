"""What became of tracked messages: sent, confirmed, committed, refused, or nobody knows (SHIM-6, SHIM-11)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import stomp
from antipode import Opaque
from antipode.shim import Write
from stomp.exception import NotConnectedException

LISTENER: Final = "\0antipode"
"""Its name on the connection's transport; listeners are called in the order of their names."""
OWN_RECEIPTS: Final = "antipode-"
"""Receipts that we asked for begin so; the application's listeners are not told of them."""
_REFUSED: Final = ("is not authorized to write to", "is not authorized to create")
_Sent = list[tuple[Write, Opaque]]


class Outcomes(stomp.ConnectionListener):  # type: ignore[misc]
    """The tracked messages of one plain connection whose outcome is still open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receipts: dict[str, _Sent] = {}
        self._transactions: dict[str, _Sent] = {}
        self._asked: dict[str, threading.Event] = {}
        self._errors: dict[str, str] = {}

    @classmethod
    def of(cls, plain: Any) -> Outcomes:
        """Those of a connection; one object for all that wrap it."""
        found = plain.transport.get_listener(LISTENER)
        if not isinstance(found, Outcomes):
            found = cls()
            plain.transport.set_listener(LISTENER, found)
        return found

    # The application's thread

    @contextmanager
    def sending(self, headers: Mapping[str, Any], write: Write, version: Opaque) -> Iterator[None]:
        """Round one SEND: pending until its transaction's commit, else its receipt; without both, until it is sent."""
        transaction, receipt = _text(headers.get("transaction")), _text(headers.get("receipt"))
        held = self._transactions if transaction else self._receipts
        name, entry = transaction or receipt, (write, version)
        if name:
            with self._lock:  # before it is sent: the receipt may be faster than we are
                held.setdefault(name, []).append(entry)
        try:
            yield
        except BaseException as error:
            if name:
                with self._lock:
                    if entry in held.get(name, ()):
                        held[name].remove(entry)
            if isinstance(error, NotConnectedException):
                write.abandon()  # it never left
            else:
                write.outcome_unknown()
            raise
        if not name:
            write.record(version)

    @contextmanager
    def committing(self, transaction: object, receipt: object) -> Iterator[None]:
        """Round one COMMIT: it counts when its receipt comes; without, when it has been sent."""
        name, asked = _text(transaction), _text(receipt)
        with self._lock:
            sent = self._transactions.pop(name, []) if name else []
            for write, _ in sent:
                write.join_committer()
            if asked and sent:
                self._receipts.setdefault(asked, []).extend(sent)
        try:
            yield
        except BaseException:
            with self._lock:
                if asked:
                    self._receipts.pop(asked, None)
            for write, _ in sent:
                write.outcome_unknown()
            raise
        if not asked:
            for write, version in sent:
                write.record(version)

    def aborted(self, transaction: object) -> None:
        """ABORT was sent, or will never be: the broker drops what it kept back."""
        with self._lock:
            sent = self._transactions.pop(_text(transaction) or "", [])
        for write, _ in sent:
            write.abandon()

    def ask(self, receipt: str) -> threading.Event:
        """A receipt of our own is about to be asked for; the event tells that an answer has come."""
        event = self._asked[receipt] = threading.Event()
        return event

    def answer(self, receipt: str) -> str | None:
        """The error that came in place of our own receipt, if one did; forgets the receipt."""
        self._asked.pop(receipt, None)
        return self._errors.pop(receipt, None)

    # The receiver's thread

    def on_receipt(self, frame: Any) -> None:
        """The broker has taken what asked for this receipt. Called again for the same one it does nothing."""
        receipt = frame.headers.get("receipt-id", "")
        if event := self._asked.get(receipt):
            event.set()
            return
        with self._lock:
            sent = self._receipts.pop(receipt, [])
        for write, version in sent:
            write.record(version)

    def on_error(self, frame: Any) -> None:
        """The broker has refused something; what it does not say of itself is in doubt."""
        receipt, words = frame.headers.get("receipt-id", ""), str(frame.headers.get("message", ""))
        if event := self._asked.get(receipt):
            self._errors[receipt] = words or "refused"
            event.set()
            return
        with self._lock:
            sent = self._receipts.pop(receipt, [])
        for write, _ in sent:
            if any(refusal in words for refusal in _REFUSED):
                write.abandon()
            else:
                write.outcome_unknown()

    def on_disconnected(self) -> None:
        """No receipt comes any more; what was not committed is rolled back by the broker."""
        with self._lock:
            doubtful = [entry for sent in self._receipts.values() for entry in sent]
            dropped = [entry for sent in self._transactions.values() for entry in sent]
            self._receipts.clear()
            self._transactions.clear()
        for write, _ in doubtful:
            write.outcome_unknown()
        for write, _ in dropped:
            write.abandon()
        for receipt, event in list(self._asked.items()):
            self._errors[receipt] = "the connection has ended"
            event.set()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
