"""Lineages in the metadata of calls (spec PROP-15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc

from antipode._propagation.carriers import LINEAGE_HEADER
from antipode._propagation.response_stream import ResponseStream
from antipode.propagation import Outgoing, merge_response, prepare_request, unanswered

Pairs = Iterable[tuple[str, str | bytes]]

_NO_ANSWER: Final = frozenset(
    {
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,  # a message is longer than the client takes
        grpc.StatusCode.INTERNAL,  # a message cannot be read
        grpc.StatusCode.UNKNOWN,  # the stream was removed
    }
)
"""Codes that a client makes up by itself; gRPC tells neither that it did, nor whether the call had left."""


PREVIOUS_ATTEMPTS: Final = "antipode-previous-attempts"
"""What a server says of a call that gRPC repeated by itself: the client is told nothing of it (PROP-32)."""
_REPEATED: Final = "grpc-previous-rpc-attempts"


def text_pairs(metadata: Pairs | None) -> list[tuple[str, str]]:
    """Metadata without what is binary."""
    return [(key, value) for key, value in metadata or () if isinstance(value, str)]


def lineages(metadata: Pairs | None) -> list[str]:
    """The lineages that trailing metadata holds."""
    return [value for key, value in text_pairs(metadata) if key == LINEAGE_HEADER]


def changed(metadata: Pairs | None, host: str) -> tuple[list[tuple[str, str | bytes]], Outgoing]:
    """The metadata of a call to this host, with the caller's lineage where that may go there."""
    given = list(metadata or ())
    text = text_pairs(given)

    def get(name: str) -> str | None:
        values = [value for key, value in text if key == name]
        return ",".join(values) if values else None

    outgoing = prepare_request(host, get, text)
    pairs = [(key, value) for key, value in given if key not in outgoing.changes]
    pairs += [(name, value) for name, value in outgoing.changes.items() if value is not None]
    return pairs, outgoing


def _is_lost(code: grpc.StatusCode, trailing: list[tuple[str, str | bytes]]) -> bool:
    """Whether a call ended without the server's word: whether it ran there is not known."""
    return code in _NO_ANSWER and not trailing


def repeated(metadata: Pairs | None) -> list[tuple[str, str]]:
    """Return what the trailer must say of attempts before this one, by the metadata of the call."""
    return [
        (PREVIOUS_ATTEMPTS, value)
        for key, value in text_pairs(metadata)
        if key == _REPEATED and value.isascii() and value.isdigit() and len(value) < 4 and int(value)
    ]


def _attempts_before(trailing: list[tuple[str, str | bytes]]) -> str:
    """Return words on attempts before the one that was answered, whose answers gRPC keeps for itself."""
    return "an attempt before the last" if any(key == PREVIOUS_ATTEMPTS for key, _ in trailing) else ""


def answered(code: grpc.StatusCode, metadata: Pairs | None, host: str) -> None:
    """A call has ended: what it brought joins the current scope, or is marked as missing there (PROP-27)."""
    trailing = list(metadata or ())
    values = lineages(trailing)
    if values:
        merge_response(values, host)
    lost = code.name if _is_lost(code, trailing) else _attempts_before(trailing)
    if lost:
        unanswered(host, lost)


def ended(stream: ResponseStream, code: grpc.StatusCode, metadata: Pairs | None) -> None:
    """The same for the scope of a stream (PROP-28)."""
    trailing = list(metadata or ())
    if _is_lost(code, trailing):
        stream.lost(code.name)
    else:
        stream.end(lineages(trailing), _attempts_before(trailing))
