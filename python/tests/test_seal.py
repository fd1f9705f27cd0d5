"""Seals (spec TRUST): what verifies, what does not, and that nothing about a seal can be altered."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

import pytest
from antipode._base.seal_keys import Keys, parse_keys
from antipode._model.errors import ConfigurationError, MalformedLineageError
from antipode._model.wire import split
from antipode._trust.seal import SealState, open_seal, seal, strip_seal
from hypothesis import given
from hypothesis import strategies as st

OLD, NEW = b"o" * 32, b"n" * 32
KEYS = Keys({"new": NEW, "old": OLD})
TEXT = "1~blog-posts..8371ab90c2d4e6f1.1042"
NOW = 1_800_000_000.0


def test_the_seal_is_the_last_extension_and_its_fields_are_those_of_the_spec() -> None:
    claim = f"{TEXT}~_.h.new.{int(NOW) + 300}"
    mac = hmac.new(NEW, claim.encode(), hashlib.sha256).digest()[:16].hex()
    assert seal(TEXT, KEYS, NOW, 300) == f"{claim}.{mac}"


def test_a_sealed_text_is_still_a_lineage_in_the_wire_form() -> None:
    assert split(seal(TEXT, KEYS, NOW, 300)) == split(TEXT)


def test_a_seal_verifies_until_it_expires() -> None:
    sealed = seal(TEXT, KEYS, NOW, 300)
    assert open_seal(sealed, KEYS, NOW + 299) == (TEXT, SealState.VALID)
    assert open_seal(sealed, KEYS, NOW + 300) == (TEXT, SealState.EXPIRED)


def test_the_first_key_signs_and_all_verify() -> None:
    by_old = seal(TEXT, Keys({"old": OLD}), NOW, 300)
    assert open_seal(by_old, KEYS, NOW).state is SealState.VALID
    assert ".new." in seal(TEXT, KEYS, NOW, 300)
    assert open_seal(by_old, Keys({"new": NEW}), NOW).state is SealState.UNKNOWN_KEY


def test_sealing_again_replaces_the_seal() -> None:
    twice = seal(seal(TEXT, Keys({"old": OLD}), NOW, 300), KEYS, NOW, 300)
    assert twice == seal(TEXT, KEYS, NOW, 300)
    assert strip_seal(twice) == TEXT


def test_a_longer_life_cannot_be_written_over_the_expiry() -> None:
    sealed = seal(TEXT, KEYS, NOW, 300)
    longer = sealed.replace(str(int(NOW) + 300), str(int(NOW) + 300_000))
    assert longer != sealed
    assert open_seal(longer, KEYS, NOW).state is SealState.BAD


def test_an_extension_whose_tag_begins_with_h_is_no_seal() -> None:
    text = TEXT + "~_.hint.5"
    assert open_seal(text, KEYS, NOW) == (text, SealState.MISSING)


@pytest.mark.parametrize(
    "tail",
    [
        "",
        ".",
        ".new",
        ".new.5",
        ".new.05.{mac}",
        ".new.5.{mac}.x",
        ".new.5.{upper}",
        "..5.{mac}",
        ".new.-5.{mac}",
    ],
)
def test_a_seal_that_is_not_spelled_so_is_bad(tail: str) -> None:
    spelled = tail.format(mac="0a" * 16, upper="0A" * 16)
    assert open_seal(f"{TEXT}~_.h{spelled}", KEYS, NOW) == (TEXT, SealState.BAD)


@given(st.text(max_size=80))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    assert open_seal(text, KEYS, NOW).state is not SealState.VALID
    assert open_seal(seal(text, KEYS, NOW, 9), KEYS, NOW).state is SealState.VALID


@given(st.integers(0, 200), st.characters(codec="ascii", exclude_categories=["Cc"]))
def test_no_single_character_can_be_changed(place: int, other: str) -> None:
    sealed = seal(TEXT, KEYS, NOW, 300)
    place %= len(sealed)
    if sealed[place] == other:
        return
    changed = sealed[:place] + other + sealed[place + 1 :]
    assert open_seal(changed, KEYS, NOW).state is not SealState.VALID


def test_a_keys_file_is_read_in_order() -> None:
    text = f"# rotated in May\nnew {base64.b64encode(NEW).decode()}\n\nold  {base64.b64encode(OLD).decode()}\n"
    keys = parse_keys(text, "keys")
    assert dict(keys) == {"new": NEW, "old": OLD}
    assert keys.signer == ("new", NEW)
    assert len(seal(TEXT, keys, NOW, 300)) == len(TEXT) + keys.seal_length


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no key"),
        ("new", "line 1"),
        ("new not*base64", "no base64"),
        ("new c2hvcnQ=", "at least 16"),
        ("a {key}\na {key}", "line 2"),
        (f"{'x' * 40} {{key}}", "1 to 32"),
    ],
)
def test_a_bad_keys_file_is_refused_with_its_name_and_without_the_key(text: str, says: str) -> None:
    encoded = base64.b64encode(NEW).decode()
    with pytest.raises(ConfigurationError, match=says) as caught:
        parse_keys(text.format(key=encoded), "ANTIPODE_KEYS_FILE=/etc/keys")
    assert "ANTIPODE_KEYS_FILE" in str(caught.value)
    assert encoded not in str(caught.value)


def test_keys_are_not_printed() -> None:
    assert repr(KEYS) == "Keys(new, old)"
    assert isinstance(KEYS, Mapping)


@pytest.mark.parametrize(
    "tail",
    [
        "~_.h.k~s..e.5",
        "~_.h.a~_.h.b",
        "~_.h~_.h",
        "\t~_.h",
        "~_.h.a~_.x~_.h.b",
        "~_.h.k.1.a=b",
        "~_.h.k.1.aa~_.i",
        "~_.h._",
        "~_.h%",
        "~_.hk=",
        "~_.h\n",
    ],
)
def test_a_broken_tail_is_not_taken_for_a_seal(tail: str) -> None:
    """WIRE-15, WIRE-25: what was changed on the way is refused, and does not read as what stands before it."""
    text = strip_seal(f"1~s..e.1{tail}")
    with pytest.raises(MalformedLineageError):
        split(text)
