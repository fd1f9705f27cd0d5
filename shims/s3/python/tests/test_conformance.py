"""The conformance kit on real MinIO servers (spec SHIM-33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing.conformance import ShimConformance
from s3_under_test import S3UnderTest


class TestConformance(ShimConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def under_test(cls) -> Iterator[S3UnderTest]:
        store = S3UnderTest()
        yield store
        store.close()
