"""The conformance kit on the lab's servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from antipode_lab.stores.sns import SnsStore
from sns_under_test import SnsUnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls, _folder_sns: SnsStore) -> Iterator[SnsUnderTest]:
        _folder_sns.heal()
        store = SnsUnderTest(_folder_sns)
        yield store
        store.close()
