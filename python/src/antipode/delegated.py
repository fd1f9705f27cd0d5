"""A store that another service owns: barriers ask that service, which waits for its own servers (spec DELEG).

antipode.delegated.register("blog-posts", owner="http://post-storage:8080")

The owner's middleware answers: `antipode.asgi.Middleware(app, answers_waits=True)`, or `antipode.wsgi`.
"""

from __future__ import annotations

import io
import json
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from antipode._facade.answering import MOST_MS, MOST_OCTETS, PATH, answers_trust
from antipode._model import display
from antipode._model.errors import ConfigurationError, MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.verdict import NOT_YET, VISIBLE, Visibility, not_yet, unproven
from antipode._model.write_id import WriteId
from antipode._store.store import Store, StoreOptions, join_store
from antipode._trust.trust import Purpose, judge_request_out, judge_response_in, outgoing_text, trust_settings
from antipode.shim import Capabilities, Server, Shim

__all__ = ["register"]

_MOST_TOLD: Final = 64 * MOST_OCTETS
_MOST_WORDS: Final = 200
_CURES: Final = {
    403: "the owner does not believe this service",
    404: "the owner answers no waits: Middleware(app, answers_waits=True)",
    405: "the owner answers no waits: Middleware(app, answers_waits=True)",
}


class _RefusedError(Exception):
    """The owner answered, and not the question."""


def register(store: str, *, owner: str, timeout: float | timedelta | None = None) -> Store:
    """This process waits for a store by asking the service that owns it, at its base URL.

    timeout: a barrier's deadline where it gives none, in seconds. Raises ConfigurationError for what is no URL, for a
    host that no lineage may go to (`ANTIPODE_PEERS`), and where the store is registered here already in another way.
    """
    url = urlsplit(owner)
    try:
        port = url.port
    except ValueError:
        port = -1
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or port == -1:
        raise ConfigurationError(
            f"owner={owner!r}: want the base URL of a service, as in http://post-storage:8080", code="AP501"
        )
    if url.username or url.password:
        raise ConfigurationError(
            "owner=: a URL without a name and password; whom the owner believes is a matter of trust",
            code="AP501",
        )
    decision = judge_request_out(url.hostname, trust_settings())
    if not decision.accepted:
        raise ConfigurationError(f"owner={owner!r}: {decision.reason}; add it to ANTIPODE_PEERS", code="AP404")
    return join_store(store, DelegatedShim, StoreOptions(replicas=[owner.rstrip("/")], timeout=timeout))


class DelegatedShim(Shim):
    """Asks an owner. It never sees the store's own servers."""

    kind: ClassVar[str] = "delegated"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", blocking_wait=True)
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, HTTPException)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        """As the base says."""
        return self._asked(ids, server, 0)

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """As the base says."""
        return self._asked(ids, server, timeout)

    def close(self, server: Server) -> None:
        """As the base says."""
        connection, server.session = server.session, None
        if isinstance(connection, HTTPConnection):
            connection.close()

    def _asked(self, ids: Sequence[WriteId], server: Server, timeout: float) -> list[Visibility]:
        answers: list[Visibility] = []
        for part in _parts(list(ids)):
            # Only the first part waits, and where it decides something the rest is looked at.
            answers += self._answers(part, server, 0 if answers else timeout)
        return answers

    def _answers(self, ids: list[WriteId], server: Server, timeout: float) -> list[Visibility]:
        trust = trust_settings()
        text = outgoing_text(Lineage(ids).serialize(), trust, Purpose.REQUEST)
        nonce = secrets.token_hex(16)
        question = {"lineage": text, "timeout_ms": min(int(timeout * 1000), MOST_MS), "nonce": nonce}
        until = time.monotonic() + server.ask_timeout + timeout
        told = self._post(server, json.dumps(question).encode(), until)
        try:
            answer = json.loads(told)
            visible, waiting, refused = answer["visible"], dict(answer["not_yet"]), dict(answer["unproven"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _RefusedError(f"{server.address} gave no answer of that form") from None
        host = urlsplit(server.target).hostname or ""
        decision = judge_response_in(host, str(visible), answers_trust(trust, nonce), purpose=None)
        if not decision.accepted:
            raise _RefusedError(
                f"the answer of {server.address} is not believed: {decision.reason} {decision.about}".rstrip()
            )
        try:
            shown = Lineage.deserialize(decision.text) if isinstance(visible, str) else EMPTY
        except MalformedLineageError as error:
            raise _RefusedError(f"the answer of {server.address} cannot be read: {error}") from None
        found: list[Visibility] = []
        for write_id in ids:
            alone = Lineage([write_id]).serialize()
            if write_id in shown.of_store(write_id.store):
                found.append(VISIBLE)
            elif alone in refused:
                found.append(unproven(_words(refused[alone])))
            elif alone in waiting:
                found.append(not_yet(_words(waiting[alone])))
            else:
                found.append(NOT_YET)
        return found

    def _post(self, server: Server, body: bytes, until: float) -> bytes:
        """Return the body of the answer, which is there by `until`, however slowly it comes (DELEG-13)."""
        url = urlsplit(server.target)
        connection = server.session
        is_fresh = not isinstance(connection, HTTPConnection)
        if is_fresh:
            kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
            connection = server.session = kind(url.hostname or "", url.port)
        connection.response_class = partial(_TimedResponse, until=until)
        try:
            connection.timeout = _left(until)
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(_left(until))
            headers = {"content-type": "application/json"}
            connection.request("POST", url.path.rstrip("/") + PATH, body, headers)
            response = connection.getresponse()
            told: bytes = response.read(_MOST_TOLD + 1)
        except BaseException as error:
            self.close(server)
            if not is_fresh and isinstance(error, ConnectionError | HTTPException):
                return self._post(server, body, until)  # the owner had ended a connection that was idle
            raise
        if not response.isclosed():
            self.close(server)
        if response.status >= 500 or response.status == 429:
            raise OSError(f"{server.address} answers {response.status}")
        if len(told) > _MOST_TOLD:
            raise _RefusedError(f"the answer of {server.address} has no end")
        if response.length:
            raise OSError(f"the answer of {server.address} was cut short")
        if response.status == 200:
            return told
        cure = _CURES.get(response.status, _words(told[:_MOST_WORDS].decode("utf-8", "replace")))
        raise _RefusedError(f"{server.address} answers {response.status}: {cure}")


def _words(told: object) -> str:
    """Return what the other side says, as it may stand in ours (DELEG-13)."""
    return display.escaped(str(told)[:_MOST_WORDS])


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the owner's answer did not come in time")
    return left


class _TimedBytes(io.RawIOBase):
    """What a socket receives until a time: a socket's own time limit is one of each receiving."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float) -> None:
        self._raw, self._sock, self._until = raw, sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, until: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_TimedBytes(self.fp.detach(), sock, until))


def _parts(ids: list[WriteId]) -> Iterator[list[WriteId]]:
    """In parts of which a lineage keeps every one: it has limits, and joins versions of one key."""
    kept = Lineage.deserialize(Lineage(ids).serialize())
    if len(ids) <= 1 or (kept.is_complete() and len(kept.of_store(ids[0].store)) == len(ids)):
        yield ids
        return
    half = len(ids) // 2
    yield from _parts(ids[:half])
    yield from _parts(ids[half:])
