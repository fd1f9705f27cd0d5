"""What one look at a server proves of a position (spec EPOCH-9 to EPOCH-14)."""

from __future__ import annotations

import re

import pytest
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import Verdict
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode_mysql.gtids import State, parse_epoch, places
from antipode_mysql.judging import ServerState, judge, waited_for
from antipode_mysql.targets import target_of


def seen(state: str, place: str = "", server_id: int = 9, unfit: str = "") -> ServerState:
    return ServerState(State(state), places(place), server_id, unfit)


def verdict(position: str, at: ServerState, *, idle: bool = False) -> Verdict:
    domain, server, sequence = position.split("-")
    write_id = WriteId.position("s", f"{domain}-{server}", int(sequence))
    return judge(write_id, at, lambda: idle).verdict


@pytest.mark.parametrize(
    ("position", "state", "place", "expected"),
    [
        ("0-1-8", "0-1-8", "0-1-8", Verdict.VISIBLE),
        ("0-1-8", "0-1-12", "0-1-12", Verdict.VISIBLE),
        ("0-1-8", "0-1-8", "0-1-7", Verdict.NOT_YET),  # in the log, and not committed yet
        ("0-1-9", "0-1-8", "0-1-8", Verdict.NOT_YET),
        ("0-1-8", "0-1-7,0-2-10", "0-2-10", Verdict.UNPROVEN),  # lost: MASTER_GTID_WAIT passes it
        ("0-1-7", "0-1-7,0-2-10", "0-2-10", Verdict.VISIBLE),
        ("0-3-9", "0-1-7,0-2-10", "0-2-10", Verdict.NOT_YET),  # a server that is not known may be newer
        ("1-1-3", "0-1-7", "0-1-7", Verdict.NOT_YET),
        ("1-1-3", "0-1-7,1-1-3", "0-1-7,1-1-3", Verdict.VISIBLE),
        ("1-1-3", "0-1-7,1-1-3", "0-1-7", Verdict.NOT_YET),  # domains have no order between them
    ],
)
def test_a_replica(position: str, state: str, place: str, expected: Verdict) -> None:
    assert verdict(position, seen(state, place)) is expected


def test_what_a_server_wrote_itself_needs_no_applier() -> None:
    assert verdict("0-2-10", seen("0-1-7,0-2-10", "0-1-7", server_id=2)) is Verdict.VISIBLE
    assert verdict("0-2-11", seen("0-1-7,0-2-10", "0-1-7", server_id=2)) is Verdict.NOT_YET


def test_nothing_is_in_the_gap_where_nothing_is_applied() -> None:
    assert verdict("0-1-7", seen("0-1-7,0-4-9", ""), idle=True) is Verdict.VISIBLE
    assert verdict("0-1-7", seen("0-1-7,0-4-9", ""), idle=False) is Verdict.NOT_YET


def test_an_unfit_server_proves_nothing() -> None:
    at = seen("0-1-8", "0-1-8", unfit="because")
    assert verdict("0-1-8", at) is Verdict.UNPROVEN
    assert at.proved() == {}


def test_what_an_operator_settled_is_there() -> None:
    at = ServerState(State("0-2-10"), places("0-2-10"), 9, "", {"0-1": 2**64 - 1})
    assert verdict("0-1-12", at) is Verdict.VISIBLE
    assert at.proved() == {"0-1": 2**64 - 1, "0-2": 10}


@pytest.mark.parametrize(("state", "server_id"), [("0-1-10", 9), ("0-2-8,0-1-10", 9), ("0-2-10", 1)])
def test_what_another_system_s_operator_settled_is_not(state: str, server_id: int) -> None:
    """EPOCH-22: the table came with a dump, and here a server with that very id is written now."""
    at = ServerState(State(state), places(state), server_id, "", {"0-1": 2**64 - 1})
    assert verdict("0-1-12", at) is not Verdict.VISIBLE
    assert at.proved().get("0-1", 0) <= 10


@pytest.mark.parametrize(
    "epoch", ["", "0", "0-", "-1", "0-1-2", "x-y", "00-1", "٣-1", "0-1x", f"{2**32}-1", f"0-{2**32}"]
)
def test_what_is_no_epoch_of_ours(epoch: str) -> None:
    assert parse_epoch(epoch) is None
    write_id = WriteId("s", b"", Ordered(epoch or "e", 1))
    assert judge(write_id, seen("0-1-8"), lambda: True).verdict is Verdict.UNPROVEN


def test_an_object_is_no_position() -> None:
    assert judge(WriteId("s", b"k", Opaque("x")), seen("0-1-8"), lambda: True).verdict is Verdict.UNPROVEN


def test_the_applier_is_waited_for_up_to_the_least_that_is_wanted() -> None:
    at = seen("0-1-8", "0-1-8")
    ids = [WriteId.position("s", "0-1", 12), WriteId.position("s", "0-2", 10), WriteId.position("s", "0-1", 8)]
    answers = [judge(write_id, at, lambda: False) for write_id in ids]
    assert waited_for(ids, answers, at) == (0, 10)
    assert waited_for(ids[2:], answers[2:], at) is None


@pytest.mark.parametrize(
    "text",
    [
        "mysql://app:SEC/RET@h",
        "mysql://h:33x06/?password=SECRET",
        "mysql//app:SECRET@h",
        "mysql://app:SEC?RET@h:y",
    ],
)
def test_an_error_holds_no_password(text: str) -> None:
    """Nor any part of one, in its words or in its cause."""
    with pytest.raises(ConfigurationError, match="no server's URL") as refused:
        target_of(text)
    assert not re.search("SEC|RET", str(refused.value))
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
