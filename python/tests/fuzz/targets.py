"""What is fuzzed: functions that take any octets, and fail where something is not as it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final

import antipode
from antipode import asgi, wsgi
from antipode._base import logs
from antipode._base.seal_keys import Keys
from antipode._base.settings import Trust, reset_settings
from antipode._facade.configuration import configure
from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode._scope.scope import Scope
from antipode._store.envelope import BEGIN, FORM, close_envelope, open_envelope
from antipode._trust.seal import SealState, open_seal, seal
from antipode._trust.trust import Direction, TrustSettings, judge_request_in, report
from slow_reader import Refused, judged, slow_read

TOKENS: Final = (
    *["1", "~", ".", "..", "._.", "~_.", "~_.i", "~_.h", "_", "-", "0", "05", "s", "t", "a-b", "k", "e", "m", "x"],
    *["_2E", "_FF", "_00", "_41", "_2e", "18446744073709551615", "18446744073709551616", "42", "1~s..e.1", "~t.k.e.7"],
    *["~s.k._.m", "1~s..e.5~t..f.6", ",", ";", "=", "%", "%7E", "%2C", "%00", " ", "\t", "\r\n", "+", '"', "\x00", "é"],
    *["antipode", "antipode=", "Antipode", "key=value", "10.0.0.1", "127.0.0.1", "::1", "[fc00::1]", "8.8.8.8", "for="],
    *["unknown", "_hidden", "::ffff:10.1.2.3", "[2001:db8::1]:80", "10.0.0.1:80", "proto=https", "a" * 63, "b" * 300],
    *["1~_.h.k.9999999999.", "00112233445566778899aabbccddeeff", "public", "max-age=0"],
)
"""Pieces from which texts that mean something are soon found."""

KEYS: Final = Keys({"k": b"k" * 16, "old": b"o" * 32})
NOW: Final = 1_700_000_000
PUBLIC: Final = ("8.8.8.8", "203.0.113.9", "2001:4860:4860::8888", "172.32.0.1", "192.169.0.1", "100.128.0.1")


class Source:
    """Draws what a target needs from the fuzzer's octets; there is always something."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, below: int) -> int:
        """A number from 0."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % below

    def text(self, *, last: bool = False) -> str:
        """A text: of octets as they are, or of tokens."""
        length = len(self._data) - self._at - 1 if last else self.number(64)
        octets = self._data[self._at + 1 : self._at + 1 + max(length, 0)]
        plain = self.number(2)
        self._at += len(octets)
        return octets.decode("latin-1") if plain else "".join(TOKENS[octet % len(TOKENS)] for octet in octets)

    def headers(self) -> list[tuple[str, str]]:
        """Up to five header lines, of names that matter; some are as long as a server lets them be."""
        names = ("baggage", "antipode-lineage", "Baggage", "uberctx-antipode", "x-forwarded-for", "forwarded", "accept")
        return [(names[self.number(len(names))], self._value()) for _ in range(self.number(6))]

    def _value(self) -> str:
        value = self.text()
        return ",".join([value] * (32_768 // (len(value) + 1))) if self.number(64) == 63 else value


def parser(data: bytes) -> None:
    """The reader agrees with the slow one, and what it takes can be written and read again (WIRE-1 to WIRE-26)."""
    judged(Source(data).text(last=True))


def algebra(data: bytes) -> None:
    """What two texts mean joins, compares and fits a budget by the laws (LIN-12, LIN-13, WIRE-32)."""
    source = Source(data)
    budget = source.number(200)
    found = []
    for text in (source.text(), source.text(last=True)):
        try:
            found.append(Lineage.deserialize(text))
        except MalformedLineageError:
            found.append(EMPTY.marked_incomplete())
    a, b = found
    joined = a | b
    assert joined == b | a
    assert joined.incomplete == (b | a).incomplete
    assert a <= joined
    assert b <= joined
    assert joined | a == joined | b == joined
    assert (a <= b) is (joined == b)
    assert b | a.added_to(b) == joined
    assert a.without(b) | b == joined
    fitted = joined.fit(budget)
    assert len(fitted.serialize()) <= max(budget, len("1~_.i"))
    lost = set(joined.beyond(fitted).stores)
    assert "" in fitted.incomplete or lost <= fitted.incomplete
    for write_id in (
        WriteId.position("s", "e", 3),
        WriteId("s", b"k", Ordered("e", 5)),
        WriteId("t", b"k", Opaque("m")),
    ):
        grown = Lineage.deserialize(a.including(write_id).serialize())
        assert write_id in grown
        assert a <= grown | a


def header(data: bytes) -> None:
    """Values of one carrier never raise, and none is lost without a trace (WIRE-28 to WIRE-30)."""
    source = Source(data)
    values = [source.text() for _ in range(source.number(5))]
    texts = wire.unwrap_header(values)
    assert bool(texts) is bool(values)
    for text in texts:
        judged(text)


def seals(data: bytes) -> None:
    """No text passes as sealed that was not; opening one never raises (TRUST-18 to TRUST-23)."""
    source = Source(data)
    place, octet = source.number(200), source.number(256)
    text = source.text(last=True)
    opened = open_seal(text, KEYS, NOW)
    assert opened.state is not SealState.VALID, "a forged seal"
    try:
        honest = Lineage.deserialize(text).serialize()
    except MalformedLineageError:
        honest = "1~s..e.5"
    sealed = seal(honest, KEYS, NOW, 300)
    assert open_seal(sealed, KEYS, NOW) == (honest, SealState.VALID)
    assert open_seal(sealed, KEYS, NOW + 301).state is SealState.EXPIRED
    place %= len(sealed)
    forged = sealed[:place] + chr(octet) + sealed[place + 1 :]
    if forged != sealed:
        assert open_seal(forged, KEYS, NOW).state is not SealState.VALID, f"{forged!r} passes for {sealed!r}"


def forwarded(data: bytes) -> None:
    """Nothing in forwarding headers raises, and no public address among them is overlooked (TRUST-9 to TRUST-14)."""
    source = Source(data)
    public = PUBLIC[source.number(len(PUBLIC))]
    garbage = source.text()
    headers = source.headers()
    trust = TrustSettings()
    report(judge_request_in("127.0.0.1", headers, "1", trust), Direction.REQUEST_IN, "127.0.0.1")
    # A quotation mark that is never closed may swallow what follows; what cannot be parsed is public, so this holds.
    for element in (f"{garbage},{public}", f"{public},{garbage}"):
        assert not judge_request_in("127.0.0.1", [("X-Forwarded-For", element)], "1", trust).accepted
    quoted = f'"[{public}]"' if ":" in public else public
    assert not judge_request_in("::1", [("Forwarded", f"for={quoted},{garbage}")], "1", trust).accepted
    assert not judge_request_in(f"{public}{garbage}", [], "1", trust).accepted


def _expected(headers: Iterable[tuple[str, str]]) -> bool | None:
    """Whether something of these headers must be missing from the scope; None where they are not trusted."""
    trusted = judge_request_in(
        "127.0.0.1", [header for header in headers if "forwarded" in header[0].lower()], "1", TrustSettings()
    ).accepted
    if not trusted:
        return None
    own = [value for name, value in headers if name.lower() == "antipode-lineage"]
    return any(_cannot_be_read(text) for text in wire.unwrap_header(own))


def _cannot_be_read(text: str) -> bool:
    try:
        slow_read(text)
    except Refused:
        return True
    return False


def _check_scope(scope: Scope, headers: list[tuple[str, str]]) -> None:
    missing = _expected(headers)
    if missing is None:
        assert scope.lineage == EMPTY
        assert not scope.lineage.incomplete
    elif missing:
        assert "" in scope.lineage.incomplete, "something was lost that looks like nothing"
    scope.append(WriteId.position("written", "e", 1))


def asgi_middleware(data: bytes) -> None:
    """Hostile headers never end a request, and never lose a lineage without a mark (PROP-22, PROP-23)."""
    source = Source(data)
    headers = source.headers()
    reply = source.text()
    ran: list[Scope] = []

    async def app(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        current = antipode.current_scope()
        assert current is not None
        assert not any(name.lower() == b"antipode-lineage" for name, _ in scope["headers"])
        _check_scope(current, headers)
        ran.append(current)
        answer = [(b"cache-control", reply.encode("latin-1", "replace")), (b"antipode-lineage", b"1~mine..e.1")]
        await send({"type": "http.response.start", "status": 200, "headers": answer})
        await send({"type": "http.response.body", "body": b"ok"})

    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "client": ("127.0.0.1", 4711),
        "headers": [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers],
    }
    asyncio.run(asgi.Middleware(app)(scope, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert len(ran) == 1
    assert ran[0].closed


def wsgi_middleware(data: bytes) -> None:
    """The same for WSGI."""
    source = Source(data)
    lines: dict[str, list[str]] = {}
    for name, value in source.headers():
        lines.setdefault(name.lower(), []).append(value)
    headers = [(name, ",".join(values)) for name, values in lines.items()]
    ran: list[Scope] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        current = antipode.current_scope()
        assert current is not None
        assert "HTTP_ANTIPODE_LINEAGE" not in environ or not wire.unwrap_header([environ["HTTP_ANTIPODE_LINEAGE"]])
        _check_scope(current, headers)
        ran.append(current)
        start_response("200 OK", [("antipode-lineage", "1~mine..e.1")])
        return [b"ok"]

    sent: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, answer: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        sent.append((status, answer))
        return lambda _: None

    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers} | {
        "REMOTE_ADDR": "127.0.0.1"
    }
    response: Any = wsgi.Middleware(app)(environ, start_response)
    assert b"".join(response) == b"ok"
    response.close()
    assert [status for status, _ in sent] == ["200 OK"]
    assert len(ran) == 1
    assert ran[0].closed


def message(data: bytes) -> None:
    """A message's header never raises, and is read or marks the scope (PROP-17, WIRE-25)."""
    source = Source(data)
    shape, value = source.number(6), source.text(last=True)
    octets = value.encode("latin-1", "replace")
    given: Any = (
        value,
        octets,
        {"antipode-lineage": value},
        {"Antipode_Lineage": octets},
        {"antipode-lineage": [value], "x": 1},
        {"antipode-lineage": octets, "antipode_lineage": value},
    )[shape]
    with antipode.message_scope(given) as scope:
        if shape < 3:
            read_as = octets.decode("latin-1") if shape == 1 else value
            # A text that is not there is none; a header that is there and empty was emptied on the way.
            missing = any(_cannot_be_read(text) for text in wire.unwrap_header([read_as])) and bool(value or shape > 1)
            assert not missing or "" in scope.lineage.incomplete
        scope.append(WriteId.position("written", "e", 1))
        assert Lineage.deserialize(antipode.serialize()) <= scope.lineage
    with configured(trust=Trust.KEY, keys={"k": b"a" * 24}), antipode.message_scope(given) as scope:
        assert not scope.lineage.stores, "an unsealed lineage under key"


class configured:
    """Settings for a block."""

    def __init__(self, **words: Any) -> None:
        self._words = words

    def __enter__(self) -> None:
        configure(**self._words)

    def __exit__(self, *_: object) -> None:
        reset_settings()
        logs.reset()


def envelope(data: bytes) -> None:
    """No value is lost, whatever its octets are; what was in an envelope goes back into the same (SHIM-34, SHIM-35)."""
    for octets in (data, BEGIN + data, BEGIN + FORM + data, BEGIN + FORM + b"\x00" + data):
        opened = open_envelope(octets)
        if opened.text is None:
            assert opened.value == octets
            assert bool(opened.fault) == octets.startswith(BEGIN)
        else:
            assert octets.endswith(opened.value)
            if opened.text.isascii() and (opened.text or opened.value.startswith(BEGIN)):
                assert close_envelope(opened.value, opened.text) == octets
        again = open_envelope(close_envelope(octets, ""))
        assert (again.value, again.text or "", again.fault) == (octets, "", "")


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "parser": parser,
    "algebra": algebra,
    "header": header,
    "seals": seals,
    "forwarded": forwarded,
    "asgi": asgi_middleware,
    "wsgi": wsgi_middleware,
    "message": message,
    "envelope": envelope,
}
