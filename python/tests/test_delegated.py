"""Waits that the service which owns the store answers (spec DELEG)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import antipode
import antipode.delegated
import antipode.memory
import httpx
import pytest
from answering_owner import EPOCH, NONCE, TEXT, WRITE
from antipode import Lineage, Opaque, WriteId
from antipode._base.seal_keys import Keys
from antipode._facade.answering import MOST_OCTETS, PATH, Question
from antipode._model.errors import ConfigurationError
from antipode._model.result import BarrierError, BarrierTimeout, BarrierUnproven
from antipode._trust.trust import Caller
from antipode.delegated import _parts
from hypothesis import given
from hypothesis import strategies as st
from web import wait_until


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
