"""How a client or a list of servers joins a store: the options that every `wrap` and `register` takes (API section 3a).

A shim's own options stand in its signature; the others are one table here, and reach it as `**options`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Literal, TypedDict, TypeVar, cast, get_type_hints

from antipode._base import logs
from antipode._base.settings import Mode
from antipode._model.errors import ConfigurationError
from antipode._store.store_options import DEFAULTS, Replicas

_F = TypeVar("_F", bound=Callable[..., Any])


class RegisterOptions(TypedDict, total=False):
    """The options of every `register`."""

    timeout: float | timedelta | None
    mode: Mode | str | None
    on_replica_out: Literal["name", "fail"] | None


class JoinOptions(RegisterOptions, total=False):
    """The options of what may find a store unfit."""

    on_unfit: Literal["raise", "unproven"]


class WrapOptions(JoinOptions, total=False):
    """The options of every `wrap` of a client that reads and writes values."""

    replicas: Replicas
    wait_on_read: bool
    lineage_in: bool
    lineage_out: bool


class ObjectWrapOptions(WrapOptions, total=False):
    """The options of a `wrap` whose writes have keys."""

    hash_keys: bool | None


class QueueWrapOptions(JoinOptions, total=False):
    """The options of every `wrap` of a client of messages."""

    track: bool
    stamped: bool
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    redeliver_delay: float | timedelta | None
    hash_keys: bool | None


QUEUE_DEFAULTS: Final = {"track": False, "stamped": False, "lineage_in": None, "lineage_out": None}


def with_options(table: Any, **defaults: Any) -> Callable[[_F], _F]:
    """Return a decorator that lets a function take, as `**options`, the words of a table, a TypedDict, and no others.

    They stand in the function's signature, with the defaults of `StoreOptions` or those given here.
    """
    types = get_type_hints(table)
    known = {word: defaults.get(word, getattr(DEFAULTS, word, None)) for word in types}

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = known.keys() | {each.name for each in own}

        @functools.wraps(function)
        def call(*given: Any, **options: Any) -> Any:
            for word in options:
                if word not in named:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {word!r}")
            return function(*given, **options)

        more = [
            inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=known[word], annotation=types[word])
            for word in known
        ]
        call.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return cast(_F, call)

    return decorate


def check_word(option: str, given: object, *words: str) -> None:
    """Raise ConfigurationError where an option is none of its words; the last of them is named behind an "or"."""
    if given not in words:
        wanted = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        raise ConfigurationError(f"{option}={given!r}: want {wanted}", code="AP501")


def tell_silence(store: str, place: str, error: BaseException, asked: str) -> None:
    """Log that a server does not answer a client that is being wrapped, which is no error.

    asked: what is done when it answers: "its rights are asked".
    """
    words = f"{store}: {place} does not answer yet ({error}); {asked} when it does"
    logs.info(f"probe {store} {place}", words, code="AP507")


def flags(**said: bool) -> dict[str, Any]:
    """Return those of an operator's statements that are made, as `StoreOptions.extra` holds them."""
    return {word: True for word, is_so in said.items() if is_so}
