"""A callable for `replicas=`: what it raises when a client is wrapped, and what is no answer (spec BAR-53)."""

from __future__ import annotations

from typing import Any

import antipode
import pytest
from antipode import Lineage, UnprovenKind, WriteId
from antipode._model.verdict import VISIBLE
from antipode.shim import StoreOptions, join_store
from fakes import FakeShim, Target, always

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


def test_a_first_question_that_fails_does_not_fail_the_wrap() -> None:
    """BAR-53: the service starts, and its barriers say what the callable said until it answers."""
    raised: list[Exception] = [OSError("no route to Consul")]

    def listed() -> list[Target]:
        if raised:
            raise raised[0]
        return [Target("replica", always(VISIBLE))]

    store = join_store("posts", FakeShim, StoreOptions(replicas=listed))
    store.use_server(Target("primary", always(VISIBLE)), listed=True)
    result = antipode.barrier(WRITE, timeout=0.1, on_unproven="proceed")
    assert result.stores["posts"].kind is UnprovenKind.DISCOVERY
    assert "no route to Consul" in result.stores["posts"].reason
    raised.clear()
    assert [server.address for server in antipode.barrier(WRITE, timeout=60).stores["posts"].servers] == ["replica"]


async def _coroutine() -> list[str]:
    return ["a"]


@pytest.mark.parametrize("listed", [_coroutine, lambda: "redis://a", lambda: None])
def test_what_can_never_be_an_answer_is_a_mistake(listed: Any) -> None:
    """BAR-53: also a coroutine, which nobody awaits."""
    with pytest.raises(antipode.ConfigurationError, match=r"plain function that returns a list.*\[AP501\]"):
        join_store("posts", FakeShim, StoreOptions(replicas=listed))
