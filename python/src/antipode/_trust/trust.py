"""Trust: whose lineages are believed, and who may see ours (spec TRUST).

Each direction is judged before anything is parsed. A judgement is pure; `report` counts and logs what came of
it. `private`, the default, is for a first run and no border: a service that the outside can reach is an edge.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from antipode._base import logs
from antipode._base.observers import events
from antipode._base.seal_keys import NO_KEYS, Keys, Purpose
from antipode._base.settings import Trust, settings, settings_generation
from antipode._model import display
from antipode._trust.addresses import (
    is_hop,
    is_private,
    is_private_address,
    is_too_long,
    parse_address,
    peer_of,
    public_address_in,
)
from antipode._trust.peers import LABELS, Peers, lower
from antipode._trust.seal import SealState, open_seal, seal, strip_seal

__all__ = [
    "Caller",
    "Decision",
    "Direction",
    "Peers",
    "Purpose",
    "Trust",
    "TrustSettings",
    "is_hop",
    "is_private_address",
    "judge_message_in",
    "judge_message_out",
    "judge_request_in",
    "judge_request_out",
    "judge_response_in",
    "judge_response_out",
    "judged_host",
    "outgoing_text",
    "peer_of",
    "report",
    "trust_settings",
    "warn_of_forwarded",
]

_CLUSTER_SUFFIXES: Final = (".local", ".internal", ".svc", ".cluster.local", ".lan", ".test")
_NUMBER_LABEL: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
_HOST_PORT: Final = re.compile(r"([^:\[\]]+):([0-9]{0,5})", re.ASCII)
_LONGEST_HOST: Final = 512
LEEWAY_S: Final = 30.0
"""For how long after its expiry a lineage's seal is valid still: clocks differ (TRUST-20)."""


class Direction(StrEnum):
    """Which way a lineage was going; the attribute of metrics."""

    REQUEST_IN = "request_in"
    REQUEST_OUT = "request_out"
    RESPONSE_IN = "response_in"
    RESPONSE_OUT = "response_out"
    MESSAGE_IN = "message_in"
    MESSAGE_OUT = "message_out"
    SESSION_IN = "session_in"
    SESSION_OUT = "session_out"

    @property
    def words(self) -> str:
        """For a person: `request in`."""
        return self.value.replace("_", " ")


class Reason(StrEnum):
    """Why a lineage was not taken or not sent."""

    NONE = ""
    OFF = "trust is none"
    EDGE = "this is an edge"
    PEER = "the peer's address is public"
    NO_PEER = "the server names no peer"
    RESOLVED = "the server shows a public address, resolved from a header"
    HIDDEN = "the socket's peer cannot be told from what a header says"
    FORWARDED = "a forwarding header has a public address"
    TOO_LONG = "the forwarding headers have more than 64 hops or 4,096 octets"
    HOST = "the host is not approved"
    OPTION = "the client was told not to"
    SEAL = "the seal is not valid"


class Decision(NamedTuple):
    """Whether a lineage passes. `text` is it without its seal, and may be parsed only where `accepted`."""

    accepted: bool
    text: str = ""
    reason: Reason = Reason.NONE
    about: str = ""
    """The address, host or state of a seal that decided."""
    header: str = ""
    """The name of the forwarding header that decided."""


_NO_PEERS: Final = Peers()


@dataclass(frozen=True, slots=True)
class TrustSettings:
    """The settings of trust, as they are judged by. `seal_ttl`, `seal_rest_ttl` (0: no end) in seconds."""

    trust: Trust = Trust.PRIVATE
    edge: bool = False
    ignore_forwarded: bool = False
    peers: Peers = field(default=_NO_PEERS)
    keys: Keys = NO_KEYS
    seal_ttl: float = 300.0
    seal_rest_ttl: float = 0.0
    unix: bool = False
    """A request without a peer came by a Unix socket (TRUST-9)."""

    def at_edge(self, edge: bool | None) -> TrustSettings:
        """These, with what one middleware was told; an edge that the operator declared stays one."""
        return replace(self, edge=True) if edge and not self.edge else self

    @property
    def seal_length(self) -> int:
        """How many bytes a seal adds to what leaves."""
        return self.keys.seal_length if self.trust is Trust.KEY else 0


_cached: tuple[int, TrustSettings] = (-1, TrustSettings())


def trust_settings() -> TrustSettings:
    """What the process's settings say of trust, made anew only when they change."""
    global _cached
    now = settings()
    generation, found = _cached
    if generation != settings_generation():
        generation = settings_generation()
        ignore = now.forwarded == "ignore"
        peers, keys = Peers(now.peers), now.keys
        found = TrustSettings(
            now.trust, now.edge, ignore, peers, keys, now.seal_ttl, now.seal_rest_ttl, unix=now.trust_unix
        )
        _cached = (generation, found)
    return found


# Judging: the table of TRUST-3


_INSIDE: Final = Decision(True)


class Caller:
    """Who has sent a request; judged once, whatever the number of its texts (TRUST-32)."""

    __slots__ = ("_decision", "_forwarded", "_hidden", "_shown", "peer")

    def __init__(
        self,
        peer: str | None = None,
        forwarded: Iterable[tuple[str, str]] = (),
        shown: str | None = None,
        *,
        hidden: bool = False,
    ) -> None:
        """`peer`: the socket's; `forwarded`: forwarding headers (name, value); `shown`: what the server shows instead.

        `hidden`: the socket's peer is not to be seen, and `peer` may be a header's word (TRUST-33).
        """
        self.peer = peer
        self._forwarded = tuple(forwarded)
        self._shown = shown
        self._hidden = hidden
        self._decision: Decision | None = None

    def judge(self, trust: TrustSettings) -> Decision:
        """Return whether the caller is inside, by its addresses alone (TRUST-9 to TRUST-13, TRUST-32, TRUST-33)."""
        if self._decision is None:
            self._decision = self._judged(trust)
        return self._decision

    def _judged(self, trust: TrustSettings) -> Decision:
        if not (self._hidden or self._forwarded or self._shown) and is_private_address(self.peer):
            return _INSIDE  # the common case
        if not self._hidden and not is_private_address(self.peer, unix=trust.unix):
            return Decision(False, reason=Reason.PEER if self.peer else Reason.NO_PEER, about=self.peer or "")
        if not trust.ignore_forwarded:
            if is_too_long(self._forwarded):
                return Decision(False, reason=Reason.TOO_LONG, about=self.peer or "")
            found = public_address_in(self._forwarded)
            if found is not None:
                header, address = found
                return Decision(False, reason=Reason.FORWARDED, about=address, header=header)
        if self._hidden:
            return Decision(False, reason=Reason.HIDDEN, about=self.peer or "")
        if self._shown is not None and self._shown != self.peer:
            if not is_private_address(self._shown):
                return Decision(False, reason=Reason.RESOLVED, about=self._shown)
            if not is_hop(self._shown, self._forwarded):
                return Decision(False, reason=Reason.HIDDEN, about=self._shown)
        return Decision(True)

    def judge_request(self, text: str, trust: TrustSettings, now: float | None = None) -> Decision:
        """Return whether a lineage of this caller's request is taken: by its seal where seals are asked for."""
        if trust.edge:
            return Decision(False, reason=Reason.EDGE)
        if trust.trust is not Trust.PRIVATE:
            match trust.trust:
                case Trust.ALL:
                    return Decision(True, strip_seal(text))
                case Trust.KEY:
                    return _judge_seal(text, trust, now, Purpose.REQUEST)
            return Decision(False, reason=Reason.OFF)
        decision = self._decision or self.judge(trust)
        return Decision(True, strip_seal(text)) if decision.accepted else decision

    def judge_response(self, trust: TrustSettings) -> Decision:
        """Return whether a response may carry what the scope added: to a caller inside, even if it sent no lineage."""
        if trust.edge:
            return Decision(False, reason=Reason.EDGE)
        if trust.trust is Trust.ALL:
            return Decision(True)
        return Decision(False, reason=Reason.OFF) if trust.trust is Trust.NONE else self.judge(trust)


def judge_request_in(
    peer: str | None,
    forwarded: Iterable[tuple[str, str]],
    text: str,
    trust: TrustSettings,
    now: float | None = None,
) -> Decision:
    """Whether a request's lineage is taken: by socket peer, forwarding headers (name, value), and seal."""
    return Caller(peer, forwarded).judge_request(text, trust, now)


def judge_response_out(peer: str | None, forwarded: Iterable[tuple[str, str]], trust: TrustSettings) -> Decision:
    """Return whether a response to this caller may carry what the scope added."""
    return Caller(peer, forwarded).judge_response(trust)


def judge_request_out(host: str, trust: TrustSettings) -> Decision:
    """Whether a request to this host (name or address, with or without port) may carry a lineage."""
    if trust.trust is Trust.NONE:
        return Decision(False, reason=Reason.OFF, about=host)
    if trust.trust is Trust.ALL and not trust.edge:
        return Decision(True)
    if is_approved(host, trust):
        return Decision(True)
    return Decision(False, reason=Reason.HOST, about=host)


def judge_response_in(
    host: str,
    text: str,
    trust: TrustSettings,
    now: float | None = None,
    purpose: Purpose | None = Purpose.RESPONSE,
) -> Decision:
    """Return whether what this host's response brought back is taken. `purpose`: None where `trust` has its keys."""
    decision = judge_request_out(host, trust)
    if trust.trust is Trust.KEY and not (trust.edge and not decision.accepted):
        return _judge_seal(text, trust, now, purpose)
    return Decision(True, strip_seal(text)) if decision.accepted else decision


def judge_message_in(
    text: str,
    trust: TrustSettings,
    allowed: bool | None = None,
    now: float | None = None,
    purpose: Purpose = Purpose.MESSAGE,
) -> Decision:
    """Whether a message's or value's lineage is taken; `allowed` is `lineage_in`, None if unsaid."""
    if allowed is False:
        return Decision(False, reason=Reason.OPTION)
    if trust.trust is Trust.NONE:
        return Decision(False, reason=Reason.OFF)
    if trust.edge and not allowed:
        return Decision(False, reason=Reason.EDGE)
    return _judge_seal(text, trust, now, purpose) if trust.trust is Trust.KEY else Decision(True, strip_seal(text))


def judge_message_out(trust: TrustSettings, allowed: bool | None = None) -> Decision:
    """Whether a message or value may carry a lineage; `allowed` is `lineage_out`, None if unsaid."""
    if allowed is False:
        return Decision(False, reason=Reason.OPTION)
    return Decision(False, reason=Reason.OFF) if trust.trust is Trust.NONE else Decision(True)


def outgoing_text(text: str, trust: TrustSettings, purpose: Purpose | None, now: float | None = None) -> str:
    """Return the lineage text to send: sealed under `key` (TRUST-23). `purpose`: None where `trust` has its keys."""
    if trust.trust is not Trust.KEY:
        return text
    ttl = (trust.seal_rest_ttl or None) if purpose is not None and purpose.is_rest else trust.seal_ttl
    keys = trust.keys if purpose is None else trust.keys.sealing(purpose)
    return seal(text, keys, time.time() if now is None else now, ttl)


def _judge_seal(text: str, trust: TrustSettings, now: float | None, purpose: Purpose | None) -> Decision:
    keys = trust.keys if purpose is None else trust.keys.sealing(purpose)
    endless = purpose is not None and purpose.is_rest
    body, state = open_seal(text, keys, time.time() if now is None else now, leeway=LEEWAY_S, endless=endless)
    # A genuine one that has expired only makes a barrier wait for what was once true: it is taken, and said (TRUST-37).
    if state is SealState.VALID or state is SealState.EXPIRED:
        return Decision(True, body, *((Reason.SEAL, state) if state is SealState.EXPIRED else ()))
    return Decision(False, reason=Reason.SEAL, about=state)


def judged_host(host: str, proxy: str | None) -> str:
    """Return the host that decides on a request in plain text: its own, or the one of the proxy (TRUST-35)."""
    trust = trust_settings()
    return host if proxy is None or not is_approved(host, trust) or is_approved(proxy, trust) else proxy


def is_approved(host: str, trust: TrustSettings) -> bool:
    """Whether a host is inside, by its name or literal address alone: TRUST-15 to TRUST-17."""
    if len(host) > _LONGEST_HOST:
        return False
    return _is_inside(host) or trust.peers.lists(_bare_host(host)[0])


@lru_cache(maxsize=4096)
def _is_inside(host: str) -> bool:
    name, dotted = _bare_host(host)
    address = parse_address(name)
    if address is not None:
        return is_private(address)
    if name == "localhost":
        return True
    # Ideographic full stops and the like would be dots to a resolver; numbers would be addresses.
    if LABELS.fullmatch(name) is None or _NUMBER_LABEL.fullmatch(name.rpartition(".")[2]):
        return False
    return name.endswith(_CLUSTER_SUFFIXES) or ("." not in name and not dotted)


def _bare_host(host: str) -> tuple[str, bool]:
    """A host in lower case without port and trailing dot, and whether it had that dot."""
    name = lower(host.strip(" \t"))
    match = _HOST_PORT.fullmatch(name)
    if match is not None and int(match[2] or 0) <= 65535:
        name = match[1]
    return (name[:-1], True) if name.endswith(".") else (name, False)


# Saying what came of it (TRUST-27 to TRUST-30)


def report(decision: Decision, direction: Direction, sender: str = "") -> None:
    """Counts a lineage that did not pass, and says once a minute which setting would change that."""
    events.on_lineage_dropped("seal" if decision.reason is Reason.SEAL else "untrusted", direction.value)
    cure = _CURES.get(decision.reason)
    if cure is None:
        return  # the operator asked for exactly this
    outward = direction in {Direction.REQUEST_OUT, Direction.RESPONSE_OUT, Direction.MESSAGE_OUT}
    verb = "did not send a lineage to" if outward else "dropped a lineage from"
    if decision.accepted:
        verb = "took an old lineage from"
    where = display.shown(sender if decision.reason is Reason.SEAL else decision.about)
    reason = decision.reason.value
    if decision.reason is Reason.FORWARDED:
        reason = f"{decision.header} has a public address"
    elif decision.reason is Reason.SEAL:
        reason = f"{_SEAL_WORDS[SealState(decision.about)]}"
    # The kind leaves the address out: an attacker with many of them must not fill the log.
    logs.warn(
        f"trust {direction} {decision.reason} {decision.header}",
        f"{verb} {where or 'a peer without a name'} ({direction.words}): {reason}. {cure}",
        count_as="dropped",
        code=_code_of(decision, outward=outward),
    )


def _code_of(decision: Decision, *, outward: bool) -> str:
    """Return the message code of a lineage that did not pass, or came late (OBS-14)."""
    if outward:
        return "AP404"
    if decision.accepted:
        return "AP409"
    return "AP412" if decision.reason is Reason.HIDDEN else "AP403"


_CURES: Final[Mapping[Reason, str]] = {
    Reason.FORWARDED: (
        "If this is the edge set ANTIPODE_EDGE=true; if applications copy that header inside, "
        "ANTIPODE_FORWARDED=ignore."
    ),
    Reason.PEER: (
        "If this is the edge set ANTIPODE_EDGE=true; if callers inside have public addresses, seal "
        "lineages with ANTIPODE_KEYS_FILE."
    ),
    Reason.NO_PEER: "If it listens on a Unix socket set ANTIPODE_TRUST_UNIX=true.",
    Reason.RESOLVED: (
        "If applications copy the header inside, let the server not resolve it (uvicorn: --no-proxy-headers) and set "
        "ANTIPODE_FORWARDED=ignore."
    ),
    Reason.HIDDEN: (
        "Put Antipode's middleware outside of what sets the peer's address from a header, or seal lineages with "
        "ANTIPODE_KEYS_FILE."
    ),
    Reason.TOO_LONG: "If this is the edge set ANTIPODE_EDGE=true; else do not copy those headers from hop to hop.",
    Reason.HOST: "If it is one of yours add it to ANTIPODE_PEERS.",
    Reason.SEAL: "Give this service and its callers the same keys (ANTIPODE_KEYS_FILE) and the right time.",
}
_SEAL_WORDS: Final[Mapping[SealState, str]] = {
    SealState.MISSING: "it has no seal",
    SealState.EXPIRED: "its seal has expired (ANTIPODE_SEAL_TTL_S, ANTIPODE_SEAL_REST_TTL_S)",
    SealState.UNKNOWN_KEY: "its seal is by a key that is not known here",
    SealState.BAD: "its seal is not right",
}


def warn_of_forwarded(host: str, headers: Iterable[tuple[str, str]], trust: TrustSettings) -> None:
    """Says at the sender that a lineage leaves beside a forwarding header for which the receiver drops it."""
    if trust.trust is not Trust.PRIVATE or trust.ignore_forwarded:
        return
    found = public_address_in(headers)
    if found is not None:
        header, address = found
        logs.warn(
            f"trust beside {header}",
            f"sent a lineage to {display.shown(host)} beside {header}, which has a public address "
            f"({display.shown(address)}): the receiver drops it. Do not copy that header, or set "
            "ANTIPODE_FORWARDED=ignore at the receiver and here.",
            count_as="sent",
            code="AP414",
        )
