"""The options that every `wrap` and `register` takes."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

import pytest
from antipode._model.errors import ConfigurationError
from antipode._store.store_options import StoreOptions
from antipode.shim.join import QUEUE_DEFAULTS, ObjectWrapOptions, QueueWrapOptions, check_word, with_options


@with_options(ObjectWrapOptions)
def wrap(client: object, store: str, *, rest: str = "none", **options: Unpack[ObjectWrapOptions]) -> StoreOptions:
    return StoreOptions(rest=rest, **options)


def test_the_options_of_a_store_reach_it() -> None:
    assert wrap(None, "posts", timeout=2.0, hash_keys=True) == StoreOptions(timeout=2.0, hash_keys=True)


@pytest.mark.parametrize("word", ["extra", "envelope_keys", "timeot"])
def test_a_word_of_no_such_option_is_refused(word: str) -> None:
    """Also one that `StoreOptions` has, and this kind of store has not."""
    given: dict[str, Any] = {word: None}
    with pytest.raises(TypeError, match=rf"wrap\(\) got an unexpected keyword argument '{word}'"):
        wrap(None, "posts", **given)


def test_the_signature_shows_them_with_their_defaults() -> None:
    parameters = inspect.signature(wrap).parameters
    assert [*parameters][:3] == ["client", "store", "rest"]
    assert parameters["on_unfit"].default == "raise"
    assert parameters["lineage_in"].default is True
    assert (parameters["wait_on_read"].annotation, inspect.signature(wrap).return_annotation) == (bool, "StoreOptions")
    send = with_options(QueueWrapOptions, **QUEUE_DEFAULTS)(lambda **options: options)
    assert inspect.signature(send).parameters["lineage_in"].default is None


def test_a_word_that_an_option_has_not_is_named_with_those_that_it_has() -> None:
    check_word("rest", "field", "none", "field", "envelope")
    with pytest.raises(ConfigurationError, match="rest='row': want none, field or envelope"):
        check_word("rest", "row", "none", "field", "envelope")
    with pytest.raises(ConfigurationError, match="rest='row': want none or column"):
        check_word("rest", "row", "none", "column")
