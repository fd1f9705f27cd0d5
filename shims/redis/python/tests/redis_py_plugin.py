"""Makes redis-py's own test clients wrapped ones. A pytest plugin for its test suite: see `redis_py_suite`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio

STORE = "redis-py"
MODE = os.environ.get("REDIS_PY_SUITE_MODE", "wrapped")
"""`plain`: nothing is wrapped. `wrapped`: in a scope. `reading`: every read also says what it depends on, and waits.
`field`: lineages rest in hashes."""


def _wrapping(plain: Any) -> Any:
    """Stands for a client class: makes its instances, wrapped."""

    def make(*args: Any, **options: Any) -> Any:
        return antipode_redis.wrap(plain(*args, **options), store=STORE, rest="field" if MODE == "field" else "none")

    return make


class _Module:
    """redis.asyncio, with a client class that wraps."""

    Redis = staticmethod(_wrapping(redis.asyncio.Redis))

    def __getattr__(self, name: str) -> Any:
        return getattr(redis.asyncio, name)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before test modules are imported."""
    if MODE == "plain":
        return
    conftest: Any = sys.modules["tests.conftest"]
    original = conftest._get_client

    def get_client(cls: Any, *args: Any, **options: Any) -> Any:
        return original(_wrapping(cls) if cls is redis.Redis else cls, *args, **options)

    conftest._get_client = get_client


@pytest.fixture(autouse=True)
def _antipode_scope() -> Iterator[None]:
    """Each test runs in a scope of its own, so that its writes are recorded."""
    if MODE == "plain":
        yield
        return
    asyncio_conftest: Any = sys.modules.get("tests.test_asyncio.conftest")
    if asyncio_conftest is not None and not isinstance(asyncio_conftest.redis, _Module):
        asyncio_conftest.redis = _Module()
    with ExitStack() as stack:
        stack.enter_context(antipode.scope())
        if MODE == "reading":
            stack.enter_context(antipode.reading())
        yield
