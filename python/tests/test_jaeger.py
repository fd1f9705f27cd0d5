"""Services on Jaeger's clients and on OpenTelemetry hand a lineage to each other, each in a process (PROP-7)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import antipode
import pytest
import requests
from antipode import Lineage, WriteId

EPOCH = "8371ab90c2d4e6f1"
NAME = "a b%c~d"
"""A key whose text holds what Jaeger's clients escape."""
BEFORE = WriteId("blog posts", NAME, antipode.Opaque("v~1"))
AFTER = WriteId.position("user-acl", EPOCH, 57)
WORDS = {"tenant": "acme inc"}

pytestmark = pytest.mark.timeout(300)  # five processes begin with the first test

KINDS = ["jaeger", "jaeger-outside", "jaeger-plain", "opentelemetry", "opentelemetry-both"]
OURS = [kind for kind in KINDS if kind != "jaeger-plain"]


@contextmanager
def running(kind: str) -> Iterator[str]:
    """One service; its URL."""
    script = Path(__file__).with_name("jaeger_service.py")
    process = subprocess.Popen(
        [sys.executable, str(script), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()  # the end of the file where it fails, and the test's own limit
        assert port, "the service did not start"
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            process.stdout.close()


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """A service of each kind."""
    with ExitStack() as stack:
        yield {kind: stack.enter_context(running(kind)) for kind in KINDS}


def asked(*steps: dict[str, Any]) -> dict[str, Any]:
    """What the first service answers to a request that begins a trace."""
    response = requests.get(steps[0]["url"], params={"plan": json.dumps(steps)}, timeout=60)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize("second", OURS)
@pytest.mark.parametrize("first", OURS)
def test_a_lineage_goes_there_and_its_additions_come_back(urls: dict[str, str], first: str, second: str) -> None:
    """PROP-7 to PROP-10, PROP-13, PROP-14: beside the trace and the application's own baggage, which arrive as ever."""
    text = Lineage([BEFORE]).serialize()
    answer = asked(
        {"url": urls[first], "write": text, "words": WORDS},
        {"url": urls[second], "write": Lineage([AFTER]).serialize()},
    )
    there = answer["next"]
    assert there["came"] == text
    assert answer["lineage"] == Lineage([BEFORE, AFTER]).serialize()
    assert there["trace"] == answer["trace"]
    assert there["baggage"].pop("antipode", text) == text
    assert there["baggage"] == WORDS
    assert there["raw"].pop("uberctx-antipode") == text
    if first == "opentelemetry-both":
        assert there["raw"].pop("baggage").split(",")[-1] == f"antipode={text}"
    assert there["raw"] == {}


@pytest.mark.parametrize("last", OURS)
@pytest.mark.parametrize("first", OURS)
def test_a_service_with_a_jaeger_client_alone_passes_it_on(urls: dict[str, str], first: str, last: str) -> None:
    """PROP-7, PROP-11: as an item of its span's baggage, escaped as its client does."""
    text = Lineage([BEFORE]).serialize()
    answer = asked(
        {"url": urls[first], "write": text, "words": WORDS}, {"url": urls["jaeger-plain"]}, {"url": urls[last]}
    )
    middle, end = answer["next"], answer["next"]["next"]
    assert middle["came"] is None
    assert middle["baggage"] == {**WORDS, "antipode": text}
    assert end["came"] == text
    assert end["trace"] == answer["trace"]
    assert end["baggage"].pop("antipode", text) == text
    assert end["baggage"] == WORDS


def test_what_a_tracer_holds_from_before_is_replaced(urls: dict[str, str]) -> None:
    """PROP-3, TRUST-5: one outside of the middleware has the older lineage in its span, and writes it again."""
    text = Lineage([BEFORE]).serialize()
    answer = asked(
        {"url": urls["jaeger"], "write": text},
        {"url": urls["jaeger-outside"], "write": Lineage([AFTER]).serialize()},
        {"url": urls["opentelemetry"]},
    )
    assert answer["next"]["baggage"] == {"antipode": text}
    assert answer["next"]["next"]["came"] == Lineage([BEFORE, AFTER]).serialize()
