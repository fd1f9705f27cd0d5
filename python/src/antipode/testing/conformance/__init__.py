"""The shim conformance kit: every case of the shim contract, on a shim's own store (spec SHIM-18, SHIM-33).

    class TestConformance(ShimConformance):
        @pytest.fixture
        def under_test(self, redis_lab): return RedisUnderTest(redis_lab)

`antipode.testing.under_test` says what a store gives. The cases are the methods `test_…` of the classes below; a store
lists what it cannot do in `StoreUnderTest.exceptions`, by the case's name without `test_`.
"""

from __future__ import annotations

from antipode.testing.conformance.cases import spoils
from antipode.testing.conformance.doubts import DoubtCases
from antipode.testing.conformance.failovers import Failovers
from antipode.testing.conformance.links import Links
from antipode.testing.conformance.own_reads import OwnReads
from antipode.testing.conformance.reads import Reads
from antipode.testing.conformance.servers import Servers
from antipode.testing.conformance.values import Values
from antipode.testing.conformance.waiting import WaitingCases
from antipode.testing.conformance.writers import Writers
from antipode.testing.under_test import NotPossible, StoreUnderTest, Transaction

__all__ = ["NotPossible", "ShimConformance", "StoreUnderTest", "Transaction", "spoils"]


class ShimConformance(Values, Reads, OwnReads, Links, Servers, Failovers, Writers, DoubtCases, WaitingCases):
    """All cases. A subclass gives the fixture `under_test`."""
