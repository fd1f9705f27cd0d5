"""pytest fixtures over the lab. A plugin (entry point ``pytest11``): installed with the package, nothing to
import.

``redis_lab`` is a fresh Redis for the test, as ``@pytest.mark.redis_lab(replicas=2, lag="80ms")`` says;
``module_redis_lab`` one for the module, healed before each test; ``rabbitmq_lab`` one RabbitMQ (two regions
in one broker) for the whole run, healed likewise; ``lab_factory`` starts what a test wants of its own,
``folder_lab_factory`` what the tests of one folder share. All end with the run, however it ends.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from antipode_lab.lab import Lab
    from antipode_lab.stores.rabbitmq import RabbitStore
    from antipode_lab.stores.redis import RedisStore


class LabFactory(Protocol):
    """Starts a lab that ends with the fixture's scope; takes what `antipode_lab.Lab` takes."""

    def __call__(self, *stores: str, **arguments: Any) -> Lab: ...


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers", "redis_lab(**arguments): the arguments of antipode_lab.Lab for the fixture redis_lab"
    )


_FOLDER_LABS: pytest.StashKey[ExitStack] = pytest.StashKey()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A run visits a folder once, also where its command line names one twice: its labs are gone when it is left."""
    seen: dict[object, int] = {}
    items.sort(key=lambda item: seen.setdefault(item.path.parent, len(seen)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Closes a folder's labs behind its last test."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path.parent != item.path.parent:
            item.config.stash.setdefault(_FOLDER_LABS, ExitStack()).close()


def _factory(stack: ExitStack) -> LabFactory:
    # Imported here: a plugin must not cost every pytest run in this environment its start.
    from antipode_lab.lab import Lab

    def start(*stores: str, **arguments: Any) -> Lab:
        return stack.enter_context(Lab(*stores, **arguments))

    return start


@pytest.fixture
def lab_factory() -> Iterator[LabFactory]:
    """Starts labs that end with the test: ``lab_factory("redis", replicas=2)``."""
    with ExitStack() as stack:
        yield _factory(stack)


@pytest.fixture(scope="module")
def module_lab_factory() -> Iterator[LabFactory]:
    """Starts labs that end with the module."""
    with ExitStack() as stack:
        yield _factory(stack)


@pytest.fixture(scope="session")
def folder_lab_factory(pytestconfig: pytest.Config) -> Iterator[LabFactory]:
    """Starts labs that end when the run leaves the folder of the test that wanted them."""
    with pytestconfig.stash.setdefault(_FOLDER_LABS, ExitStack()) as stack:  # an interrupted run leaves no folder
        yield _factory(stack)


@pytest.fixture(scope="session")
def session_lab_factory() -> Iterator[LabFactory]:
    """Starts labs that end with the run."""
    with ExitStack() as stack:
        yield _factory(stack)


@pytest.fixture
def redis_lab(request: pytest.FixtureRequest, lab_factory: LabFactory) -> RedisStore:
    """A fresh Redis: a primary "a", replicas "b1", …; arguments by the marker ``redis_lab``."""
    marker = request.node.get_closest_marker("redis_lab")
    return lab_factory("redis", **(marker.kwargs if marker else {})).redis


@pytest.fixture(scope="module")
def _module_redis(module_lab_factory: LabFactory) -> RedisStore:
    return module_lab_factory("redis", replicas=2, lag=["80ms", "120ms"]).redis


@pytest.fixture
def module_redis_lab(_module_redis: RedisStore) -> RedisStore:
    """One Redis with two replicas (80 and 120 ms) for the module's tests that leave its servers as they
    are.
    """
    _module_redis.heal()
    return _module_redis


@pytest.fixture(scope="session")
def _session_rabbitmq(session_lab_factory: LabFactory) -> RabbitStore:
    return session_lab_factory("rabbitmq", options={"rabbitmq": {"one_broker": True}}).rabbitmq


@pytest.fixture
def rabbitmq_lab(_session_rabbitmq: RabbitStore) -> RabbitStore:
    """One RabbitMQ for the run: two regions (virtual hosts) in one broker, federated over a link of 10 ms."""
    _session_rabbitmq.heal()
    return _session_rabbitmq
