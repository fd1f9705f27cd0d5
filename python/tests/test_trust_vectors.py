"""The vectors of trust and seals that every language runs (spec/vectors/trust-*.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from antipode._base.seal_keys import Keys, Purpose, parse_keys
from antipode._base.settings import Trust
from antipode._model.errors import ConfigurationError
from antipode._trust import addresses
from antipode._trust.seal import SealState, open_seal, seal
from antipode._trust.trust import (
    LEEWAY_S,
    Caller,
    Peers,
    Reason,
    TrustSettings,
    is_approved,
    is_private_address,
    judge_request_in,
    judge_request_out,
)

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
BECAUSE = {
    Reason.PEER: "peer",
    Reason.NO_PEER: "peer",
    Reason.RESOLVED: "peer",
    Reason.HIDDEN: "peer",
    Reason.TOO_LONG: "too long",
    Reason.EDGE: "edge",
    Reason.OFF: "none",
    Reason.SEAL: "seal",
}


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


def trust_of(words: dict[str, Any]) -> TrustSettings:
    trust = Trust(words.get("trust", "private"))
    keys = Keys({"k": b"k" * 16}) if trust is Trust.KEY else Keys()
    return TrustSettings(
        trust,
        words.get("edge", False),
        words.get("forwarded") == "ignore",
        Peers(words.get("peers", ())),
        keys,
    )


def keys_of(case: dict[str, Any]) -> Keys:
    return Keys({key["id"]: bytes.fromhex(key["key_hex"]) for key in case["keys"]})


@pytest.fixture(autouse=True)
def no_named_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service: names of test clients stand for nothing (TRUST-9)."""
    monkeypatch.setattr(addresses, "named_peers", set())


@pytest.mark.parametrize("case", cases("trust-addresses"))
def test_address(case: dict[str, Any]) -> None:
    assert is_private_address(case["text"]) is case["private"]
    headers = [("X-Forwarded-For", case["text"])]
    # White space around and the empty text are no elements of a list; a peer they may be.
    if case["text"].strip() and "," not in case["text"]:
        assert judge_request_in("::1", headers, "1", TrustSettings()).accepted is case["private"]


@pytest.mark.parametrize("case", cases("trust-peers"))
def test_peer(case: dict[str, Any]) -> None:
    assert is_private_address(case["peer"], unix=case.get("unix", False)) is case["private"]


@pytest.mark.parametrize("case", cases("trust-request-in"))
def test_request_in(case: dict[str, Any]) -> None:
    headers = [(header[0], header[1]) for header in case["headers"]]
    caller = Caller(case["peer"], headers, case.get("resolved"))
    decision = caller.judge_request("1", trust_of(case["settings"]))
    assert decision.accepted is case["accept"]
    because = decision.header.lower() or BECAUSE.get(decision.reason)
    assert because == case.get("because")


@pytest.mark.parametrize("case", cases("trust-hosts"))
def test_host(case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(ConfigurationError):
            trust_of(case["settings"])
        return
    trust = trust_of(case["settings"])
    assert judge_request_out(case["host"], trust).accepted is case["approved"]
    if trust.trust is Trust.PRIVATE:
        assert is_approved(case["host"], trust) is case["approved"]


@pytest.mark.parametrize("case", cases("trust-seal-make"))
def test_seal(case: dict[str, Any]) -> None:
    keys = keys_of(case).sealing(Purpose[case["purpose"].upper()])
    assert seal(case["text"], keys, case["now"], case["ttl"] or None) == case["sealed"]


@pytest.mark.parametrize("case", cases("trust-seal"))
def test_verify(case: dict[str, Any]) -> None:
    purpose = Purpose[case["purpose"].upper()]
    keys = keys_of(case).sealing(purpose)
    opened = open_seal(case["text"], keys, case["now"], leeway=LEEWAY_S, endless=purpose.is_rest)
    assert opened.state == case["state"]
    if opened.state in {SealState.VALID, SealState.EXPIRED}:
        assert opened.text == case["body"]


@pytest.mark.parametrize("case", cases("trust-keys-file"))
def test_keys_file(case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(ConfigurationError):
            parse_keys(case["file"], "keys")
    else:
        assert list(parse_keys(case["file"], "keys")) == case["ids"]
