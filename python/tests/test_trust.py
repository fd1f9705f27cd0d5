"""Trust (spec TRUST): addresses, hosts, the table of directions, and what is said of what is dropped."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import antipode
import pytest
from antipode._base import logs
from antipode._base.seal_keys import Keys, Purpose
from antipode._base.settings import Trust, reset_settings
from antipode._facade.configuration import configure
from antipode._model.errors import ConfigurationError
from antipode._propagation.carriers import read
from antipode._trust import trust as trust_module
from antipode._trust.seal import seal
from antipode._trust.trust import (
    Decision,
    Direction,
    Peers,
    Reason,
    TrustSettings,
    is_approved,
    is_private_address,
    judge_message_in,
    judge_message_out,
    judge_request_in,
    judge_request_out,
    judge_response_in,
    judge_response_out,
    outgoing_text,
    report,
    trust_settings,
    warn_of_forwarded,
)
from antipode.propagation import Inbound
from hypothesis import given
from hypothesis import strategies as st

TEXT = "1~blog-posts..8371ab90c2d4e6f1.1042"
NOW = 1_800_000_000.0
KEYS = Keys({"one": b"k" * 32})
SEALED = seal(TEXT, KEYS.sealing(Purpose.REQUEST), NOW, 300)
PRIVATE = TrustSettings()
ALL = TrustSettings(Trust.ALL)
NONE = TrustSettings(Trust.NONE)
KEY = TrustSettings(Trust.KEY, keys=KEYS)
INSIDE, OUTSIDE = "10.1.2.3", "203.0.113.9"
XFF_OUTSIDE = [("X-Forwarded-For", "203.0.113.9, 10.0.0.1")]


def sealed(purpose: Purpose) -> str:
    """Without an end where it rests (TRUST-21)."""
    return seal(TEXT, KEYS.sealing(purpose), NOW, None if purpose.is_rest else 300)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    reset_settings()
    logs.reset()
    yield
    reset_settings()


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"),
        *("192.168.0.0", "192.168.255.255", "169.254.0.1", "100.64.0.0", "100.127.255.255"),
        *("::1", "fc00::", "fdff::1", "fe80::1", "febf::1", "fe80::1%eth0", "[fd00::1]", "[fd00::1]:8080"),
        *("::ffff:10.0.0.1", "::ffff:7f00:1", "[::ffff:192.168.1.1]:1", "10.0.0.1:80", '"10.0.0.1:80"'),
        *(" 10.0.0.1 ", '"[fd00::1]:80"', "FD00::1", "ipv4:127.0.0.1:50051", "ipv6:%5B::1%5D:50051"),
        *("ipv6:[::1]:50051", "unix:", "unix:/run/app.sock", "/run/app.sock", "testclient"),
    ],
)
def test_private_addresses(text: str | None) -> None:
    """TRUST-6, TRUST-7, TRUST-9."""
    assert is_private_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *("203.0.113.9", "198.18.0.1", "192.0.2.1", "240.0.0.1", "255.255.255.255", "0.0.0.0", "8.8.8.8"),
        *("126.255.255.255", "128.0.0.0", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0"),
        *("192.167.255.255", "192.169.0.0", "169.253.0.0", "169.255.0.0", "100.63.255.255", "100.128.0.0"),
        *("::", "::2", "2001:db8::1", "fbff::1", "fe00::1", "fec0::1", "ff02::1", "::ffff:203.0.113.9"),
        *("::10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::", "unknown", "_hidden", "localhost", "nonsense"),
        *("010.0.0.1", "10.1", "167772161", "0x7f000001", "10.0.0.1:99999", "10.0.0.1:http", "[10.0.0.1]"),
        *("[::1", "::1]", "[::1]x", "10.0.0.1 10.0.0.2", "10.0.0.1,", "١٢٧.0.0.1", "1" * 5000, "\x00"),
    ],
)
def test_public_addresses_and_what_cannot_be_parsed(text: str) -> None:
    """TRUST-6, TRUST-8."""
    assert not is_private_address(text)


@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    is_private_address(text)
    is_approved(text, PRIVATE)
    judge_request_in(text, [("x-forwarded-for", text), ("forwarded", text)], text, PRIVATE)
    judge_request_in("::1", [("x-forwarded-for", text), ("forwarded", text)], text, KEY)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Forwarded-For", "10.0.0.1")],
        [("x-forwarded-for", "10.0.0.1, , [fd00::1]:80,192.168.0.1:5")],
        [("X-Forwarded-For", "")],
        [("Forwarded", "for=10.0.0.1;proto=https;by=10.0.0.2")],
        [("forwarded", 'For="[fd00::1]:80", for=192.168.0.9')],
        [("Forwarded", 'host="a,b;for=8.8.8.8"; for=10.0.0.1')],
        [("Forwarded", "proto=https")],
        [("X-Real-IP", "203.0.113.9")],
    ],
)
def test_a_request_that_was_only_inside_is_taken(headers: list[tuple[str, str]]) -> None:
    """TRUST-10 to TRUST-12, TRUST-14."""
    assert judge_request_in(INSIDE, headers, TEXT, PRIVATE) == Decision(True, TEXT)
    assert judge_response_out(INSIDE, headers, PRIVATE).accepted


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Forwarded-For", "203.0.113.9")],
        [("X-Forwarded-For", "203.0.113.9, 10.0.0.1")],
        [("X-Forwarded-For", "10.0.0.1, 203.0.113.9")],
        [("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", "203.0.113.9")],
        [("X-Forwarded-For", "unknown")],
        [("X-Forwarded-For", "testclient")],
        [("Forwarded", "for=203.0.113.9")],
        [("Forwarded", 'for="[2001:db8::1]:4711"')],
        [("Forwarded", "for=10.0.0.1, for=203.0.113.9")],
        [("Forwarded", "proto=https;FOR=203.0.113.9")],
        [("Forwarded", "for=10.0.0.1;by=203.0.113.9")],
        [("Forwarded", "for=_gazonk")],
        [("Forwarded", "for=")],
        [("Forwarded", '"for=10.0.0.1')],
        [("Forwarded", "10.0.0.1")],
        [("Forwarded", 'for="10.0.0.1')],
        [("X-Forwarded-For", "10.0.0.1"), ("Forwarded", "for=203.0.113.9")],
    ],
)
def test_a_request_from_outside_is_dropped_and_gets_no_lineage_back(headers: list[tuple[str, str]]) -> None:
    """TRUST-10 to TRUST-13."""
    decision = judge_request_in(INSIDE, headers, TEXT, PRIVATE)
    assert (decision.accepted, decision.reason, decision.text) == (False, Reason.FORWARDED, "")
    assert not judge_response_out(INSIDE, headers, PRIVATE).accepted
    assert judge_request_in(INSIDE, headers, TEXT, replace(PRIVATE, ignore_forwarded=True)).accepted
    assert not judge_request_in(OUTSIDE, headers, TEXT, replace(PRIVATE, ignore_forwarded=True)).accepted


def test_the_table_of_directions() -> None:
    """TRUST-3, TRUST-4: the rows one by one."""

    def row(trust: TrustSettings, peer: str, host: str, text: str) -> str:
        return "".join(
            "y" if decision.accepted else "-"
            for decision in (
                judge_request_in(peer, [], text or sealed(Purpose.REQUEST), trust, NOW),
                judge_request_out(host, trust),
                judge_response_in(host, text or sealed(Purpose.RESPONSE), trust, NOW),
                judge_response_out(peer, [], trust),
                judge_message_in(text or sealed(Purpose.MESSAGE), trust, None, NOW),
                judge_message_out(trust),
            )
        )

    inside, outside = (INSIDE, "post-storage"), (OUTSIDE, "api.example.com")
    assert row(PRIVATE, *inside, TEXT) == "yyyyyy"
    assert row(PRIVATE, *outside, TEXT) == "----yy"
    assert row(ALL, *outside, TEXT) == "yyyyyy"
    assert row(NONE, *inside, TEXT) == "------"
    assert row(KEY, *inside, "") == "yyyyyy"
    assert row(KEY, *inside, TEXT) == "-y-y-y"
    assert row(KEY, *outside, "") == "y-y-yy"
    for trust in (PRIVATE, ALL):
        assert row(replace(trust, edge=True), *inside, TEXT) == "-yy--y"
        assert row(replace(trust, edge=True), *outside, TEXT) == "-----y"
    assert row(replace(KEY, edge=True), *inside, "") == "-yy--y"
    assert row(replace(KEY, edge=True), *outside, "") == "-----y"


def test_the_options_of_a_wrapped_client() -> None:
    """TRUST-31, TRUST-4: lineage_in=True is the operator's word at an edge, not over `none` and `key`."""
    edge = replace(PRIVATE, edge=True)
    assert judge_message_in(TEXT, edge, True).accepted
    assert not judge_message_in(TEXT, PRIVATE, False).accepted
    assert not judge_message_out(PRIVATE, False).accepted
    assert not judge_message_in(TEXT, NONE, True).accepted
    assert not judge_message_out(NONE, True).accepted
    assert not judge_message_in(TEXT, replace(KEY, edge=True), True, NOW).accepted
    assert judge_message_in(sealed(Purpose.MESSAGE), replace(KEY, edge=True), True, NOW).accepted


@pytest.mark.parametrize("trust", [PRIVATE, ALL])
def test_a_seal_is_taken_off_unread_where_trust_is_not_key(trust: TrustSettings) -> None:
    """TRUST-23."""
    assert judge_request_in(INSIDE, [], SEALED, trust).text == TEXT
    assert judge_response_in("post-storage", SEALED, trust).text == TEXT
    assert judge_message_in(SEALED, trust).text == TEXT


def test_what_leaves_under_key_is_sealed() -> None:
    """TRUST-21, TRUST-23."""
    for purpose in Purpose:
        assert outgoing_text(TEXT, KEY, purpose, NOW) == sealed(purpose)
        assert outgoing_text(TEXT, PRIVATE, purpose, NOW) == TEXT
    rest = replace(KEY, seal_rest_ttl=86400.0)
    assert f".{int(NOW) + 86400}." in outgoing_text(TEXT, rest, Purpose.VALUE, NOW)
    assert f".{int(NOW) + 300}." in outgoing_text(TEXT, rest, Purpose.RESPONSE, NOW)
    assert KEY.seal_length == len(SEALED) - len(TEXT)
    assert PRIVATE.seal_length == 0


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8080", "localhost.", "post-storage", "post-storage:8080", "post_storage"),
        *("10.0.0.1", "10.0.0.1:80", "[::1]:80", "::1", "[fd00::1]", "100.64.1.1", "a.local", "a.internal."),
        *("a.b.svc", "a.default.svc.cluster.local", "a.lan", "a.test", "A.TEST:1", "web1"),
    ],
)
def test_hosts_that_are_inside(host: str) -> None:
    """TRUST-15."""
    assert is_approved(host, PRIVATE)


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", "api.example.com", "api.example.com:80", "203.0.113.9", "[2001:db8::1]:80"),
        *("localhost.example.com", "a.local.example.com", "local.", "svc.example", "example.com."),
        *("2130706433", "134744072", "0x08080808", "0x8.8", "010.0.0.1", "10.1", "a.5", "web.", "com."),
        *("例。com", "a。local", "a b", "user@host", "host/path", "http://localhost", "x" * 600),
        *("10.0.0.1:99999999", "[::1", "-\n"),
    ],
)
def test_hosts_that_are_not_inside(host: str) -> None:
    """TRUST-15, TRUST-17: no name look-up, and no name that a resolver reads as an address."""
    assert not is_approved(host, PRIVATE)
    assert judge_request_out(host, PRIVATE) == Decision(False, reason=Reason.HOST, about=host)


def test_peers_add_to_what_is_inside() -> None:
    """TRUST-16."""
    items = ("api.example.com", ".example.org", "203.0.113.0/24", "2001:db8::7", "*")
    trust = replace(PRIVATE, peers=Peers(items[:-1]))
    for host in (
        "API.example.com:443",
        "a.example.org",
        "a.b.example.org.",
        "203.0.113.77:80",
        "[2001:db8::7]",
    ):
        assert is_approved(host, trust), host
        assert not is_approved(host, PRIVATE), host
    for host in (
        "example.org",
        "example.com",
        "x-api.example.com",
        "aexample.org",
        "203.0.114.1",
        "2001:db8::8",
    ):
        assert not is_approved(host, trust), host
    assert is_approved("localhost", trust)
    assert is_approved("anything.example", replace(PRIVATE, peers=Peers(items)))


@pytest.mark.parametrize("item", ["", ".", "a b", "10.0.0.0/33", "10.0.0.1/8", "*.example.com", "http://a", "a/b"])
def test_a_bad_peer_is_a_configuration_error(item: str) -> None:
    """TRUST-16."""
    with pytest.raises(ConfigurationError, match="ANTIPODE_PEERS"):
        Peers([item])


def test_the_settings_of_the_process_are_followed_while_it_runs() -> None:
    assert trust_settings() == PRIVATE
    configure(trust="all", forwarded="ignore", peers=[".example.org"])
    assert trust_settings().trust is Trust.ALL
    assert trust_settings().ignore_forwarded
    assert is_approved("a.example.org", trust_settings())
    assert trust_settings() is trust_settings()


def test_one_line_a_minute_names_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-27, OBS-7: the words of the documentation."""
    decision = judge_request_in(INSIDE, XFF_OUTSIDE, TEXT, PRIVATE)
    with caplog.at_level(logging.WARNING, "antipode"):
        for _ in range(5):
            report(decision, Direction.REQUEST_IN)
    assert [record.getMessage() for record in caplog.records] == [
        "dropped a lineage from 203.0.113.9 (request in): X-Forwarded-For has a public address. "
        "If this is the edge set ANTIPODE_EDGE=true; if applications copy that header inside, "
        "ANTIPODE_FORWARDED=ignore. [AP403] dropped=1"
    ]


def test_a_refused_host_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-29."""
    with caplog.at_level(logging.WARNING, "antipode"):
        report(judge_request_out("api.example.com", PRIVATE), Direction.REQUEST_OUT)
    assert "api.example.com (request out)" in caplog.text
    assert "ANTIPODE_PEERS" in caplog.text


def test_what_the_operator_asked_for_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "antipode"):
        report(judge_request_in(INSIDE, [], TEXT, NONE), Direction.REQUEST_IN)
        report(judge_request_in(INSIDE, [], TEXT, replace(PRIVATE, edge=True)), Direction.REQUEST_IN)
    assert not caplog.records


def test_the_log_shows_no_control_characters_from_outside(caplog: pytest.LogCaptureFixture) -> None:
    decision = judge_request_in(INSIDE, [("x-forwarded-for", "\x1b[31mroot\r\n" + "x" * 900)], TEXT, PRIVATE)
    with caplog.at_level(logging.WARNING, "antipode"):
        report(decision, Direction.REQUEST_IN)
    message = caplog.records[0].getMessage()
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TEXT, "no seal"),
        (seal(TEXT, KEYS.sealing(Purpose.REQUEST), NOW - 999, 9), "took an old lineage from 10.1.2.3"),
        (SEALED[:-1] + "!", "not right"),
    ],
)
def test_a_refused_seal_says_what_is_wrong(text: str, says: str, caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-20, TRUST-27."""
    decision = judge_request_in(INSIDE, [], text, KEY, NOW)
    assert decision.reason is Reason.SEAL
    assert decision.accepted is ("old" in says)
    with caplog.at_level(logging.WARNING, "antipode"):
        report(decision, Direction.REQUEST_IN, "10.1.2.3")
    assert says in caplog.text
    assert "ANTIPODE_KEYS_FILE" in caplog.text


def test_the_sender_says_that_the_receiver_will_drop_it(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-30."""
    with caplog.at_level(logging.WARNING, "antipode"):
        warn_of_forwarded("b", [("X-Forwarded-For", "10.0.0.1")], PRIVATE)
        warn_of_forwarded("b", XFF_OUTSIDE, replace(PRIVATE, ignore_forwarded=True))
        warn_of_forwarded("b", XFF_OUTSIDE, ALL)
        assert not caplog.records
        warn_of_forwarded("b", XFF_OUTSIDE, PRIVATE)
        warn_of_forwarded("b", XFF_OUTSIDE, PRIVATE)
    assert len(caplog.records) == 1
    assert "sent a lineage to b beside X-Forwarded-For" in caplog.text
    assert "ANTIPODE_FORWARDED=ignore" in caplog.text


@pytest.mark.parametrize("kibibytes", [32, 64])
def test_a_hostile_request_costs_little_and_linearly(kibibytes: int) -> None:
    """WIRE-40, WIRE-42, TRUST-32: the caller is judged once, and nothing is read without a bound."""

    def cost(size: int) -> float:
        half = size * 512
        texts = ",".join(f"{number:04x}" for number in range(half // 5))
        hops = ",".join(["10.0.0.1"] * (half // 9)) + ",203.0.113.9"
        headers = [("antipode-lineage", texts), ("x-forwarded-for", hops)]
        began = time.process_time()
        assert Inbound(read(headers), "10.0.0.7").scope.lineage.is_complete()  # an outsider marks nothing
        return time.process_time() - began

    assert min(cost(kibibytes) for _ in range(5)) < 0.02


def test_a_genuine_seal_that_has_expired_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-37: in the hard mode a backlog must not switch waiting off."""
    configure(keys=dict(KEYS))
    old = seal(TEXT, trust_settings().keys.sealing(Purpose.MESSAGE), 1_000_000, 300)
    with antipode.message_scope({"antipode-lineage": old}) as scope:
        assert scope.lineage.serialize() == TEXT
        assert not scope.gaps
    assert "took an old lineage" in caplog.text
    with antipode.message_scope({"antipode-lineage": seal(TEXT, KEYS.sealing(Purpose.REQUEST), NOW, 300)}) as scope:
        assert scope.lineage.serialize() == "1~_.i"


def test_a_caller_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRUST-32."""
    asked: list[object] = []
    monkeypatch.setattr(trust_module, "public_address_in", asked.append)
    inbound = Inbound(read([("antipode-lineage", "1~a..e.1,1~b..e.1,1~c..e.1"), ("x-forwarded-for", "::1")]), "::1")
    assert len(inbound.scope.lineage) == 3
    assert inbound.may_answer()
    inbound.response_text()
    assert len(asked) == 1
