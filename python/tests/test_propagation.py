"""Propagation (spec PROP): the four functions, limits, pending writes, modes."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import PendingWriteError, WriteId
from antipode._propagation.carriers import Formats, read, rewrite, with_member, without_member
from antipode._scope.pending_write import PendingWrite
from antipode.messages import outgoing_message
from antipode.propagation import (
    extract_request,
    extract_response,
    inject_request,
    inject_response,
)
from flask import Response
from hypothesis import given
from hypothesis import strategies as st
from scopes import Counts

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
AFTER = WriteId.position("user-acl", EPOCH, 57)
TEXT = antipode.Lineage([BEFORE]).serialize()
ANSWER = antipode.Lineage([AFTER]).serialize()


pytestmark = pytest.mark.usefixtures("w3c_propagators")


def sent(host: str = "b", **headers: str) -> dict[str, str]:
    """What a request to `host` has for headers when it leaves."""
    inject_request(headers, host)
    return headers


def test_there_and_back_by_hand() -> None:
    with antipode.scope() as mine:
        antipode.append(BEFORE)
        request = sent()
        assert request == {"baggage": f"antipode={TEXT}"}
        response: dict[str, str] = {}
        with extract_request(request, "10.0.0.1") as theirs:
            assert theirs is antipode.current_scope()
            assert theirs.lineage == mine.lineage
            antipode.append(AFTER)
            inject_response(response)
        assert response == {"antipode-lineage": ANSWER}
        assert antipode.current_scope() is mine
        extract_response(response, "b")
        assert mine.lineage == antipode.Lineage([BEFORE, AFTER])


def test_a_response_carries_only_what_was_added() -> None:
    """PROP-13."""
    response: dict[str, str] = {}
    with extract_request({"baggage": f"antipode={TEXT}"}, "10.0.0.1"):
        inject_response(response)
    assert response == {}


def test_the_scope_ends_with_the_request() -> None:
    with extract_request({}, "10.0.0.1") as scope:
        pass
    assert scope.closed


def test_mappings_with_lists_bytes_and_pairs_are_read() -> None:
    for headers in (
        {"Baggage": ["user=7", f"antipode={TEXT}"]},
        [(b"baggage", b"user=7"), (b"BAGGAGE", f"antipode={TEXT}".encode())],
        {"antipode-lineage": [TEXT, TEXT]},
        [("antipode-lineage", f" {TEXT} ;x=1")],
    ):
        with extract_request(headers, "10.0.0.1") as scope:
            assert scope.lineage == antipode.Lineage([BEFORE])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["baggage", "antipode-lineage", "uberctx-antipode", "x-forwarded-for", "forwarded", "a"]),
            st.one_of(st.text(max_size=60), st.binary(max_size=60), st.just(f"antipode={TEXT}"), st.just(TEXT)),
        ),
        max_size=5,
    )
)
def test_no_header_raises(headers: list[tuple[str, Any]]) -> None:
    """PROP-12, PROP-23."""
    for trust in ("private", "all", "none"):
        antipode.configure(trust=trust)
        with extract_request(headers, "127.0.0.1") as scope:
            extract_response(headers, "b")
            scope.lineage.serialize()
            try:
                read(headers)
            finally:
                out: dict[str, str] = {}
                inject_request(out, "b")


def test_what_cannot_be_read_is_incomplete_and_not_empty(caplog: pytest.LogCaptureFixture) -> None:
    """WIRE-25, WIRE-29: and it does not come home with the response, which brings what the callee added."""
    response: dict[str, str] = {}
    with caplog.at_level(logging.WARNING, "antipode"):
        with extract_request([("baggage", f"antipode=hello,antipode={TEXT}")], "10.0.0.7") as scope:
            assert scope.lineage == antipode.Lineage([BEFORE])
            assert not scope.lineage.is_complete()
            assert [gap.reason for gap in scope.gaps] == ["malformed"]
            inject_response(response)
    assert response == {}
    assert "10.0.0.7" in caplog.text


def test_a_malformed_response_leaves_the_caller_incomplete() -> None:
    with antipode.scope() as scope:
        extract_response({"antipode-lineage": "hello"}, "b")
        assert not scope.lineage.is_complete()


def test_a_response_outside_any_scope_is_counted_as_orphan(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "antipode"):
        extract_response({"antipode-lineage": TEXT}, "b")
    assert "outside any scope" in caplog.text


def test_a_response_from_a_host_that_is_not_ours_is_dropped() -> None:
    with antipode.scope() as scope:
        extract_response({"antipode-lineage": TEXT}, "api.example.com")
        assert not scope.lineage
        assert [gap.reason for gap in scope.gaps] == ["untrusted"]
        assert scope.lineage.is_complete()


def test_a_response_does_not_bring_back_what_was_removed() -> None:
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        antipode.remove("blog-posts")
        extract_response({"antipode-lineage": antipode.Lineage([BEFORE, AFTER]).serialize()}, "b")
        assert scope.lineage == antipode.Lineage([AFTER])


# Where it stands


def test_the_applications_members_stay_as_they_are() -> None:
    """PROP-8, PROP-10."""
    with antipode.scope():
        antipode.append(BEFORE)
        assert sent(baggage=f"z=a+b;p=1, antipode={ANSWER},a=%20") == {"baggage": f"z=a+b;p=1,a=%20,antipode={TEXT}"}


def test_ours_goes_into_its_own_header_where_it_would_displace() -> None:
    """PROP-9: by length and by number."""
    with antipode.scope():
        antipode.append(BEFORE)
        for full in ("a=" + "x" * 8150, ",".join(f"k{n}=v" for n in range(64))):
            assert sent(baggage=full) == {"baggage": full, "antipode-lineage": TEXT}
            assert with_member(full, TEXT) is None


def test_nothing_leaves_for_nothing() -> None:
    """WIRE-31."""
    assert sent() == {}
    with antipode.scope() as scope:
        assert sent() == {}
        scope.mark_incomplete("rights", "blog-posts")
        assert sent() == {"baggage": "antipode=1~_.i.blog-posts"}


def test_a_host_that_is_not_ours_gets_no_lineage_not_even_an_old_one() -> None:
    """TRUST-26."""
    old = {"baggage": f"a=1,antipode={ANSWER}", "antipode-lineage": ANSWER, "uberctx-antipode": ANSWER}
    for inside in (True, False):
        with antipode.scope() if inside else nullcontext():
            assert sent("api.example.com", **old) == {"baggage": "a=1"}
    assert sent("b", **old) == old  # no scope: the application's own affair, to one of ours


def test_the_budget_is_the_injected_copys_affair() -> None:
    """WIRE-33, WIRE-36."""
    antipode.configure(budget_bytes=60)
    with antipode.scope() as scope:
        antipode.append(BEFORE, AFTER)
        assert sent() == {"baggage": f"antipode={ANSWER}~_.i"}
        assert scope.lineage.is_complete()
        assert len(scope.lineage) == 2


@pytest.mark.parametrize("budget", [60, 3000, 4087])
def test_what_passes_every_budget_is_counted_too(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """WIRE-36, WIRE-37: though `serialize` leaves it out by itself, whatever the budget."""
    counts = Counts(monkeypatch)
    antipode.configure(stores=["big"], budget_bytes=budget)
    with antipode.scope():
        antipode.append(AFTER, *(WriteId("big", f"{number:050}", antipode.Ordered("", 1)) for number in range(100)))
        assert sent() == {"baggage": f"antipode={ANSWER}~_.i" + (".big" if budget > 60 else "")}
    assert counts.of("antipode.lineage.incomplete", reason="budget", store="big") == 1


def test_a_sealed_text_keeps_to_the_budget() -> None:
    """WIRE-32: the seal counts."""
    antipode.configure(budget_bytes=110, keys={"one": b"k" * 32})
    with antipode.scope():
        antipode.append(BEFORE, AFTER)
        text = sent()["baggage"].removeprefix("antipode=")
    assert len(text) <= 110
    assert "user-acl" in text
    assert "~_.i~" in text
    assert "~_.h.one." in text


def test_a_pending_write_marks_the_copy_that_leaves() -> None:
    """SCOPE-16."""
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        write = PendingWrite("user-acl", scope.lineage)
        scope.begin(write)
        assert sent() == {"baggage": f"antipode={TEXT}~_.i.user-acl"}
        scope.end(write)
        assert sent() == {"baggage": f"antipode={TEXT}"}
        scope.begin(write)
        antipode.configure(on_pending="raise")
        with pytest.raises(PendingWriteError, match="user-acl"):
            sent()


def test_switched_off_a_lineage_is_forwarded_and_nothing_goes_back() -> None:
    """PROP-26."""
    antipode.configure(mode="off")
    response: dict[str, str] = {}
    with extract_request({"baggage": f"antipode={TEXT}"}, "10.0.0.1") as scope:
        assert sent() == {"baggage": f"antipode={TEXT}"}
        assert sent("api.example.com") == {}
        extract_response({"antipode-lineage": ANSWER}, "b")
        assert scope.lineage == antipode.Lineage([BEFORE])
        scope.append(AFTER)
        inject_response(response)
    assert response == {}


def test_a_public_response_carries_a_mark_alone() -> None:
    """PROP-16: also where the application copied one in."""
    with extract_request({}, "10.0.0.1"):
        antipode.append(AFTER)
        response = {"Cache-Control": "max-age=60, PUBLIC", "Antipode-Lineage": TEXT}
        inject_response(response)
        assert response == {"Cache-Control": "max-age=60, PUBLIC", "antipode-lineage": "1~_.i"}


def test_what_is_written_after_the_header_left_is_late() -> None:
    """PROP-16: asked again, only what is new comes, as in a trailer."""
    with extract_request({}, "10.0.0.1") as scope:
        antipode.append(BEFORE)
        first: dict[str, str] = {}
        inject_response(first)
        assert scope.sent
        antipode.append(AFTER)
        trailer: dict[str, str] = {}
        inject_response(trailer)
    assert first == {"antipode-lineage": TEXT}
    assert trailer == {"antipode-lineage": ANSWER}


@pytest.mark.parametrize("status", [304, 503])
def test_what_the_header_says_already_stays_in_it(status: int) -> None:
    """PROP-13: whether an earlier call wrote it there, or the application that relays it."""
    response = {"Cache-Control": "private"}
    with extract_request({}, "10.0.0.1"):
        antipode.append(BEFORE)
        inject_response(response, status=status)
        relayed = {"Cache-Control": "private", "Antipode-Lineage": TEXT}
        for answer in (response, relayed):
            inject_response(answer, status=status)
        assert response == {"Cache-Control": "private", "antipode-lineage": TEXT}
        assert relayed == {"Cache-Control": "private", "Antipode-Lineage": TEXT}
        antipode.append(AFTER)
        inject_response(response, status=status)
        assert response["antipode-lineage"] == f"{TEXT},{ANSWER}"
    with antipode.scope() as scope:
        extract_response(response, "b")
        assert set(scope.lineage) == {BEFORE, AFTER}


def test_headers_that_are_no_mapping_are_answered_in() -> None:
    """PROP-13, PROP-16: Flask's iterate over pairs, and hold several lines."""
    response: Any = Response().headers
    with extract_request({}, "10.0.0.1"):
        antipode.append(BEFORE)
        inject_response(response)
        assert response.getlist("antipode-lineage") == [TEXT]
        response.add("Antipode-Lineage", ANSWER)
        antipode.append(AFTER)
        inject_response(response)
        assert response.getlist("antipode-lineage") == [f"{TEXT},{ANSWER},{ANSWER}"]
        response.add("Antipode-Lineage", ANSWER)
        inject_response(response, public=True)
        assert response.getlist("antipode-lineage") == ["1~_.i"]


# Text


@given(st.text(alphabet="ab=,; %65antipode~1", max_size=60))
def test_taking_ours_out_leaves_the_rest_as_it_was(line: str) -> None:
    rest = without_member(line)
    assert without_member(rest) == rest
    kept = [member for member in line.split(",") if member in rest.split(",")]
    assert [member.strip(" \t") for member in rest.split(",") if member.strip(" \t")] == [
        member.strip(" \t") for member in kept if member.strip(" \t")
    ]
    line_with = with_member(line, TEXT)
    assert line_with is not None
    assert read({"baggage": line_with}).texts == (TEXT,)


@given(st.booleans(), st.booleans(), st.sampled_from([None, TEXT]), st.sampled_from([None, f"a=1,antipode={ANSWER}"]))
def test_rewriting_leaves_one_lineage_or_none(w3c: bool, jaeger: bool, text: str | None, old: str | None) -> None:
    headers: dict[str, str | None] = {"baggage": old, "antipode-lineage": ANSWER, "uberctx-antipode": ANSWER}
    headers |= rewrite(headers.get, text, Formats(w3c, jaeger))
    found = read({name: value for name, value in headers.items() if value is not None})
    assert found.texts == (() if text is None else (text,))


def test_the_newest_changes_stay_within_the_budget() -> None:
    """WIRE-33: what came along goes first; a write, a response and a read put their store behind the others."""
    antipode.configure(budget_bytes=250)
    came = antipode.Lineage(WriteId.position(f"x{number}", EPOCH, 1) for number in range(8)).serialize()
    with extract_request({"antipode-lineage": came}, "10.0.0.1") as scope:
        for store in ("long-name-of-a-store", "second", "third"):
            antipode.append(WriteId.position(store, EPOCH, 7))
        extract_response({"antipode-lineage": f"1~x0..{EPOCH}.9"}, "localhost")
        antipode.append(WriteId.position("second", EPOCH, 8))
        assert scope.changed_stores() == ("long-name-of-a-store", "third", "x0", "second")
        stores = antipode.Lineage.deserialize(sent()["baggage"].removeprefix("antipode=")).stores
        assert {"long-name-of-a-store", "third", "x0", "second"} <= set(stores) != set(scope.lineage.stores)
        antipode.configure(budget_bytes=110)
        stores = antipode.Lineage.deserialize(sent()["baggage"].removeprefix("antipode=")).stores
        assert sorted(stores) == ["second", "third", "x0"]


def _written() -> None:
    with antipode.scope():
        antipode.append(BEFORE)


def _orphaned() -> None:
    antipode.append(BEFORE)


def _in_flight() -> None:
    with antipode.scope() as scope:
        scope.begin(PendingWrite("blog-posts"))


def _in_flight_outside() -> None:
    antipode.memory.Store("blog-posts").client("a")._joined.begin("k")


def _brought() -> None:
    with extract_request({"baggage": f"antipode={TEXT}"}, "10.0.0.1"):
        pass


def _answered() -> None:
    extract_response({"antipode-lineage": ANSWER}, "b")


@pytest.mark.parametrize(
    "happen",
    [_written, _in_flight, _in_flight_outside, _brought, _answered, _orphaned],
    ids=["written", "in_flight", "in_flight_outside", "brought", "answered", "orphan"],
)
def test_what_leaves_outside_any_scope_is_incomplete(happen: Any, caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-31: once this process has known a lineage."""
    assert sent() == {}
    assert outgoing_message() is None
    happen()
    assert sent() == {"baggage": "antipode=1~_.i"}
    assert outgoing_message() == "1~_.i"
    assert "[AP418]" in caplog.text
    assert sent("example.org") == {}, "a stranger gets nothing"
    with antipode.scope():
        assert sent() == {}, "what begins here depends on nothing"


def test_a_lineage_of_the_applications_own_stays_outside_any_scope() -> None:
    """SCOPE-31: an outbox relay's."""
    antipode.append(BEFORE)
    assert sent(**{"antipode-lineage": TEXT}) == {"antipode-lineage": TEXT}
    assert sent(baggage=f"a=1,antipode={TEXT}") == {"baggage": f"a=1,antipode={TEXT}"}
    assert sent(baggage="a=1") == {"baggage": "a=1,antipode=1~_.i"}


def test_outside_any_scope_nothing_is_added_with_the_mode_off() -> None:
    """SCOPE-31, PROP-26."""
    antipode.append(BEFORE)
    antipode.configure(mode="off")
    assert sent() == {}
    assert outgoing_message() is None
