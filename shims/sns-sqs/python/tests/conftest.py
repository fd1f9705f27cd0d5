"""SNS and SQS of three regions, for this folder's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.sns import SnsStore
from sns_regions import LAGS, QUEUE, Blog, Regions


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture(scope="session")
def _folder_sns(folder_lab_factory: LabFactory) -> SnsStore:
    options = {"topics": ["notifications"], "queues": {QUEUE: "notifications"}, "more": {"c": LAGS["c"]}}
    return folder_lab_factory("sns", queue_lag=f"{LAGS['b']}ms", options={"sns": options}).get(SnsStore)


@pytest.fixture
def regions(_folder_sns: SnsStore) -> Iterator[Regions]:
    """Topics and queues of the test's own, in three regions."""
    for name, lag in LAGS.items():
        _folder_sns.lag(name, f"{lag}ms")
    _folder_sns.heal()
    made = Regions(_folder_sns)
    yield made
    made.close()


@pytest.fixture
def blog() -> Blog:
    return Blog()
