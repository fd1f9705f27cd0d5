"""The reader of texts against one that is written out by hand, on texts that are nearly right (WIRE-1 to WIRE-30)."""

from __future__ import annotations

import time
from urllib.parse import quote, unquote

import pytest
from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slow_reader import judged

unhurried = settings(deadline=None)  # other processes may have the cores
NAMES = st.sampled_from(
    ["s", "t", "a-b", "k", "e", "_2E", "_FF_00", "_", "", "_41", "_2e", "_2", "9", "é", "a" * 63, "a" * 64, "b" * 33]
)
COUNTERS = st.sampled_from(
    [
        "0",
        "1",
        "42",
        "05",
        "00",
        "-1",
        "+1",
        "1e3",
        "1_0",
        "²",
        "٣",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "20000000000000000000",
        "99999999999999999999",
        "",
    ]
)
GOOD = st.builds(
    lambda store, key, epoch, counter: f"{store}.{key}.{epoch}.{counter}",
    st.sampled_from(["s", "t", "a-b", "_2E", "_00"]),
    st.sampled_from(["", "k", "_FF_00"]),
    st.sampled_from(["e", "E-1", "_C3_A9"]),
    st.integers(0, 2**64 - 1),
)
FIELDS = st.lists(st.one_of(NAMES, COUNTERS), min_size=1, max_size=8).map(".".join)
EXTENSION = st.builds(
    lambda tag, rest: ".".join(["_", tag, *rest]),
    st.sampled_from(["i", "h", "x", "branch", "", "I", "x-y", "2"]),
    st.lists(NAMES, max_size=3),
)
NEARLY = st.lists(st.one_of(GOOD, GOOD, GOOD, FIELDS, EXTENSION), max_size=6).map(lambda parts: "~".join(["1", *parts]))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A text that is nearly right, with one to three small wounds."""
    text = draw(NEARLY)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        wound = draw(st.sampled_from(["", "~", ".", "_", "0", "-", "%7E", " ", "\n", "\x00", "é", ";", ",", "h", "I"]))
        text = text[:at] + wound + text[at + draw(st.integers(0, 2)) :]
    return text


@unhurried
@given(mutated())
@example("1~s..e.1\n")
@example("1~s")
@example("1~.k.e.1")
@example("1~s.._.x")
@example("1~s...5")
@example("1~_.i~s..e.1")
@example("1~s..e.1~")
@example("1~s..e.1~s..f.2")
@example("1~_.h.k~_.x")
@example("1~_.h.a~_.h.b")
@example("")
def test_nearly_right(text: str) -> None:
    judged(text)


@unhurried
@given(st.one_of(st.text(max_size=40), st.text("1~._aAe05-", max_size=40).map("1~".__add__)))
def test_anything(text: str) -> None:
    judged(text)


@unhurried
@given(st.lists(GOOD, min_size=1, max_size=4, unique_by=lambda part: part.partition(".")[0]))
def test_right_texts_are_taken(parts: list[str]) -> None:
    """The generators above do reach what is taken: this one makes nothing else."""
    assert judged("~".join(["1", *parts]))


@unhurried
@given(st.one_of(mutated(), st.text(max_size=60)))
def test_deserialize_raises_one_kind_of_error(text: str) -> None:
    """WIRE-25: malformed text is MalformedLineageError and nothing else."""
    try:
        lineage = Lineage.deserialize(text)
    except MalformedLineageError:
        return
    assert len(lineage) <= wire.MAX_ENTRIES
    assert repr(lineage)


@unhurried
@given(st.lists(st.one_of(mutated(), st.text(max_size=60), mutated().map(quote)), max_size=4))
def test_unwrapping_a_header(values: list[str]) -> None:
    """WIRE-28 to WIRE-30: it never raises; what is there and says nothing is one text that nobody can read."""
    texts = wire.unwrap_header(values)
    assert bool(texts) is bool(values)
    for text in texts:
        assert text == text.strip(wire.WHITE_SPACE)
    if "" in texts:
        assert texts == [""]
        items = [item.partition(";")[0] for value in values for item in value.split(",")]
        assert not any(unquote(item.strip(" \t\r\n"), "latin-1").strip(" \t\r\n") for item in items)


@unhurried
@given(st.lists(GOOD, min_size=1, max_size=4, unique_by=lambda part: part.partition(".")[0]), st.booleans())
def test_escaped_header(parts: list[str], everything: bool) -> None:
    """WIRE-28: a value that some propagator has percent-encoded reads as the text."""
    text = "~".join(["1", *parts])
    escaped = "".join(f"%{ord(c):02x}" for c in text) if everything else quote(text, safe="")
    assert wire.unwrap_header([f" {escaped} ;p=1, , {text}\r\n"]) == [text, text]


@pytest.mark.parametrize(
    "text",
    [
        "1~" + "a" * 4000,
        "1~" + "_2E" * 1300,
        "1~s." + "_" * 4000,
        "1" + "~s..e.1" * 580,
        "1~s" + "..e.1" * 800,
        "1~s" + ".k.e.1" * 680 + "x",
        "1~s.k._." + "_2E" * 1350 + "_",
        "1~s" + "..e.18446744073709551616" * 160,
        "1" + "~_.i" * 1000,
        "1" + "~_.x" * 1000 + "_",
        "1" + "".join(f"~{n}..e.1" for n in range(400)) + "~399..e.1",
        "1" + "".join(f"~{n}..e.1" for n in range(48)) + "~",
        "1" + "~" * 4000,
        "1~" + "." * 4000,
        "1~s..e.1" * 100_000,
        "~" * 1_000_000,
    ],
    ids=range(16),
)
def test_hostile_texts_take_no_time(text: str) -> None:
    """WIRE-27: no text makes the reader backtrack; of the thread's own time, the least of several runs."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        judged_by_reader(text)
        best = min(best, time.thread_time() - start)
    assert best < 0.02


def judged_by_reader(text: str) -> None:
    for value in (text, text[:500], text + "!", text[:500] + "!"):
        try:
            Lineage.deserialize(value)
        except MalformedLineageError:
            continue
