"""The short way of a common write does what redis-py does, whatever comes: replies, pieces, errors of the socket."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
from antipode.testing import isolated
from antipode_redis import short
from antipode_redis.info import QUESTION, parse
from antipode_redis.probe import Facts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.retry import Retry
from regions import STORE

ANSWER = (
    "# Replication\r\nrole:{role}\r\nslave_repl_offset:{offset}\r\nslave_read_only:1\r\nconnected_slaves:1\r\n"
    "slave0:ip=127.0.0.1,port=1,state=online,offset={offset},lag=0\r\nmaster_failover_state:no-failover\r\n"
    "master_replid:{epoch}aaaaaaaaaaaaaaaaaaaaaaaa\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n"
    "master_repl_offset:{offset}\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:{backlog}\r\n"
    "repl_backlog_size:1048576\r\nrepl_backlog_first_byte_offset:1\r\nrepl_backlog_histlen:{offset}\r\n"
)
EPOCHS = ("8371ab90c2d4e6f1", "0123456789abcdef")


class Socket:
    """A connection's socket that gives what the test says; an exception in the list is raised."""

    def __init__(self) -> None:
        self.coming: list[bytes | BaseException] = []
        self.ready: list[bytes | BaseException] = []
        self.refusal: BaseException | None = None

    def sendall(self, _: bytes) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.ready, self.coming = self.coming, []

    def recv(self, _: int) -> bytes:
        if not self.ready:
            raise BlockingIOError(11, "nothing is there")
        coming = self.ready.pop(0)
        if isinstance(coming, BaseException):
            raise coming
        return coming

    def settimeout(self, _: float | None) -> None:
        """It never blocks."""

    def shutdown(self, _: int) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


def client(protocol: int, *, decode: bool = False) -> tuple[Any, Socket, Connection]:
    """A redis-py client whose one connection is held open by such a socket."""
    plain = redis.Redis(
        port=1, protocol=protocol, decode_responses=decode, retry=Retry(NoBackoff(), 0), maint_notifications_config=None
    )
    connection: Any = plain.connection_pool.make_connection()
    connection._sock = socket = Socket()
    connection._parser.on_connect(connection)
    plain.connection_pool._available_connections.append(connection)
    return plain, socket, connection


@pytest.fixture(scope="module", autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


def both(protocol: int, *, decode: bool = False) -> tuple[Any, Socket, Any, Socket]:
    """A plain client and a wrapped one, whose server is known to be fit."""
    plain, heard, _ = client(protocol, decode=decode)
    inner, socket, _ = client(protocol, decode=decode)
    wrapped = antipode_redis.wrap(inner, store=STORE)
    marker = wrapped._antipode.marker
    marker.stop()
    marker.facts = Facts(reached=True)
    marker.dirty = True
    return plain, heard, wrapped, socket


def bulk(text: str, protocol: int) -> bytes:
    return (
        b"=%d\r\ntxt:%b\r\n" % (len(text) + 4, text.encode())
        if protocol == 3
        else b"$%d\r\n%b\r\n"
        % (
            len(text),
            text.encode(),
        )
    )


def outcome(call: Any) -> Any:
    """What a call returns or raises."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


REPLIES = st.sampled_from([b"+OK\r\n"] * 4 + [b":1\r\n", b":0\r\n", b":-1\r\n", b"$1\r\nx\r\n", b"-WRONGTYPE no\r\n"])
PLACES = st.tuples(
    st.sampled_from(["master"] * 5 + ["slave"]),
    st.sampled_from(EPOCHS),
    st.one_of(st.integers(0, 12), st.integers(995, 1003), st.sampled_from([2**53 + 1, 2**63 - 1])),
    st.sampled_from([1] * 5 + [0]),
)


@settings(deadline=None)  # other processes may have the cores
@example([(b":1\r\n", ("master", EPOCHS[0], 0, 1), [7], False)], 2, False)  # four bytes, and their end says four
@given(
    st.lists(st.tuples(REPLIES, PLACES, st.lists(st.integers(1, 500), max_size=3), st.booleans()), max_size=6),
    st.sampled_from([2, 3]),
    st.booleans(),
)
def test_any_reply_in_any_pieces(steps: list[Any], protocol: int, decode: bool) -> None:
    """The application gets what the plain client gives, and the scope what a full look at the answer gives."""
    plain, heard, wrapped, socket = both(protocol, decode=decode)
    with antipode.scope() as scope:
        for reply, (role, epoch, offset, backlog), cuts, refused in steps:
            answer = ANSWER.format(role=role, epoch=epoch, offset=offset, backlog=backlog)
            asked = b"-NOPERM no\r\n" if refused and role == "slave" else bulk(answer, protocol)
            both_replies = reply + asked
            places = sorted({0, *(min(cut, len(both_replies)) for cut in cuts), len(both_replies)})
            heard.coming = [reply]
            socket.coming = [both_replies[a:b] for a, b in pairwise(places)]
            before = scope.lineage
            name = "PERSIST" if reply.startswith(b":") else "SET"
            got = outcome(lambda name=name: wrapped.execute_command(name, "key", b"value"))
            assert got == outcome(lambda name=name: plain.execute_command(name, "key", b"value"))
            assert not scope.pending
            if reply.startswith(b"-"):
                assert scope.lineage == before
                continue
            position = None if refused and role == "slave" else parse(answer.encode()).position
            if role == "slave" or position is None:
                assert STORE in scope.lineage.incomplete
            else:
                write_id = antipode.WriteId.position(STORE, epoch, offset)
                known = [each for each in before.of_store(STORE) if each.version.epoch == epoch]  # type: ignore[union-attr]
                if not got or not known or known[0].version.counter <= offset:  # type: ignore[union-attr]
                    assert scope.lineage == before.including(write_id)
                else:
                    assert write_id in scope.lineage  # what was there before is implausible
                    assert STORE in scope.lineage.incomplete
            if wrapped._antipode.denied_until:
                return  # nothing is asked any more for a while


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize(
    "trouble",
    [TimeoutError("timed out"), ConnectionResetError(104, "reset"), b"", OSError(5, "trouble")],
    ids=lambda each: type(each).__name__,
)
def test_errors_of_the_socket_are_redis_pys_and_the_outcome_is_unknown(trouble: Any, protocol: int) -> None:
    """SCOPE-17."""
    plain, heard, wrapped, socket = both(protocol)
    heard.coming, socket.coming = [trouble], [trouble]
    with antipode.scope() as scope:
        assert outcome(lambda: wrapped.set("key", "value")) == outcome(lambda: plain.set("key", "value"))
        assert [each.unknown for each in scope.pending] == [True]
        assert STORE in scope.lineage.incomplete
    assert wrapped.connection_pool._available_connections[0]._sock is None, "replies may be on their way"


@pytest.mark.parametrize("trouble", [TimeoutError("timed out"), BrokenPipeError(32, "broken"), OSError("odd")], ids=str)
def test_errors_in_sending_are_redis_pys_and_the_outcome_is_unknown(trouble: BaseException) -> None:
    """SCOPE-17: a part may have left."""
    plain, heard, wrapped, socket = both(2)
    heard.refusal = socket.refusal = trouble
    with antipode.scope() as scope:
        assert outcome(lambda: wrapped.set("key", "value")) == outcome(lambda: plain.set("key", "value"))
        assert [each.unknown for each in scope.pending] == [True]


def test_an_interrupt_leaves_no_connection_with_a_reply_on_its_way() -> None:
    _, _, wrapped, socket = both(2)
    socket.coming = [KeyboardInterrupt()]
    with antipode.scope() as scope:
        with pytest.raises(KeyboardInterrupt):
            wrapped.set("key", "value")
        assert [each.unknown for each in scope.pending] == [True]


_args = st.lists(
    st.one_of(
        st.text(max_size=9),
        st.binary(max_size=9),
        st.integers(),
        st.floats(allow_nan=False),
        st.sampled_from([b"x" * 7000, "é" * 4000, bytearray(b"abc"), memoryview(b"abc")]),
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(_args, st.sampled_from(["SET", "HSET", "ZADD"]))
def test_packing_is_redis_pys_with_the_question_behind_it(args: list[Any], name: str) -> None:
    connection: Any = client(2)[2]
    for _ in range(2):  # the second time by a template
        assert b"".join(short.pack(connection, (name, *args))) == (
            b"".join(connection.pack_command(name, *args)) + QUESTION
        )


def test_what_cannot_be_packed_is_refused_as_redis_py_does_and_nothing_is_pending() -> None:
    plain, _, wrapped, _ = both(2)
    with antipode.scope() as scope:
        for _ in range(2):
            assert outcome(lambda: wrapped.set("key", None)) == outcome(lambda: plain.set("key", None))
            assert outcome(lambda: wrapped.set("key", True)) == outcome(lambda: plain.set("key", True))
        assert not scope.pending


def test_a_client_with_parsing_of_its_own_keeps_it() -> None:
    class Own(redis.Redis):
        def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
            return "mine", super().parse_response(connection, command_name, **options)  # type: ignore[no-untyped-call]

    inner, socket, _ = client(2)
    inner.__class__ = Own
    wrapped: Any = antipode_redis.wrap(inner, store=STORE)
    wrapped._antipode.marker.stop()
    socket.coming = [b"+OK\r\n" + bulk(ANSWER.format(role="master", epoch=EPOCHS[0], offset=9, backlog=1), 2)]
    with antipode.scope() as scope:
        assert wrapped.set("key", "value") == ("mine", True)
        assert scope.lineage.serialize() == f"1~{STORE}..{EPOCHS[0]}.9"
