"""Real races at a barrier's end, with the switch at each byte code (BAR-32, BAR-33, BAR-63; `spec/tla/Reopen.tla`)."""

from __future__ import annotations

import time
from itertools import count
from typing import Final

import antipode
import pytest
from antipode._store.store import Store
from races import MUTANTS, RACES, make_store, race_drawn, race_in_places, without
from turns import Stuck

_SEARCH_S = 60.0
"""So long a rule that is taken out is looked for."""
_BEGIN: Final = {"growsFirst": 100_500}
"""Where it is found soon, as the engine is now: a change of it may make this a longer search."""


@pytest.fixture
def store() -> Store:
    """Proofs do not age: the schedule decides how a race goes, and not how busy the machine is."""
    antipode.configure(free_path_ttl=3600.0, reconnect=3600.0)
    return make_store()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", RACES)
def test_one_thread_comes_between_anywhere(store: Store, name: str, first: int) -> None:
    """BAR-32, BAR-33, BAR-63: the other one's whole run comes at each fifth place of this one."""
    assert race_in_places(store, name, first, each=5) > 200


def test_both_come_between(store: Store) -> None:
    """BAR-32, BAR-33, BAR-63: two or three switches, at places that are drawn."""
    for seed in range(2_000):
        race_drawn(store, seed)


@pytest.mark.stores
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", RACES)
def test_every_place(store: Store, name: str, first: int) -> None:
    race_in_places(store, name, first, each=1)


@pytest.mark.stores
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RACES)
def test_many_draws(store: Store, name: str) -> None:
    for seed in range(10_000):
        race_drawn(store, seed, [name])


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_rule_that_is_taken_out_is_missed(store: Store, rule: str) -> None:
    began_at = time.monotonic()
    with without(rule):
        for seed in count(_BEGIN.get(rule, 0)):
            try:
                race_drawn(store, seed)
            except (AssertionError, Stuck):
                return
            assert time.monotonic() - began_at < _SEARCH_S, f"the races up to {seed} do not find it"
