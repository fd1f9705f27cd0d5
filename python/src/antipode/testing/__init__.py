"""For tests of services: an isolated Antipode, and assertions about barriers. A pytest plugin (API section 3l).

For tests of shims: `antipode.testing.conformance` (the cases), `antipode.testing.under_test` (what a store gives them)
and `antipode.testing.failover` (the fuzzer). They are imported by those who use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from antipode._base import logs
from antipode._base.settings import reset_settings
from antipode._diagnostics import announcement, telemetry
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.history import recorder
from antipode._engine.barrier_log import BarrierLog, barrier_log
from antipode._scope import lost_writes
from antipode._store.store import Registry, replace_registry
from antipode._trust.addresses import named_peers
from antipode.testing.monkey import drawn

__all__ = ["antipode_isolated", "assert_barriers", "drawn", "isolated"]

pytest.register_assert_rewrite(
    "antipode.testing.conformance", "antipode.testing.under_test", "antipode.testing.failover"
)


@contextmanager
def isolated() -> Iterator[None]:
    """A fresh registry, fresh settings (from the environment) and counts for the block.

    The peer `testclient`, as which test clients call applications, counts as private in it (TRUST-9).
    """
    before = replace_registry(Registry())
    reset_settings()
    logs.reset()
    announcement.reset()
    telemetry.reset()
    lost_writes.forget_lineages()
    named_peers.add("testclient")
    with barrier_log():
        try:
            yield
        finally:
            named_peers.discard("testclient")
            records.forget()
            recorder.forget()
            for store in replace_registry(before).all():
                store.forget()
            reset_settings()
            telemetry.reset()


@pytest.fixture
def antipode_isolated() -> Iterator[None]:
    """Fresh registry, settings and scope for one test."""
    with isolated():
        yield


def assert_barriers(store: str, *, at_least: int = 1) -> None:
    """Asserts that the code under test waited for this store at least so often (inside `antipode_isolated`)."""
    count = BarrierLog.current().count(store)
    assert count >= at_least, f"{count} barriers judged {store}, want at least {at_least}: the read is unprotected"
