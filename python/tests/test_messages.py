"""Messages: one scope each, and the header of what is sent (spec PROP, TRUST)."""

from __future__ import annotations

import logging
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import Lineage, WriteId
from antipode._base.seal_keys import Keys
from antipode.messages import HEADER, JMS_HEADER, outgoing_message
from antipode.testing import isolated
from hypothesis import given
from hypothesis import strategies as st

POSTS = Lineage([WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)])
TEXT = POSTS.serialize()


@pytest.mark.parametrize(
    "source",
    [
        TEXT,
        TEXT.encode(),
        f" {TEXT};property=1 ",
        {HEADER: TEXT},
        {JMS_HEADER: TEXT},
        {"Antipode-Lineage": TEXT.encode()},
        {HEADER: bytearray(TEXT.encode())},
    ],
)
def test_a_message_opens_a_scope_of_its_own_from_its_header(source: Any) -> None:
    with antipode.scope() as outer:
        with antipode.message_scope(source) as scope:
            assert scope is not outer
            assert scope.lineage == POSTS
            assert not scope.additions(), "what came in is not what this scope added"
        assert scope.closed
        assert not outer.lineage


@pytest.mark.parametrize("source", [None, "", {}, {"other": "x"}, {HEADER: None}])
def test_a_message_without_a_lineage_is_empty_and_complete(source: Any) -> None:
    with antipode.message_scope(source) as scope:
        assert not scope.lineage
        assert scope.lineage.is_complete()


def test_a_header_that_was_emptied_on_the_way_has_lost_a_lineage() -> None:
    with antipode.message_scope({HEADER: ""}) as scope:
        assert not scope.lineage.is_complete()


def test_switched_off_a_lineage_is_still_passed_on() -> None:
    antipode.configure(mode="off")
    with antipode.message_scope({HEADER: TEXT}):
        assert outgoing_message() == TEXT


@pytest.mark.parametrize("value", ["1~blog-posts", 1, 1.0, True, [TEXT], {"text": TEXT}])
def test_what_cannot_be_read_is_incomplete_and_never_raises(value: Any) -> None:
    """PROP-17: a number 1 is not the empty lineage."""
    with antipode.message_scope({HEADER: value}) as scope:
        assert not scope.lineage.is_complete()
        [gap] = scope.gaps
        assert gap.reason == "malformed"


@given(
    st.one_of(
        st.text(), st.binary(), st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.binary(), st.integers()))
    )
)
def test_nothing_that_comes_in_raises(source: Any) -> None:
    with isolated(), antipode.message_scope(source) as scope:
        scope.lineage.serialize()


def test_lineage_in_and_trust_decide(caplog: pytest.LogCaptureFixture) -> None:
    with antipode.message_scope(TEXT, lineage_in=False) as scope:
        assert not scope.lineage
        assert scope.gaps
    antipode.configure(edge=True)
    with caplog.at_level(logging.WARNING), antipode.message_scope(TEXT) as scope:
        assert not scope.lineage
    with antipode.message_scope(TEXT, lineage_in=True) as scope:
        assert scope.lineage == POSTS


def test_under_key_a_message_needs_the_seal_and_a_barrier_is_not_complete_without() -> None:
    antipode.configure(keys=Keys({"k1": b"0" * 32}))
    with antipode.scope(POSTS):
        sealed = outgoing_message()
    assert sealed is not None
    assert sealed.startswith(f"{TEXT}~_.h.k1.")
    with antipode.message_scope(sealed) as scope:
        assert scope.lineage == POSTS
    store = antipode.memory.Store("blog-posts")
    store.client("a")
    with antipode.message_scope(TEXT) as scope:
        assert not list(scope.lineage)
        assert not scope.lineage.is_complete()
        assert not antipode.barrier().complete


def test_nothing_is_sent_for_the_empty_lineage_and_outside_scopes() -> None:
    assert outgoing_message() is None
    with antipode.scope():
        assert outgoing_message() is None
    with antipode.scope(antipode.EMPTY.marked_incomplete("s")):
        assert outgoing_message() == "1~_.i.s"


def test_the_budget_leaves_sections_out_and_says_so() -> None:
    antipode.configure(budget_bytes=64)
    ids = [WriteId.position(f"store-{number}", "e" * 16, number + 1) for number in range(10)]
    with antipode.scope(Lineage(ids)):
        text = outgoing_message()
    assert text is not None
    assert len(text) <= 64
    assert not Lineage.deserialize(text).is_complete()


def test_a_message_sent_before_the_commit_is_marked_or_refused() -> None:
    store = antipode.memory.Store("blog-posts")
    store.client("a")
    with antipode.scope(POSTS):
        write = antipode.stores()[0].begin("k")
        assert outgoing_message() == f"{TEXT}~_.i.blog-posts"
        antipode.configure(on_pending="raise")
        with pytest.raises(antipode.PendingWriteError, match="before the commit of blog-posts"):
            outgoing_message()
        write.abandon()
        assert outgoing_message() == TEXT
