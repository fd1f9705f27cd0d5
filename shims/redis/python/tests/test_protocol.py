"""The parts that need no server: answers to the question, judging, the reader of our own connections."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import UnprovenKind, Verdict
from antipode._model.write_id import Ordered, WriteId
from antipode_redis.info import Replication, parse, position_of_primary
from antipode_redis.judging import ServerState, judge
from antipode_redis.resp import Push, Reader, ServerError, pack
from antipode_redis.targets import target_of
from hypothesis import given, settings
from hypothesis import strategies as st

PRIMARY = (
    b"# Replication\r\nrole:master\r\nconnected_slaves:1\r\nslave0:ip=127.0.0.1,port=1,state=online,offset=9,lag=0\r\n"
    b"master_failover_state:no-failover\r\nmaster_replid:8371ab90c2d4e6f10123456789abcdef01234567\r\n"
    b"master_replid2:0123456789abcdef0123456789abcdef01234567\r\nmaster_repl_offset:%d\r\nsecond_repl_offset:43\r\n"
    b"repl_backlog_active:%d\r\nrepl_backlog_size:1048576\r\n"
)
REPLICA = (
    b"# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:1\r\nmaster_link_status:down\r\n"
    b"slave_read_repl_offset:90\r\nslave_repl_offset:77\r\nslave_priority:100\r\nslave_read_only:1\r\n"
    b"master_replid:8371ab90c2d4e6f10123456789abcdef01234567\r\nmaster_replid2:" + b"0" * 40 + b"\r\n"
    b"master_repl_offset:77\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:1\r\n"
)
OWN, BEFORE, OTHER = "8371ab90c2d4e6f1", "0123456789abcdef", "ffffffffffffffff"


@pytest.mark.parametrize("offset", [0, 1042, 2**53 + 1, 2**63 - 1])
def test_a_position_is_sliced_out_of_the_answer(offset: int) -> None:
    assert position_of_primary(PRIMARY % (offset, 1)) == Ordered(OWN, offset)
    assert parse(PRIMARY % (offset, 1)).position == Ordered(OWN, offset)
    assert parse((PRIMARY % (offset, 1)).decode()).position == Ordered(OWN, offset)


def test_no_position_without_a_backlog_at_a_replica_or_in_something_else() -> None:
    assert position_of_primary(PRIMARY % (9, 0)) is None
    assert parse(PRIMARY % (9, 0)).position is None
    assert position_of_primary(REPLICA) is None
    assert position_of_primary(b"NOAUTH") is None
    with pytest.raises(ValueError, match="something else"):
        parse(b"# Server\r\nredis_version:7\r\n")


def test_a_replica_says_what_it_has_applied_also_with_its_link_down() -> None:
    now = parse(REPLICA)
    assert now == Replication(False, OWN, 77, "", 0, True, True, False)
    assert now.position == Ordered(OWN, 77)
    assert parse(REPLICA.replace(b"slave_repl_offset:77", b"slave_repl_offset:1")).position is None


def at(epoch: str, counter: int) -> WriteId:
    return WriteId.position("posts", epoch, counter)


def test_judging() -> None:
    """EPOCH-10 to EPOCH-14, EPOCH-8."""
    now = parse(PRIMARY % (100, 1))
    bare, marked = ServerState(now, {}), ServerState(now, {OWN: 60, OTHER: 10})
    for seen in (bare, marked):
        assert judge(at(OWN, 100), seen).verdict is Verdict.VISIBLE
        assert judge(at(OWN, 101), seen).verdict is Verdict.NOT_YET
        assert not judge(at(OWN, 101), seen).unknown_epoch
        assert judge(at(BEFORE, 42), seen).verdict is Verdict.VISIBLE, "below second_repl_offset"
    assert judge(at(BEFORE, 43), bare).verdict is Verdict.NOT_YET, "it is not the fork"
    assert judge(at(BEFORE, 43), marked).verdict is Verdict.UNPROVEN, (
        "a mark of its own epoch comes with that of the fork"
    )
    assert judge(at(BEFORE, 43), marked).kind is UnprovenKind.HISTORY
    assert judge(at(OTHER, 10), bare).unknown_epoch
    assert judge(at(OTHER, 10), marked).verdict is Verdict.VISIBLE
    assert judge(at(OTHER, 11), marked).verdict is Verdict.UNPROVEN
    assert "has ended there" in judge(at(OTHER, 11), marked).reason
    not_past = ServerState(now, {OTHER: 10})
    assert judge(at(OTHER, 11), not_past).verdict is Verdict.NOT_YET, "no mark of its own epoch has arrived"
    assert not judge(at(OTHER, 11), not_past).unknown_epoch
    unread = ServerState(now, {}, marks_known=False, why_no_marks="refused")
    assert judge(at(OTHER, 1), unread).unknown_epoch
    assert judge(WriteId("posts", "key", Ordered("e", 1)), bare).verdict is Verdict.UNPROVEN
    assert marked.proved() == {OWN: 100, OTHER: 10, BEFORE: 42}


_JUDGED = json.loads((Path(__file__).parents[4] / "spec" / "vectors" / "epoch-judge.json").read_text())["cases"]


@pytest.mark.parametrize("native", [False, True], ids=["marks", "replid2"])
@pytest.mark.parametrize("case", _JUDGED, ids=lambda case: case["id"])
def test_the_vectors_of_judging(case: dict[str, Any], native: bool) -> None:
    """EPOCH-9 to EPOCH-12: one rule in the core and here, also where the server itself knows the history before."""
    server = case["server"]
    marks = {epoch: int(counter) for epoch, counter in server["marks"].items()}
    before, end = next(((epoch, int(counter)) for epoch, counter in server.get("known", {}).items()), ("", -1))
    if native and not before and case["epoch"] != server["epoch"]:
        before, end = case["epoch"], marks.pop(case["epoch"], -1)
    now = Replication(
        True, server["epoch"], int(server["applied"]), before if end >= 0 else "", end + 1, True, False, True
    )
    answer = judge(at(case["epoch"], int(case["counter"])), ServerState(now, marks))
    assert (answer.verdict, answer.unknown_epoch) == (case["answer"], case["unknown_epoch"])


def test_a_history_before_is_believed_only_with_a_backlog() -> None:
    """EPOCH-33: a full copy that failed behind its flush leaves the word, and no backlog."""
    empty = parse(PRIMARY % (100, 0))
    assert empty.before == ""
    assert judge(at(BEFORE, 1), ServerState(empty, {})).unknown_epoch
    assert ServerState(empty, {}).proved() == {OWN: 100}


_scalars = st.one_of(
    st.binary(max_size=20), st.integers(-(2**63), 2**63 - 1), st.none(), st.text(string.ascii_letters, max_size=9)
)


def _spell(value: object) -> bytes:
    if value is None:
        return b"_\r\n"
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, str):
        return b"+%b\r\n" % value.encode()
    assert isinstance(value, list)
    return b"*%d\r\n" % len(value) + b"".join(map(_spell, value))


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.encode() if isinstance(value, str) else value


@settings(deadline=None)  # other processes may have the cores
@given(st.lists(st.recursive(_scalars, lambda each: st.lists(each, max_size=4), max_leaves=8), max_size=5), st.data())
def test_messages_are_read_however_they_are_cut(messages: list[object], data: st.DataObject) -> None:
    text = b"".join(map(_spell, messages))
    reader, got = Reader(), []
    while text:
        size = data.draw(st.integers(1, len(text)))
        reader.feed(text[:size])
        text = text[size:]
        while (found := reader.take())[0]:
            got.append(found[1])
    assert got == [_plain(message) for message in messages]
    assert not reader


def test_pushes_errors_maps_and_verbatim_texts() -> None:
    reader = Reader()
    reader.feed(b">2\r\n$10\r\ninvalidate\r\n_\r\n-NOPERM no\r\n%1\r\n+k\r\n:1\r\n")
    reader.feed(b"=8\r\ntxt:abcd\r\n!5\r\nERR x\r\n*-1\r\n$-1\r\n")
    push = reader.take()[1]
    assert isinstance(push, Push)
    assert push == [b"invalidate", None]
    error = reader.take()[1]
    assert isinstance(error, ServerError)
    assert error.code == "NOPERM"
    assert [reader.take()[1] for _ in range(2)] == [{b"k": 1}, b"abcd"]
    assert isinstance(reader.take()[1], ServerError)
    assert [reader.take() for _ in range(3)] == [(True, None), (True, None), (False, None)]
    reader.feed(b"HTTP/1.1 400\r\n")
    with pytest.raises(ConnectionError):
        reader.take()


def test_packing() -> None:
    assert pack("SET", b"k", 5) == b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n5\r\n"


@pytest.mark.parametrize(
    ("what", "address"),
    [
        ("redis://user:secret@b1.redis:7000/2", "redis://b1.redis:7000/2"),
        ("rediss://b1.redis", "rediss://b1.redis:6379"),
        ("redis://[::1]:7000", "redis://[::1]:7000"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock/1"),
        (redis.Redis("b1.redis", 7000, db=2), "redis://b1.redis:7000/2"),
        (redis.asyncio.Redis(host="b1.redis", ssl=True), "rediss://b1.redis:6379"),
        (redis.Redis(unix_socket_path="/run/redis.sock"), "unix:///run/redis.sock"),
    ],
)
def test_addresses_have_no_credentials_and_are_the_same_for_clients_and_urls(what: object, address: str) -> None:
    assert target_of(what).address == address


def test_a_text_that_is_no_url_is_named_without_its_credentials() -> None:
    with pytest.raises(ConfigurationError, match=r"'…'; want redis://") as raised:
        target_of("user:secret@b1.redis")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "redis://app:SEC/RET@h",
        "redis://h:6379x/0?password=SECRET",
        "redis//app:SECRET@h",
        "rediss://:SEC?RET@h:1",
    ],
)
def test_an_error_holds_no_password(text: str) -> None:
    """Nor any part of one, in its words or in its cause."""
    with pytest.raises(ConfigurationError, match="no server's URL") as refused:
        target_of(text)
    assert not re.search("SEC|RET", str(refused.value))
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
