"""Waits that the service which owns the store answers (spec DELEG)."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import antipode
import antipode.delegated
import antipode.memory
import httpx
import pytest
from antipode import Lineage, Opaque, WriteId
from antipode.answering import MOST_OCTETS, PATH, Question, answers_trust
from antipode.delegated import _parts
from antipode.errors import BarrierError, BarrierTimeout, BarrierUnproven, ConfigurationError
from antipode.seal import Keys
from antipode.trust import Caller, Purpose, Trust, TrustSettings, outgoing_text
from hypothesis import given
from hypothesis import strategies as st
from web import wait_until

EPOCH = "8371ab90c2d4e6f1"
WRITE = WriteId.position("posts", EPOCH, 7)
TEXT = Lineage([WRITE]).serialize()
NONCE = "0123456789abcdef" * 2


class Owner:
    """The service that owns the store `posts`, in a process of its own."""

    def __init__(self, kind: str, *words: str, environment: dict[str, str] | None = None) -> None:
        self._words = [sys.executable, str(Path(__file__).with_name("delegated_owner.py")), kind, *words]
        self._environment = environment
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        assert process.stdout is not None
        self.url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        return process

    def do(self, path: str) -> str:
        return httpx.get(f"{self.url}/{path}", timeout=20).raise_for_status().text

    def write(self, key: str) -> Lineage:
        return Lineage.deserialize(self.do(f"write/{key}"))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def owning(kind: str, *words: str, environment: dict[str, str] | None = None) -> Iterator[Owner]:
    owner = Owner(kind, *words, environment=environment)
    try:
        yield owner
    finally:
        owner.end()


@pytest.fixture(scope="module", params=["asgi", "wsgi"])
def shared(request: pytest.FixtureRequest) -> Iterator[Owner]:
    with owning(request.param) as owner:
        yield owner


@pytest.fixture
def owner(shared: Owner) -> Iterator[Owner]:
    """One that is asked for the store `posts`."""
    antipode.delegated.register("posts", owner=shared.url)
    yield shared
    shared.do("heal")


def test_a_barrier_waits_until_the_owner_shows_the_write(owner: Owner) -> None:
    """DELEG-5: the owner waits, too."""
    owner.do("freeze")
    lineage = owner.write("one")
    with pytest.raises(BarrierTimeout) as failed:
        antipode.barrier(lineage, timeout=0.3)
    assert failed.value.result.stores["posts"].verdict == "timed_out"
    with ThreadPoolExecutor(1) as threads:
        passed = threads.submit(antipode.barrier, lineage, timeout=20)
        asked = int(owner.do("asked"))
        wait_until(lambda: int(owner.do("asked")) > asked, "the owner is asked")
        assert not passed.done()
        owner.do("heal")
        result = passed.result(20)
    assert result.satisfied
    assert result.complete
    assert result.stores["posts"].verdict == "visible"


async def test_the_async_form(owner: Owner) -> None:
    result = await antipode.barrier_async(owner.write("two"), timeout=20)
    assert result.complete


def test_looking_asks_once(owner: Owner) -> None:
    """`timeout=0`."""
    owner.do("freeze")
    lineage = owner.write("three")
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0)


def test_however_many_wait_there_is_one_question_at_a_time(owner: Owner) -> None:
    """DELEG-10."""
    owner.do("freeze")
    lineages = [owner.write(f"many-{number}") for number in range(20)]
    before = int(owner.do("asked"))
    began = time.monotonic()
    with ThreadPoolExecutor(200) as threads:
        passed = [threads.submit(antipode.barrier, lineages[number % 20], timeout=30) for number in range(200)]
        wait_until(lambda: int(owner.do("asked")) - before >= 5, "the owner is asked")
        owner.do("heal")
        assert all(each.result(30).complete for each in passed)
    slices = (time.monotonic() - began) / 0.1
    # Each position by itself once it may be there, and meanwhile a slice at a time; not one a waiter and slice.
    assert int(owner.do("asked")) - before <= slices + 2 * len(lineages) + 20


def test_what_the_owner_cannot_prove_is_unproven_here() -> None:
    with owning("wsgi") as owner:
        antipode.delegated.register("posts", owner=owner.url)
        owner.do("freeze")
        lost = owner.write("lost")
        owner.do("promote")
        owner.write("after")
        with pytest.raises(BarrierError) as failed:
            antipode.barrier(lost, timeout=5, on_unproven="raise")
        assert not failed.value.result.satisfied


def test_an_owner_that_is_away_is_out_of_reach() -> None:
    """DELEG-11: the deadline holds, whatever happens to it."""
    with owning("asgi") as owner:
        antipode.configure(replica_out_after=0.3)
        antipode.delegated.register("posts", owner=owner.url)
        lineage = owner.write("one")
        assert antipode.barrier(lineage, timeout=20).complete
        owner.process.kill()
        owner.process.wait()
        began = time.monotonic()
        with pytest.raises(BarrierError):
            antipode.barrier(lineage, timeout=2)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("words", "says"), [(["silent"], "answers_waits=True"), (["edge"], "does not believe this service")]
)
@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_an_owner_that_will_not_answer_says_why(kind: str, words: list[str], says: str) -> None:
    """DELEG-1, DELEG-3, DELEG-11."""
    with owning(kind, *words) as owner:
        antipode.delegated.register("posts", owner=owner.url)
        with pytest.raises(BarrierUnproven, match=says):
            antipode.barrier(Lineage([WRITE]), timeout=5, on_unproven="raise")


@pytest.mark.parametrize("believed", [True, False])
def test_under_seals(tmp_path: Path, believed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """DELEG-3, DELEG-4, DELEG-9: both texts are sealed."""
    file = tmp_path / "keys"
    file.write_text(f"one {base64.b64encode(b'k' * 32).decode()}\n")
    import os

    with owning("wsgi", environment={**os.environ, "ANTIPODE_KEYS_FILE": str(file)}) as owner:
        antipode.configure(keys=Keys({"one": (b"k" if believed else b"x") * 32}), trust="key")
        text = owner.do("write/one")
        antipode.delegated.register("posts", owner=owner.url)
        if believed:
            assert antipode.barrier(Lineage.deserialize(text), timeout=20).complete
            return
        with pytest.raises(BarrierUnproven, match="does not believe this service"):
            antipode.barrier(Lineage.deserialize(text), timeout=5, on_unproven="raise")


def test_a_store_that_the_owner_does_not_have(owner: Owner) -> None:
    """DELEG-7."""
    antipode.delegated.register("others", owner=owner.url)
    with pytest.raises(BarrierUnproven, match="the owner has not registered the store others"):
        antipode.barrier(Lineage([WriteId.position("others", EPOCH, 7)]), timeout=5, on_unproven="raise")


def told(lineage: Lineage, milliseconds: int = 0) -> dict[str, Any]:
    """What this process says as an owner."""
    body = json.dumps({"lineage": lineage.serialize(), "timeout_ms": milliseconds, "nonce": NONCE}).encode()
    answer = Question(body, Caller("127.0.0.1"), edge=None).answer()
    assert answer.status == 200
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_a_server_that_does_not_answer_the_owner_holds_a_pass_up() -> None:
    """DELEG-6: though a barrier of the owner itself leaves it out and passes."""
    antipode.configure(replica_out_after=0.2)
    store = antipode.memory.Store("posts", regions=["a", "b", "c"])
    store.register("b", "c")
    with antipode.scope() as scope:
        store.client("a").set("k", "v")
        lineage = scope.lineage
    wait_until(lambda: told(lineage)["visible"] == lineage.serialize(), "all have it")
    store.stop("c")
    text = lineage.serialize()
    wait_until(lambda: "does not answer the owner" in told(lineage, 50)["not_yet"].get(text, ""), "it is left out")
    assert antipode.barrier(lineage, timeout=20).satisfied


@pytest.mark.parametrize("mode", ["dry-run", "off"])
def test_an_owner_that_enforces_nothing_proves_nothing(mode: str) -> None:
    """DELEG-7."""
    antipode.memory.Store("posts", regions=["a", "b"]).register("b")
    antipode.configure(mode=mode)
    assert f"the owner has posts in mode {mode}" in told(Lineage([WRITE]))["unproven"][TEXT]


def test_owners_do_not_ask_each_other() -> None:
    """DELEG-7."""
    antipode.delegated.register("posts", owner="http://127.0.0.1:9")
    assert "itself asks another service" in told(Lineage([WRITE]))["unproven"][TEXT]


# The question


def asked(owner: Owner, body: bytes | str, method: str = "POST") -> httpx.Response:
    return httpx.request(method, owner.url + PATH, content=body, timeout=20)


def test_questions_of_another_form(owner: Owner) -> None:
    """DELEG-2."""
    assert asked(owner, "", "GET").status_code == 405
    assert asked(owner, " " * (MOST_OCTETS + 1)).status_code == 413
    right = {"lineage": TEXT, "timeout_ms": 0, "nonce": NONCE}
    bodies: list[Any] = ["", "1", "[]", "{}", {**right, "lineage": 7}]
    bodies += [{name: right[name] for name in right if name != missing} for missing in right]
    bodies += [{**right, "timeout_ms": bad} for bad in (-1, 1001, True, 1.5, "1", None)]
    bodies += [{**right, "lineage": bad} for bad in ("", "~", "1~a..e.7~b..e.7", "2~a..e.7")]
    bodies += [{**right, "nonce": bad} for bad in ("", NONCE[1:], NONCE.upper(), NONCE + "0", 7, None)]
    for body in bodies:
        answer = asked(owner, body if isinstance(body, str) else json.dumps(body))
        assert answer.status_code == 400, body
        assert answer.json()["error"]
    answer = asked(owner, json.dumps({**right, "lineage": "1"}))
    assert (answer.status_code, answer.json()) == (200, {"visible": "1", "not_yet": {}, "unproven": {}})


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
def test_no_question_breaks_the_owner(body: bytes) -> None:
    answer = Question(body, Caller("127.0.0.1"), edge=None).answer()
    assert answer.status in (200, 400)
    json.loads(answer.body)


def test_forwarded_from_outside_is_not_believed(owner: Owner) -> None:
    """DELEG-3."""
    body = json.dumps({"lineage": TEXT, "timeout_ms": 0, "nonce": NONCE})
    answer = httpx.post(owner.url + PATH, content=body, headers={"x-forwarded-for": "203.0.113.7"}, timeout=20)
    assert answer.status_code == 403


# The answer


@contextmanager
def answering(reply: Callable[[dict[str, Any]], bytes], *, end: bool = False) -> Iterator[str]:
    """An owner that answers each question so, and ends the connection then; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            while line := lines.readline():
                length = 0
                while (line := lines.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                connection.sendall(reply(json.loads(lines.read(length))))
                if end:
                    return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)


def http(body: bytes | dict[str, Any], status: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


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


def test_an_owner_answers_so_many_questions_at_once(owner: Owner) -> None:
    """DELEG-13: whoever asks past that is to come again, and the application's own pages are answered."""
    lineage = owner.write("first")
    antipode.delegated.register("posts", owner=owner.url)
    assert antipode.barrier(lineage, timeout=20).satisfied
    owner.do("freeze")
    question = {"lineage": owner.write("k").serialize(), "timeout_ms": 1000, "nonce": NONCE}

    client = httpx.Client(timeout=20)

    def ask(_: int) -> httpx.Response:
        return client.post(owner.url + PATH, json=question)

    with ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(ask, range(60)))
    busy = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert {answer.headers["retry-after"] for answer in busy} == {"1"}
    assert ask(0).status_code == 200
    client.close()


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


# What is registered


@pytest.mark.parametrize(
    "owner",
    ["posts", "ftp://posts", "http://", "http://a:x", "http://a/?b", "http://me:secret@a", "http://example.org"],
)
def test_no_such_owner(owner: str) -> None:
    """DELEG-8."""
    with pytest.raises(ConfigurationError) as refused:
        antipode.delegated.register("posts", owner=owner)
    assert "secret" not in str(refused.value)


IDS = st.lists(
    st.builds(WriteId.position, st.just("posts"), st.sampled_from(["e", "f"]), st.integers(0, 5))
    | st.builds(
        lambda key, mark: WriteId("posts", key, Opaque(mark)),
        st.text("abc", min_size=1, max_size=200),
        st.text("xyz", min_size=1),
    ),
    max_size=40,
    unique=True,
)


@given(IDS)
def test_every_write_is_in_one_question_that_holds_it(ids: list[WriteId]) -> None:
    parts = list(_parts(ids))
    assert [each for part in parts for each in part] == ids
    for part in parts:
        if len(part) > 1:
            assert set(Lineage.deserialize(Lineage(part).serialize()).of_store("posts")) == set(part)
