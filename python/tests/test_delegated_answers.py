"""What an owner answers: nothing but the right answer to its question passes (spec DELEG-4, DELEG-9)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import antipode
import antipode.delegated
import antipode.memory
import pytest
from answering_owner import EPOCH, NONCE, TEXT, WRITE, answering, http
from antipode import Lineage
from antipode._base.seal_keys import Keys
from antipode._facade.answering import answers_trust
from antipode._model.result import BarrierError, BarrierUnproven
from antipode._trust.trust import Purpose, Trust, TrustSettings, outgoing_text

NOT_SHOWN: dict[str, bytes] = {
    "the question itself": b"",
    "nothing": http(b""),
    "no object": http(b"[]"),
    "a text": http(b'"visible"'),
    "no members": http({}),
    "another member": http({"visible": 7, "not_yet": {}, "unproven": {}}),
    "lists": http({"visible": TEXT, "not_yet": [1], "unproven": {}}),
    "no lineage": http({"visible": "~", "not_yet": {}, "unproven": {}}),
    "a later position": http({"visible": f"1~posts..{EPOCH}.8", "not_yet": {}, "unproven": {}}),
    "another epoch": http({"visible": "1~posts..f.7", "not_yet": {}, "unproven": {}}),
    "another store": http({"visible": f"1~other..{EPOCH}.7", "not_yet": {}, "unproven": {}}),
    "shown by an error": http({"visible": TEXT, "not_yet": {}, "unproven": {}}, "500 Oh"),
    "shown by a redirect": http({"visible": TEXT, "not_yet": {}, "unproven": {}}, "302 Found"),
    "no HTTP": b"+OK\r\n\r\n",
    "deep": http(b"[" * 100_000),
}


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_no_answer_but_the_right_one_passes(name: str) -> None:
    """DELEG-9: and none hangs."""
    reply = NOT_SHOWN[name] or None
    with answering(lambda question: http(question) if reply is None else reply) as url:
        antipode.configure(replica_out_after=0.5)
        antipode.delegated.register("posts", owner=url)
        began = time.monotonic()
        with pytest.raises(BarrierError) as failed:
            antipode.barrier(Lineage([WRITE]), timeout=1)
        assert not failed.value.result.satisfied
        assert time.monotonic() - began < 10


AWAY: dict[str, bytes] = {
    "half an answer": http({"visible": TEXT, "not_yet": {}, "unproven": {}})[:-3],
    "a header alone": b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n",
    "half a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{",
    "an error without a length": b"HTTP/1.0 503 Busy\r\n\r\n<html>busy</html>",
    "an error": http(b"busy", "503 Busy"),
    "too many": http(b"later", "429 Later"),
}


@pytest.mark.parametrize("name", AWAY)
def test_an_owner_that_is_only_away_is_asked_again(name: str) -> None:
    """DELEG-11: a balancer's page, and a connection that broke; the barrier that waited meanwhile passes."""
    replies = [AWAY[name]] * 2
    owners = _Sealing(None)
    with answering(lambda question: replies.pop() if replies else owners.reply(question), end=True) as url:
        antipode.delegated.register("posts", owner=url)
        assert antipode.barrier(Lineage([WRITE]), timeout=20).complete
    assert replies == []


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n"])
def test_an_answer_that_drips_is_none(answer: bytes) -> None:
    """DELEG-13: each octet comes in time, the answer does not, and the owner is out of reach (BAR-26)."""
    antipode.configure(replica_out_after=0.6)
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.sendall(answer)
                while not ended.wait(0.05):
                    connection.sendall(b" ")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        antipode.delegated.register("posts", owner=f"http://127.0.0.1:{listener.getsockname()[1]}")
        began = time.monotonic()
        result = antipode.barrier(Lineage([WRITE]), timeout=30, on_timeout="proceed")
        assert time.monotonic() - began < 15
        assert result.stores["posts"].kind is antipode.UnprovenKind.CONNECTION
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)


def test_words_of_the_owner_are_escaped() -> None:
    """DELEG-13, OBS-12."""
    reason = "gone\n2026 ERROR root \x1b[31m" + "x" * 500
    reply = http({"visible": "1", "not_yet": {}, "unproven": {TEXT: reason}})
    with answering(lambda _: reply) as url:
        antipode.delegated.register("posts", owner=url)
        found = antipode.barrier(Lineage([WRITE]), timeout=20, on_timeout="proceed").stores["posts"]
    assert found.verdict is antipode.Verdict.UNPROVEN
    assert "gone\\n2026" in found.reason
    assert "\x1b" not in found.reason
    assert len(found.reason) < 400


def test_an_answer_without_a_length() -> None:
    """DELEG-11: one that refuses still says what to change."""
    with answering(lambda _: b"HTTP/1.0 404 Not Found\r\n\r\nnothing here", end=True) as url:
        antipode.delegated.register("posts", owner=url)
        with pytest.raises(BarrierUnproven, match="answers_waits=True"):
            antipode.barrier(Lineage([WRITE]), timeout=5, on_unproven="raise")


class _Sealing:
    """An owner that answers each question right, sealed by these keys; or with another text."""

    def __init__(self, keys: Keys | None, text: Callable[[dict[str, Any]], str] | None = None) -> None:
        self._trust = TrustSettings(Trust.KEY, keys=keys) if keys else TrustSettings()
        self._text = text

    def reply(self, question: dict[str, Any]) -> bytes:
        text = outgoing_text(TEXT, answers_trust(self._trust, question["nonce"]), None)
        return http({"visible": self._text(question) if self._text else text, "not_yet": {}, "unproven": {}})


KEYS = Keys({"one": b"k" * 32})
SEALED = TrustSettings(Trust.KEY, keys=KEYS)
SAID_ELSEWHERE: dict[str, Callable[[dict[str, Any]], str]] = {
    "the question's own text": lambda question: question["lineage"],
    "a lineage": lambda question: outgoing_text(TEXT, SEALED, Purpose.RESPONSE),
    "the answer to another question": lambda question: outgoing_text(TEXT, answers_trust(SEALED, NONCE), None),
    "no seal": lambda question: TEXT,
}


@pytest.mark.parametrize("name", SAID_ELSEWHERE)
def test_no_text_that_is_sealed_for_something_else_passes(name: str) -> None:
    """DELEG-4, DELEG-9: who has no key can show what he was shown."""
    antipode.configure(keys=KEYS, trust="key")
    with answering(_Sealing(KEYS, SAID_ELSEWHERE[name]).reply) as url:
        antipode.delegated.register("posts", owner=url)
        with pytest.raises(BarrierUnproven, match="is not believed: the seal is not valid"):
            antipode.barrier(Lineage([WRITE]), timeout=5, on_unproven="raise")


def test_the_answer_that_is_sealed_for_its_question_passes() -> None:
    """DELEG-4."""
    antipode.configure(keys=KEYS, trust="key")
    with answering(_Sealing(KEYS).reply) as url:
        antipode.delegated.register("posts", owner=url)
        assert antipode.barrier(Lineage([WRITE]), timeout=20).complete


def test_the_right_one_passes_and_is_asked_for_again() -> None:
    """DELEG-9, DELEG-12: also on a connection that the owner ends after each answer."""
    questions: list[dict[str, Any]] = []

    def reply(question: dict[str, Any]) -> bytes:
        questions.append(question)
        return http({"visible": TEXT, "not_yet": {}, "unproven": {}})

    with answering(reply) as url:
        antipode.delegated.register("posts", owner=f"{url}/")
        with antipode.scope(Lineage([WRITE])):
            for number in range(1, 4):
                assert antipode.barrier(timeout=20).complete
                assert len(questions) >= number
    assert all(set(question) == {"lineage", "timeout_ms", "nonce"} for question in questions)
    assert len({question["nonce"] for question in questions}) == len(questions)
    assert all(0 <= question["timeout_ms"] <= 100 for question in questions)
