"""The short way of a common write: packed in one step, its reply and the answer behind it taken from one `recv`.

What a wrapped write costs beyond a plain one is made up for here, in part. It does what redis-py does, for its own
`Connection` with its own parser, and leaves the rest to it: nothing has been taken where `exchange` returns MISSING.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from antipode import Ordered, WriteId
from redis._parsers import Encoder, _RESP2Parser, _RESP3Parser
from redis._parsers.socket import SERVER_CLOSED_CONNECTION_ERROR
from redis.connection import Connection, PythonRespSerializer
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.calls import WriteCall
from antipode_redis.commands import KINDS
from antipode_redis.info import PRIMARY, QUESTION, places_of

_VERBATIM: Final = ord("=")
MISSING: Final[Any] = object()
"""Nothing was taken: the reply is another one, or has not come whole."""
_READERS: Final = frozenset({_RESP2Parser, _RESP3Parser})
_MOST_BYTES: Final = 6000
"""Longer arguments go in pieces of their own, as redis-py sends them."""
_new: Final[Any] = tuple.__new__
_templates: dict[tuple[Any, int], bytes] = {}


BLOCKING: Final = frozenset(
    {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "XREADGROUP"}
)
"""Commands that may wait at the server, and give no common reply: redis-py reads theirs."""


def is_common(connection: Any) -> bool:
    """Whether a connection is redis-py's own, with the parser that is written in Python."""
    return type(connection) is Connection and type(connection._parser) in _READERS


def pack(connection: Any, args: Sequence[Any]) -> Sequence[bytes]:
    """The bytes of a command with the question behind it."""
    encoder = connection.encoder
    template = _templates.get((args[0], len(args)))
    if template is not None and type(encoder) is Encoder and type(connection._command_packer) is PythonRespSerializer:
        words: list[Any] = []
        for arg in args[1:]:
            kind = type(arg)
            if kind is bytes:
                word = arg
            elif kind is str:
                word = arg.encode(encoder.encoding, encoder.encoding_errors)
            elif kind is int:
                word = b"%d" % arg
            else:
                break
            size = len(word)
            if size > _MOST_BYTES:
                break
            words += (size, word)
        else:
            return (template % tuple(words),)
    elif template is None and args[0] in KINDS and len(_templates) < 1000:  # its name is one word
        _templates[args[0], len(args)] = _template(args)
    chunks: list[bytes] = list(connection.pack_command(*args))
    chunks[-1] += QUESTION
    return chunks


def _template(args: Sequence[Any]) -> bytes:
    name = args[0].encode()
    return b"*%d\r\n$%d\r\n%b\r\n" % (len(args), len(name), name) + b"$%d\r\n%b\r\n" * (len(args) - 1) + QUESTION


def exchange(call: WriteCall, connection: Any, name: str, packed: Sequence[bytes]) -> Any:
    """Sends a write; its reply, where it and the answer behind it come in one piece and are the common ones.

    Then the write has been recorded, or has its answer. Raises what redis-py raises where the connection fails.
    """
    buffer = connection._parser._buffer
    held = buffer._buffer if buffer is not None else None
    if held is None or connection.health_check_interval or len(packed) > 1 or held.getvalue():
        connection.send_packed_command(packed)
        return MISSING
    try:
        connection._sock.sendall(packed[0])
    except BaseException as error:
        raise _not_sent(connection, error) from None
    try:
        data: bytes = connection._sock.recv(buffer.socket_read_size)
    except BaseException as error:
        raise _not_read(connection, error) from None
    marker = call.binding.marker
    form = marker.forms.get(name)
    if (
        form is not None
        and len(data) == form.size
        and data.startswith(form.head)
        and data.startswith(form.middle, form.at)
        and data.startswith(form.tail, form.stop)
        and not call.read
    ):
        value, epoch, counter = form.value, form.epoch, int(data[form.begin : form.stop])
        position: Ordered = _new(Ordered, (epoch, counter))
        marker.position = position
        if not marker.dirty or marker.epoch != epoch:
            marker.wrote(position)
        scope = call._scope
        if scope is not None and scope.raised(call, epoch, counter):
            call._open = False
            if call.noted is not None:
                call.noted.done(WriteId.position(call.store, epoch, counter))
        else:
            call.record(position)
    else:
        value = _read(call, connection, name, data, held)
        if value is MISSING:
            return value
    if type(value) is bytes:
        encoder = connection._parser.encoder
        if encoder.decode_responses:
            value = encoder.decode(value)
    return value


class Form(NamedTuple):
    """How the last reply to a command and the answer behind it were put together; the next ones are as a rule alike."""

    size: int
    head: bytes
    """The reply, and how the answer of a primary begins."""
    middle: bytes
    """What stands before the offset: the replication ids."""
    tail: bytes
    """What stands after it, up to the word that there is a backlog."""
    at: int
    begin: int
    stop: int
    value: Any
    epoch: str


def _read(call: WriteCall, connection: Any, name: str, data: bytes, held: Any) -> Any:
    """The reply in data of any form; the answer is kept for the call's end. MISSING where redis-py has to read them."""
    end = data.find(b"\r\n") + 2
    start = data.find(b"\r\n", end, end + 16) + 2
    kind, said = data[:1], data[1 : end - 2]
    if (
        start <= end  # one of the ends of line has not come
        or (kind != b"+" and (kind != b":" or not said.isdigit()))
        or data[end + 1 : start - 2] != b"%d" % (len(data) - start - 2)
        or data[end : end + 1] not in (b"$", b"=")
    ):
        if not data:
            connection.disconnect()
            raise RedisConnectionError(SERVER_CLOSED_CONNECTION_ERROR)
        held.write(data)
        held.seek(0)
        return MISSING
    if data[end] == _VERBATIM:
        start += 4  # `txt:`
    value = said if kind == b"+" else int(said)
    answer = call.reply = data[start:-2]
    places = places_of(answer)
    if places is not None and value and call.binding.proves:
        at, begin, stop, tail_end, epoch = places
        call.binding.marker.forms[name] = Form(
            len(data),
            data[: start + len(PRIMARY)],
            answer[at:begin],
            answer[stop:tail_end],
            start + at,
            start + begin,
            start + stop,
            value,
            epoch,
        )
    return value


def _not_sent(connection: Any, error: BaseException) -> BaseException:
    """The error that redis-py raises where the socket fails in sending."""
    connection.disconnect()
    if isinstance(error, TimeoutError):
        return RedisTimeoutError("Timeout writing to socket")
    if not isinstance(error, OSError):
        return error
    number, words = error.args[:2] if len(error.args) > 1 else ("UNKNOWN", error.args[0])
    return RedisConnectionError(f"Error {number} while writing to socket. {words}.")


def _not_read(connection: Any, error: BaseException) -> BaseException:
    """The error that redis-py raises where the socket fails in reading."""
    words = f"Error while reading from {connection._host_error()} : {error.args}"
    connection.disconnect()
    if isinstance(error, TimeoutError):
        return RedisTimeoutError("Timeout reading from socket")
    return RedisConnectionError(words) if isinstance(error, OSError) else error
