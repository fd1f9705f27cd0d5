"""The proofs and the classification of statements, without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from antipode import Verdict
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import UnprovenKind
from antipode_postgresql.judging import FOR_EVER, History, ServerState, judge, parse_history
from antipode_postgresql.positions import Epoch, epoch_of, lsn_of, number_of
from antipode_postgresql.statements import Kind, classify, may_read
from antipode_postgresql.targets import target_of
from antipode_postgresql.unsure import QUESTION, pattern_of, unsure_words
from hypothesis import given
from hypothesis import strategies as st

SYSTEM = 7512345678901234567
WORDS = {(SYSTEM, 1): "one", (SYSTEM, 2): "two", (SYSTEM, 3): "three"}
THIRD = History(3, {1: 1000, 2: 2000})


def seen(
    reached: int, *histories: History, words: Mapping[tuple[int, int], str] = WORDS, **more: object
) -> ServerState:
    return ServerState(SYSTEM, True, reached, histories, words, **more)  # type: ignore[arg-type]


def name(timeline: int, word: str, system: int = SYSTEM) -> str:
    return str(Epoch(system, timeline, word))


@pytest.mark.parametrize(
    ("epoch", "wanted", "look", "verdict", "words"),
    [
        (name(3, "three"), 2500, seen(2500, THIRD), Verdict.VISIBLE, ""),
        (name(3, "three"), 2501, seen(2500, THIRD), Verdict.NOT_YET, "at 0/9C4"),
        (name(1, "one"), 1000, seen(2500, THIRD), Verdict.VISIBLE, ""),
        (name(1, "one"), 1001, seen(2500, THIRD), Verdict.UNPROVEN, "ended there at 0/3E8"),
        (name(2, "two"), 1500, seen(1200, THIRD), Verdict.NOT_YET, "at 0/4B0"),
        (name(4, "four"), 100, seen(2500, THIRD), Verdict.NOT_YET, "wanted timeline 4"),
        (name(2, "two"), 1200, seen(2500, History(3, {1: 1000})), Verdict.UNPROVEN, "no part of the history"),
        (name(3, "other"), 2100, seen(2500, THIRD), Verdict.UNPROVEN, "promoted apart"),
        (name(3, "three"), 2100, seen(2500, THIRD, words={}), Verdict.UNPROVEN, "antipode init"),
        (name(3, "three"), 2100, seen(2500, THIRD, words={}, words_fresh=False), Verdict.NOT_YET, ""),
        (name(3, "three"), 2600, seen(2500, THIRD, words={}), Verdict.NOT_YET, ""),
        (name(3, "three", 5), 10, seen(2500, THIRD), Verdict.NOT_YET, "another system"),
        (name(3, "three", 5), 10, seen(2500, THIRD, settled={name(3, "three", 5): 10}), Verdict.VISIBLE, ""),
        (name(1, "", SYSTEM), 10, seen(2500, History(1), words={}), Verdict.VISIBLE, ""),
        (name(2, "", SYSTEM), 10, seen(2500, History(2, {1: 5}), words={}), Verdict.UNPROVEN, "unique_timelines"),
        (name(2, ""), 10, seen(20, History(2, {1: 5}), words={}, unique_timelines=True), Verdict.VISIBLE, ""),
        (name(2, ""), 10, seen(20, History(2, {1: 5})), Verdict.UNPROVEN, "before the table"),
        (name(1, "one"), 10, seen(20, why_hidden="no right"), Verdict.UNPROVEN, "no right"),
        # The receiver is down: it may be on its last known timeline, or on another one that it has heard of.
        (name(1, "one"), 900, seen(2500, History(1), THIRD), Verdict.VISIBLE, ""),
        (name(1, "one"), 1001, seen(2500, History(1), THIRD), Verdict.NOT_YET, "receiver is down"),
        (name(3, "three"), 2100, seen(2500, History(1), THIRD), Verdict.NOT_YET, "timeline 3"),
        ("no epoch of ours", 10, seen(20, THIRD), Verdict.UNPROVEN, "no epoch of PostgreSQL"),
    ],
)
def test_verdicts(epoch: str, wanted: int, look: ServerState, verdict: Verdict, words: str) -> None:
    """EPOCH-28."""
    answer = judge(epoch, wanted, look)
    assert answer.verdict is verdict, answer
    assert words in answer.reason


@given(
    st.integers(0, 3000),
    st.lists(st.sampled_from([History(1), History(2, {1: 1000}), THIRD, History(4, {1: 700})]), max_size=3),
    st.sampled_from([name(1, "one"), name(2, "two"), name(3, "three"), name(3, "x"), name(2, "")]),
    st.integers(0, 3000),
)
def test_what_is_proved_at_once_is_what_is_judged_visible(
    reached: int, histories: Sequence[History], epoch: str, wanted: int
) -> None:
    """The free path and the judgement never differ on a pass."""
    look = seen(reached, *histories)
    assert (judge(epoch, wanted, look).verdict is Verdict.VISIBLE) == (wanted <= look.proved().get(epoch, -1))


def test_epochs_and_positions_are_spelled_and_read() -> None:
    for epoch in (Epoch(SYSTEM, 1, "abc123"), Epoch(2**64 - 1, 2**31 - 1, "1234567"), Epoch(1, 1, "")):
        assert epoch_of(str(epoch)) == epoch
        assert len(str(epoch)) <= 32
    assert epoch_of("8371ab90c2d4e6f1") is None
    assert number_of("1/2A") == (1 << 32) + 42
    assert lsn_of((1 << 32) + 42) == "1/2A"
    history = parse_history(3, "1\t0/3E8\tno recovery target specified\n\n2\t0/7D0\tbefore 2000-01-01\n")
    assert history == THIRD
    assert history.end_of(3) == FOR_EVER
    assert history.end_of(4) is None


def test_a_standby_that_was_promoted_before_it_came_to_the_fork() -> None:
    """EPOCH-28: it had timeline 2's history from an archive; as PostgreSQL 15 wrote its own."""
    history = parse_history(
        3, "1\t0/33260C0\tno recovery target specified\n2\t0/3015FB0\tno recovery target specified\n"
    )
    assert history.ends == {1: 0x3015FB0, 2: 0x3015FB0}
    seen = ServerState(system=SYSTEM, recovering=False, reached=0x3C54330, histories=[history])
    lost = judge(str(Epoch(SYSTEM, 1, "")), 0x33260C0, seen)
    assert lost.verdict is Verdict.UNPROVEN
    assert lost.kind is UnprovenKind.HISTORY


STATEMENTS: Mapping[str, Any] = json.loads((Path(__file__).parents[2] / "statements.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "kind"), [(text, kind) for kind in Kind for text in STATEMENTS[kind.value.replace(" ", "_")]]
)
def test_what_a_statement_may_do(text: str, kind: Kind) -> None:
    """SHIM-6."""
    assert classify(text.encode()) is kind
    assert classify(text.upper().encode() if kind is not Kind.MAYBE else text.encode()) is kind


@pytest.mark.parametrize("encoding", ["shift_jis", "big5", "gbk", "gb18030"])
def test_signs_that_are_halves_of_characters(encoding: str) -> None:
    """SHIM-6: in such a client's encoding a character's second octet may look like a backslash, a quote or a bar."""
    found = 0
    for octets in (bytes([lead, trail]) for lead in range(0x81, 0xFF) for trail in range(0x40, 0x7F)):
        with suppress(UnicodeDecodeError):
            character = octets.decode(encoding)
            if len(character) == 1:
                found += 1
                for text in ("SELECT E'{}', w('k')", "SELECT {}('k')", "SELECT 1 AS {}, w('k') AS {}"):
                    assert classify(text.replace("{}", character).encode(encoding)) is Kind.MAYBE
    assert found > 500
    for octets in (b"SELECT \xc2\x83|('k')", b"SELECT \xc2\x83|/**/('k')", b"SELECT \xc2\x83| --\n('k')"):
        octets.decode("utf-8")  # by chance
        assert classify(octets) is Kind.MAYBE
    for text in ("SELECT 'é', '[表]', \"表\" FROM t WHERE a = '{\"表\": \"è\"}'", "SELECT count(é) FROM t"):
        assert classify(text.encode()) is Kind.READ
    assert classify("SELECT 'é' FROM t WHERE a = 'è|'".encode("latin-1")) is Kind.MAYBE  # unsure


@pytest.mark.parametrize(
    ("text", "expected"), [(text, name) for name in ("may_read", "blind") for text in STATEMENTS[name]]
)
def test_what_may_read(text: str, expected: str) -> None:
    """SHIM-44: what may return data, or write what it has read."""
    assert may_read(text.encode()) is (expected == "may_read")


@pytest.mark.parametrize("case", STATEMENTS["unsure"])
def test_what_a_database_makes_unsure(case: Mapping[str, Any]) -> None:
    """SHIM-43: a text that looks like a read, and names what may write."""
    assert "\n".join(STATEMENTS["unsure_question"]) == QUESTION
    found = pattern_of(unsure_words((what, name) for what, name in case["has"]))
    for text in case["unsure"]:
        assert classify(text.encode()) is Kind.READ
        assert found is not None
        assert found.search(text.encode()), text
    for text in case["sure"]:
        assert found is None or not found.search(text.encode()), text


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://app:SEC RET@h:x",
        "host=h pasword=SECRET",
        "postgresql://app:SECRET@h/?passwort=SECRET",
        "host=h password='SECRET",
    ],
)
def test_an_error_holds_no_password(text: str) -> None:
    """Nor any part of one, in its words or in its cause."""
    with pytest.raises(ConfigurationError, match="no server's URL") as refused:
        target_of(text)
    assert not re.search("SEC|RET", str(refused.value))
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
