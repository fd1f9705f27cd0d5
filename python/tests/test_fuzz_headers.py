"""Fuzzing of middlewares, hooks and messages by what headers hold: `make fuzz` (SECONDS, 600 by default)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import antipode
import antipode.asgi
import antipode.wsgi
import pytest
from antipode import Lineage, WriteId
from antipode.propagation import extract_request, extract_response, inject_request, inject_response, uninstrument
from antipode.testing import isolated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry import baggage, propagate

SHARE = 0.5  # of the time; the parser's fuzzing has the other half
MINE = Lineage([WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)])
THEIRS = Lineage([WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1041), WriteId("acl", "k", antipode.Opaque("m"))])

words = st.sampled_from(
    [
        "antipode",
        "%61ntipode",
        "ANTIPODE",
        "=",
        ",",
        ";",
        "~",
        ".",
        "_.i",
        "_.h.one.99999999999.",
        "1",
        "1~",
        "%7E",
        "%",
        "%zz",
        "+",
        '"',
        "\\",
        "for=",
        "by=",
        "unix:",
        "203.0.113.9",
        "10.0.0.1",
        "[::1]:80",
        "blog-posts",
        "é",
        "\x00",
        "\x85",
        "\ud800",
        "\t",
        " ",
        "x" * 4100,
        MINE.serialize(),
        THEIRS.serialize(),
    ]
)
values = st.one_of(st.lists(words, max_size=12).map("".join), st.text(max_size=200))
names = st.sampled_from(
    [
        "baggage",
        "Baggage",
        "antipode-lineage",
        "antipode_lineage",
        "uberctx-antipode",
        "uber-trace-id",
        "traceparent",
        "x-forwarded-for",
        "forwarded",
        "te",
        "cache-control",
        "other",
    ]
)
headers = st.lists(st.tuples(names, values), max_size=8)
peers = st.one_of(
    st.none(), st.sampled_from(["127.0.0.1", "203.0.113.9", "::1", "unix:", "testclient"]), st.text(max_size=20)
)
trusts = st.sampled_from(["private", "all", "none", "key"])


def for_a_while(test: Callable[[], None]) -> None:
    """Runs a property again and again, each time with other examples, until the time is over."""
    logging.disable(logging.WARNING)  # what is logged is other tests' affair, and a million lines are kept
    end = time.monotonic() + SHARE * float(os.environ.get("SECONDS", "600")) / 3
    try:
        test()
        while time.monotonic() < end:
            test()
    finally:
        logging.disable(logging.NOTSET)


def octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


lasting = settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_the_four_functions_and_messages() -> None:
    """PROP-12, PROP-23: nothing raises, and what leaves can be read again."""

    @lasting
    @given(headers, peers, trusts, st.sampled_from(["enforce", "dry-run", "off"]))
    def once(found: list[tuple[str, str]], peer: str | None, trust: str, mode: str) -> None:
        with isolated():
            antipode.configure(trust=trust, mode=mode, keys={"one": b"k" * 32} if trust == "key" else None)
            with extract_request(found, peer) as scope:
                antipode.append(*MINE)
                extract_response(found, peer or "b")
                for host in ("b", peer or "", "api.example.com"):
                    out = dict(found)
                    inject_request(out, host)
                    if host == "api.example.com" and trust != "all":
                        assert "antipode-lineage" not in {name.lower() for name in out}
                back: dict[str, str] = {}
                inject_response(back)
                Lineage.deserialize(scope.lineage.serialize())
                Lineage.deserialize(back.get("antipode-lineage", "1"))
            with antipode.message_scope(dict(found)) as scope:
                Lineage.deserialize(scope.lineage.serialize())
            with antipode.message_scope(found[0][1] if found else None) as scope:
                Lineage.deserialize(scope.lineage.serialize())

    for_a_while(once)


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_the_middlewares() -> None:
    """PROP-23, TRUST-5: always an answer, and the application never sees a lineage in its headers or baggage."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        check(scope["headers"])
        antipode.append(*MINE)
        await send({"type": "http.response.start", "status": 200, "headers": scope["headers"]})
        await send({"type": "http.response.body", "body": b"done"})

    def wsgi(environ: Any, start_response: Any) -> Iterable[bytes]:
        assert "HTTP_ANTIPODE_LINEAGE" not in environ
        antipode.append(*MINE)
        start_response("200 OK", [("x", "y")])
        return [b"done"]

    def check(raw: list[tuple[bytes, bytes]]) -> None:
        lines = {name.decode(): value.decode("latin-1") for name, value in raw}
        assert "antipode" not in baggage.get_all(propagate.extract(lines))
        assert not {name.lower() for name in lines} & {"antipode-lineage", "uberctx-antipode"}

    async def run(scope: dict[str, Any], edge: bool) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        await antipode.asgi.Middleware(asgi, edge=edge)(scope, receive, send)
        return sent

    @lasting
    @given(headers, peers, trusts, st.booleans())
    def once(found: list[tuple[str, str]], peer: str | None, trust: str, edge: bool) -> None:
        with isolated():
            antipode.configure(trust=trust, keys={"one": b"k" * 32} if trust == "key" else None)
            raw = [(name.encode(), octets(value)) for name, value in found]
            client = None if peer is None else (peer, len(found))
            sent = asyncio.run(run({"type": "http", "headers": raw, "client": client}, edge))
            assert sent[0]["status"] == 200
            answered = [value for name, value in sent[0]["headers"] if name == b"antipode-lineage"]
            assert not (edge and answered)
            environ: dict[str, Any] = {
                f"HTTP_{name.upper().replace('-', '_')}": octets(value).decode("latin-1") for name, value in found
            }
            environ["REMOTE_ADDR"] = peer or ""
            started: list[Any] = []
            body = antipode.wsgi.Middleware(wsgi, edge=edge)(environ, lambda *args: started.append(args))  # type: ignore[arg-type]
            assert list(body) == [b"done"]
            body.close()  # type: ignore[attr-defined]
            assert started[0][0] == "200 OK"

    try:
        for_a_while(once)
    finally:
        uninstrument()


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_a_scope_that_was_taken_over_is_never_emptied_silently() -> None:
    """What came from one of ours is there, or the scope says that something is missing."""

    @lasting
    @given(headers, st.integers(0, 8), st.sampled_from(["baggage", "antipode-lineage", "uberctx-antipode"]))
    def once(found: list[tuple[str, str]], place: int, carrier: str) -> None:
        inside = [(name, value) for name, value in found if "forwarded" not in name.lower()]
        text = THEIRS.serialize()
        inside.insert(place, (carrier, f"antipode={text}" if carrier == "baggage" else text))
        with isolated(), extract_request(inside, "10.0.0.1") as scope:
            assert scope.lineage >= THEIRS

    for_a_while(once)
