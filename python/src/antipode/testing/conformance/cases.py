"""How a case gets its store, and what happens around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import pytest

from antipode._engine.store_servers import RegionStore
from antipode._model.wire import MAX_COUNTER
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode.shim import Capabilities, stores
from antipode.testing import isolated
from antipode.testing.under_test import StoreUnderTest

_F = TypeVar("_F", bound=Callable[..., Any])


def spoils(case: _F) -> _F:
    """The case promotes, restarts or re-points servers."""
    case.spoils = True  # type: ignore[attr-defined]
    return case


def only(*versions: str, queues: bool = True) -> Callable[[_F], _F]:
    """The case is for shims with these `versions` (any, by default), and perhaps not for queues."""

    def mark(case: _F) -> _F:
        case.only = (versions, queues)  # type: ignore[attr-defined]
        return case

    return mark


def _skip_excluded(case: object, capable: Capabilities) -> None:
    versions, queues = getattr(case, "only", ((), True))
    if versions and capable.versions not in versions:
        pytest.skip(f"not for versions={capable.versions!r}")
    if not queues and capable.tap:
        pytest.skip("not for queues: messages are not overwritten, deleted or read again")


def registered(store: StoreUnderTest) -> RegionStore:
    """Return the store as this process has it."""
    return cast("RegionStore", next(one for one in stores() if one.name == store.name))


def parked(store: StoreUnderTest) -> int:
    """How many barriers wait for it now."""
    found = registered(store)
    return found.parked_threads + found.parked_tasks


def unheard_of(write_id: WriteId) -> WriteId:
    """Return a write like this one that nobody has made: far ahead, or under a mark of nobody's."""
    version = write_id.version
    if isinstance(version, Ordered):
        return write_id._replace(version=Ordered(version.epoch, MAX_COUNTER))
    return write_id._replace(version=Opaque("kit-unheard-of"))


class Cases:
    """The base of every class of cases."""

    @pytest.fixture
    def under_test(self) -> StoreUnderTest:
        """The store; each shim's test class says which."""
        raise NotImplementedError("a subclass of ShimConformance gives the fixture `under_test`")

    @pytest.fixture
    def store(self, under_test: StoreUnderTest, request: pytest.FixtureRequest) -> Iterator[StoreUnderTest]:
        """The store, wrapped in a registry of the case's own; a listed exception has to fail."""
        _skip_excluded(request.function, under_test.capabilities)
        case: str = request.node.originalname.removeprefix("test_")
        reason = under_test.exceptions.get(case)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
        with isolated():
            under_test.begin()
            try:
                yield under_test
            finally:
                under_test.recover(spoiled=getattr(request.function, "spoils", False))

    def test_exceptions_are_cases(self, under_test: StoreUnderTest) -> None:
        """Each listed exception is a case, with a reason."""
        cases = {name.removeprefix("test_") for name in dir(type(self)) if name.startswith("test_")}
        assert set(under_test.exceptions) <= cases
        assert all(under_test.exceptions.values()), "an exception without a reason"
