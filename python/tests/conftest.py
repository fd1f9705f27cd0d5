"""Every test has an Antipode of its own: fresh registry, settings, counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import isolated


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield
