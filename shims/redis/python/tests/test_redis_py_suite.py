"""redis-py's own tests through the wrapped client (`make test-stores`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis_py_suite import FILES, Listed, compare, suite

pytestmark = pytest.mark.stores


@pytest.mark.timeout(3600)
def test_redis_pys_own_tests_pass_through_the_wrapper(tmp_path: Path) -> None:
    wrong = suite(["wrapped"], FILES, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_a_stale_list_of_exceptions_is_a_failure() -> None:
    plain = {"a": "passed", "b": "passed", "c": "failed"}
    listed = {"b": Listed("why", sometimes=False)}
    assert compare(plain, plain | {"b": "failed"}, listed) == []
    assert compare(plain, plain, listed) == ["listed and not broken, or not there (stale): b"]
    assert compare(plain, plain | {"a": "failed", "b": "failed"}, listed) == ["passes plain, failed wrapped: a"]
