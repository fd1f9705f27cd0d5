"""What one look at a MySQL server proves of a position (spec EPOCH-9 to EPOCH-14, EPOCH-30), and what it tells of."""

from __future__ import annotations

import random

import pytest
from antipode._model.verdict import Verdict
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode.shim import Visibility
from antipode_mysql.flavour import WantedPosition, answer_of
from antipode_mysql.gtid_sets import GtidSet, epoch_of, is_epoch, owned
from antipode_mysql.membership import Members, look
from antipode_mysql.mysql import MYSQL
from antipode_mysql.tracking import gtids_in
from hypothesis import given
from hypothesis import strategies as st

A = "aaaaaaaa-aaaa-11f1-8000-02fc00000001"
B = "bbbbbbbb-bbbb-11f1-8000-02fc00000001"
C = "cccccccc-cccc-11f1-8000-02fc00000001"
EA, EB, EC = epoch_of(A), epoch_of(B), epoch_of(C)


def at(text: str, *, own: str = C, writes: bool = False, before: Members | None = None, unfit: str = "") -> Members:
    return look([text, own, "0" if writes else "1"], unfit, {}, before)


def judged(position: tuple[str, int], seen: Members) -> Visibility:
    return seen.judge(WriteId.position("s", *position), lambda: True)


@pytest.mark.parametrize(
    ("position", "text", "verdict", "unknown"),
    [
        ((EA, 8), f"{A}:1-8", Verdict.VISIBLE, False),
        ((EA, 7), f"{A}:1-8", Verdict.VISIBLE, False),
        ((EA, 9), f"{A}:1-8", Verdict.NOT_YET, False),
        ((EB, 1), f"{A}:1-8", Verdict.NOT_YET, True),  # it may be newer than the server
        ((EA, 9), f"{A}:1-8,\n{B}:1-20", Verdict.NOT_YET, False),  # nobody has seen who writes
        ((EA, 9), f"{A}:1-7:9", Verdict.NOT_YET, True),  # 9 stands for all up to it
        ((EA, 7), f"{A}:1-7:9", Verdict.VISIBLE, False),
        ((EA, 5), f"{A}:3-9", Verdict.NOT_YET, True),
        ((EA, 2), f"{A}:1-8:late:1-3", Verdict.VISIBLE, False),
        ((epoch_of(A, "late"), 4), f"{A}:1-8:late:1-3", Verdict.NOT_YET, False),  # each tag counts for itself
        ((epoch_of(A, "late"), 3), f"{A}:1-8:late:1-3", Verdict.VISIBLE, False),
        ((EA, 3), "", Verdict.NOT_YET, True),
    ],
)
def test_a_set_is_asked_for_all_up_to_a_position(
    position: tuple[str, int], text: str, verdict: Verdict, unknown: bool
) -> None:
    """EPOCH-30."""
    answer = judged(position, at(text))
    assert (answer.verdict, answer.unknown_epoch) == (verdict, unknown)


def test_what_is_behind_while_another_server_goes_on_may_be_lost() -> None:
    """EPOCH-30, EPOCH-13: not at once, for a switch back looks the same until its first write arrives."""
    seen = at(f"{A}:1-7,{B}:1-2", before=at(f"{A}:1-7,{B}:1"))
    assert seen.epoch == EB
    answer = judged((EA, 8), seen)
    assert answer.verdict is Verdict.NOT_YET
    assert answer.unknown_epoch
    assert "may be lost" in answer.reason
    again = at(f"{A}:1-8,{B}:1-2", before=seen)
    assert again.epoch == EA, "and a change of who writes begins anew"
    assert judged((EA, 8), again).verdict is Verdict.VISIBLE


@pytest.mark.parametrize(
    ("first", "second", "writer"),
    [
        (f"{A}:1-7,{B}:1", f"{A}:1-7,{B}:1", ""),
        (f"{A}:1-7", f"{A}:1-9,{B}:1", EB),  # the last of the old one, and the first of the new one
        (f"{A}:1-7", f"{A}:1-7,{B}:1,{C}:1", ""),
    ],
)
def test_who_writes_is_seen_by_what_grows(first: str, second: str, writer: str) -> None:
    assert at(second, before=at(first)).writer == writer


def test_a_server_that_may_write_is_the_writer_once_it_has_written() -> None:
    assert at(f"{A}:1-7,{C}:1", writes=True).writer == EC
    assert at(f"{A}:1-7,{B}:1", writes=True).writer == ""


def test_a_replica_that_may_write_is_not_the_writer_once_another_goes_on() -> None:
    """MySQL's own default is read_only=OFF; the former primary C replicates again."""
    first = at(f"{A}:1-7,{C}:1-3", writes=True)
    grown = at(f"{A}:1-8,{C}:1-3", writes=True, before=first)
    still = at(f"{A}:1-8,{C}:1-3", writes=True, before=grown)
    assert (grown.writer, still.writer) == (EA, EA)
    assert not judged((EA, 9), still).unknown_epoch, "it is merely behind"
    promoted = at(f"{A}:1-8,{C}:1-4", writes=True, before=still)
    assert (promoted.writer, judged((EA, 9), promoted).unknown_epoch) == (EC, True)


def test_an_unfit_server_proves_nothing_and_two_servers_of_one_name_neither() -> None:
    unfit = at(f"{A}:1-8", unfit="because")
    assert judged((EA, 8), unfit).verdict is Verdict.UNPROVEN
    assert unfit.proved() == {}
    twin = A[:24] + "ffffffffffff"
    both = at(f"{A}:1-8,{twin}:1-8")
    assert judged((EA, 8), both).verdict is Verdict.UNPROVEN
    assert both.proved() == {}


def test_what_an_operator_settled_is_there_but_not_what_is_written_now() -> None:
    """EPOCH-22, EPOCH-24."""
    settled = Members(GtidSet(f"{A}:1-7,{B}:1-9"), EC, EB, "", {EA: 12, EB: 20})
    assert judged((EA, 12), settled).verdict is Verdict.VISIBLE
    assert judged((EA, 13), settled).verdict is Verdict.NOT_YET
    assert judged((EB, 12), settled).verdict is Verdict.NOT_YET
    assert settled.proved() == {EA: 12, EB: 9}


def test_what_is_beyond_what_was_settled_is_waited_for() -> None:
    """EPOCH-24: its server came back, and goes on behind the numbers that were given up."""
    went_on = Members(GtidSet(f"{A}:1-7:13-14,{B}:1-9"), EC, "", "", {EA: 12})
    assert judged((EA, 14), went_on).verdict is Verdict.VISIBLE
    assert judged((EA, 15), went_on).verdict is Verdict.NOT_YET
    assert went_on.proved() == {EA: 14, EB: 9}
    endless = Members(GtidSet(f"{A}:1-7,{B}:1-9"), EC, "", "", {EA: 2**64 - 1})
    assert judged((EA, 8), endless).verdict is Verdict.NOT_YET
    assert endless.proved() == {EA: 7, EB: 9}


@pytest.mark.parametrize("number", [2**63 - 1, 2**64 - 1])
def test_a_number_that_mysql_never_gives_is_not_waited_for(number: int) -> None:
    seen = at(f"{A}:1-7")
    ids = [WriteId.position("s", EA, number), WriteId.position("s", EA, 2**63 - 2)]
    answers = [seen.judge(write_id, lambda: True) for write_id in ids]
    assert [answer.verdict for answer in answers] == [Verdict.UNPROVEN, Verdict.NOT_YET]
    assert seen.waited_for(ids, answers) == WantedPosition(A, 2**63 - 2)
    assert seen.waited_for(ids[:1], answers[:1]) is None


def test_a_source_s_own_filters_are_seen_whatever_the_statement_is_called() -> None:
    """EPOCH-7: `SHOW BINARY LOG STATUS` is there since MySQL 8.2, and what it was called before until 8.4."""

    def rows(question: str) -> list[dict[str, str]]:
        if question == "SHOW MASTER STATUS":
            return [{"File": "b.1", "Binlog_Do_DB": "", "Binlog_Ignore_DB": "other"}]
        return [{"Variable_name": "gtid_mode", "Value": "ON"}] if "VARIABLES" in question else []

    found = MYSQL.settings(rows)
    assert "binlog_ignore_db=other" in MYSQL.unfit({**found, "log_bin": "ON", "sync_binlog": "1"})


def test_what_is_no_position_of_mysql() -> None:
    for write_id in (WriteId("s", b"k", Opaque("x")), WriteId.position("s", "0-1", 3)):
        assert at(f"{A}:1-8").judge(write_id, lambda: True).verdict is Verdict.UNPROVEN


def test_the_server_s_wait_is_for_what_can_come_and_not_for_what_is_lost() -> None:
    seen = at(f"{A}:1-7,{B}:1-2", before=at(f"{A}:1-7,{B}:1"))
    ids = [WriteId.position("s", *each) for each in ((EA, 8), (EB, 9), (EB, 5), (EC, 1))]
    answers = [seen.judge(write_id, lambda: True) for write_id in ids]
    assert seen.waited_for(ids, answers) == WantedPosition(B, 5)
    assert seen.waited_for(ids[:1], answers[:1]) == WantedPosition(A, 8)
    assert seen.waited_for(ids[3:], answers[3:]) is None
    assert MYSQL.wait(WantedPosition(f"{B}:tag", 5), 0.5) == f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{B}:tag:1-5', 0.5000)"


@pytest.mark.parametrize("text", ["x", A, f"{A}:", f"{A}:1:-", f"{A}:x-1", f"{A}:1-2-3", "0-1-5"])
def test_what_is_no_set(text: str) -> None:
    with pytest.raises(ValueError, match=r"no GTID|invalid literal"):
        GtidSet(text)


@pytest.mark.parametrize("tag", ["", "a", "late", "a_tag_of_15_let", "_" * 32, "a_tag_that_is_longer_than_that"])
def test_an_epoch_is_short(tag: str) -> None:
    """WIRE: 32 characters at most."""
    epoch = epoch_of(A, tag)
    assert len(epoch) <= 32
    assert is_epoch(epoch)
    WriteId.position("s", epoch, 1)
    assert epoch_of(A, "a_tag_that_is_longer_than_this") != epoch_of(A, "a_tag_that_is_longer_than_that")


@given(numbers=st.sets(st.integers(1, 40)), seed=st.integers())
def test_a_set_s_whole_part_and_its_greatest_number(numbers: set[int], seed: int) -> None:
    """Against a plain set of numbers, however the intervals are cut and ordered."""
    parts = [str(number) for number in numbers]
    random.Random(seed).shuffle(parts)
    found = GtidSet(f"{A}:{':'.join(parts)}" if parts else "")
    whole = next(number for number in range(42) if number + 1 not in numbers)
    assert found.whole(EA) == whole
    assert found.greatest(EA) == max(numbers, default=0)


def test_the_answer_behind_a_write() -> None:
    row = [b"", f"{B}:1-9,\n{C}:1-5:tag:1-2".encode(), C.encode(), b"AUTOMATIC", b"1", b"14"]
    answer = answer_of(MYSQL, row)
    assert answer is not None
    assert answer.own == (Ordered(EC, 5), Ordered(epoch_of(C, "tag"), 2))
    assert answer.log == (*answer.own, Ordered(EB, 9))
    assert answer.own_is_top
    assert (answer.logs, answer.session) == (True, 14)
    named = answer_of(MYSQL, [*row[:3], f"{A}:7".encode(), *row[4:]])
    assert named is not None
    assert set(named.own) == set(answer.log), "the session itself says whose number it takes"
    assert not named.own_is_top
    holed = answer_of(MYSQL, [b"", f"{C}:1-3:5".encode(), *row[2:]])
    filled = answer_of(MYSQL, [b"", f"{C}:1-5".encode(), *row[2:]])
    assert holed is not None
    assert filled is not None
    assert filled.mark != holed.mark, "a transaction that fills a hole is one"
    assert answer_of(MYSQL, [b"", b"nonsense", *row[2:]]) is None
    assert answer_of(MYSQL, [b"nonsense", *row[1:]]) is None
    assert answer_of(MYSQL, row[:2]) is None


def test_what_is_being_committed_may_have_been_seen() -> None:
    """EPOCH-31; but a session's own write that was logged is executed, and its mark is of that alone."""
    row = [b"", f"{B}:1-9,{C}:1-5".encode(), C.encode(), b"AUTOMATIC", b"1", b"14"]
    still = answer_of(MYSQL, row)
    answer = answer_of(MYSQL, [f"{A}:3#9{C}:7#12:6#8{B}:late:2#14".encode(), *row[1:]])
    assert still is not None
    assert answer is not None
    assert answer.mark == still.mark
    assert dict(answer.log) == {EA: 3, EB: 9, EC: 7, epoch_of(B, "late"): 2}
    assert dict(answer.own) == {EC: 7}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (f"{A}:5#31:6#32", {EA: 6}),
        (f"{A}:6#31:5#3{B}:late:7#15{B}:1#16", {EA: 6, epoch_of(B, "late"): 7, EB: 1}),  # nothing stands between
        (f"{A}:9#1712345678{A[8:]}:901#16", {EA: 9, epoch_of("12345678" + A[8:]): 901}),  # thread 17, then a uuid
        (f"{A}:5#31,\n{B}:4#2".upper(), {EA: 5, EB: 4}),
        (f"{A}:5#31#32", {EA: 5}),
    ],
)
def test_what_is_owned(text: str, expected: dict[str, int]) -> None:
    assert owned(text) == expected


@pytest.mark.parametrize("text", ["x", A, f"{A}:5", f"{A}:5#", f"{A}:5#3:6", f"x{A}:5#3", f"{A}:#3", f"{A}:a:b:5#3"])
def test_what_names_no_owned_number(text: str) -> None:
    with pytest.raises(ValueError, match="no owned GTIDs"):
        owned(text)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b"\x00*\x03(\x00&3c11dc77-e64c-11f1-a350-02fc00000001:2", "3c11dc77-e64c-11f1-a350-02fc00000001:2"),
        (
            b"\x005\x05\t\x08________\x03(\x00&3c11dc77-e64c-11f1-a350-02fc00000001:3",
            "3c11dc77-e64c-11f1-a350-02fc00000001:3",
        ),
        (b"\x00\x0b\x05\t\x08T_______", ""),
        (b"", ""),
        (b"\x00", ""),
        (b"\x00\x05\x03\xff", ""),
    ],
)
def test_what_follows_an_ok(rest: bytes, expected: str) -> None:
    assert gtids_in(rest) == expected


@given(st.binary(max_size=60))
def test_nonsense_behind_an_ok_is_nothing(rest: bytes) -> None:
    assert isinstance(gtids_in(rest), str)
