"""What wrapped clients of the core do by: the settings in force, and the mode of their store (spec SHIM-54)."""

from __future__ import annotations

from collections.abc import Iterator

import antipode
import antipode.memory
import pytest
from antipode.shim import StoreOptions, join_store
from antipode.testing import isolated

@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def store() -> antipode.memory.Store:
    return antipode.memory.Store("posts")


def _join(store: antipode.memory.Store, mode: str) -> None:
    """What `wrap(…, mode=…)` does elsewhere in the process."""
    join_store(store.name, store._shim, StoreOptions(mode=mode))


@pytest.mark.parametrize("before", ["dry-run", "off"])
def test_a_mode_that_another_wrap_gives(store: antipode.memory.Store, before: str) -> None:
    """BAR-51: a read waits by the mode that its store has now, whatever it had when the client was wrapped."""
    antipode.configure(timeout=0.05)
    _join(store, before)
    near, far = store.client("a"), store.client("b", wait_on_read=True, replicas=["b"])
    with antipode.scope():
        near.set("k", "old")
        far.get("k")
    _join(store, "enforce")
    store.freeze("b")
    with antipode.scope() as opened:
        near.set("k", "new")
        assert opened.lineage.of_store("posts")
        with pytest.raises(antipode.BarrierTimeout):
            far.get("k")
