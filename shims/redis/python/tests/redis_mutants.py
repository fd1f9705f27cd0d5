"""The shim for Redis with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from antipode.testing.adversary import Patch
from antipode_redis import client, pipeline, reads, serving
from antipode_redis.calls import WriteCall
from antipode_redis.commands import Kind, answers, classify

Patches: TypeAlias = Iterator[Patch]


def _one_scope() -> Patches:
    """A pipeline is pending in the scope that queued its first write alone (C2, SCOPE-24)."""
    yield patch.object(WriteCall, "join_scope", lambda self: None)


def _one_scope_by_hand() -> Patches:
    """A MULTI sent by hand is pending in the scope that queued its first write alone (C2, SCOPE-24)."""
    yield patch.object(WriteCall, "stand_for", lambda self, other: other.abandon())


def _only_who_queued() -> Patches:
    """A pipeline or MULTI is not pending in the scope that executes it, and queued nothing (SCOPE-24)."""
    yield patch.object(WriteCall, "join_committer", lambda self: None)


def _scripts_do_not_wait() -> Patches:
    """A script that may write does not wait (C10, SHIM-44)."""

    def answers_surely(args: Any) -> bool:
        return classify(args) is not Kind.MAYBE and answers(args)

    for module in (reads, serving):
        yield patch.object(module, "answers", answers_surely)


def _scripts_in_pipelines_do_not_wait() -> Patches:
    """The same in pipelines and transactions alone."""
    yield patch.object(pipeline, "may_answer", lambda commands: all(classify(a) is Kind.READ for a, _ in commands))


def _failed_pipelines_are_certain() -> Patches:
    """A pipeline whose every reply is an error has written nothing, whatever was in it."""
    yield patch.object(pipeline, "certain", lambda commands: True)


def _failed_scripts_are_certain() -> Patches:
    """A script that ends with an error has written nothing."""
    yield patch.object(WriteCall, "_nothing_happened", lambda self, error: True)


def _hidden_ends() -> Patches:
    """An EXEC sent by hand is no end of what was queued before it: that is given up."""
    own = client.Recording._antipode_by_hand

    def by_hand(self: Any, call: Any, conn: Any, *rest: Any) -> Any:
        held = call.binding.open.pop(conn, None) if call.name == "EXEC" else None
        if held is not None:
            held.abandon()
        return (yield from own(self, call, conn, *rest))

    yield patch.object(client.Recording, "_antipode_by_hand", by_hand)


def _watched_is_certain() -> Patches:
    """A WatchError says that EXEC did nothing, also where the connection broke behind it."""
    yield patch.object(WriteCall, "broke", lambda self, error: None)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "one scope": _one_scope,
    "one scope by hand": _one_scope_by_hand,
    "only who queued": _only_who_queued,
    "scripts do not wait": _scripts_do_not_wait,
    "scripts in pipelines do not wait": _scripts_in_pipelines_do_not_wait,
    "failed pipelines are certain": _failed_pipelines_are_certain,
    "failed scripts are certain": _failed_scripts_are_certain,
    "hidden ends": _hidden_ends,
    "watched is certain": _watched_is_certain,
}
