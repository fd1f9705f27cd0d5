"""Real servers: one MinIO a region for this folder, with a bucket that is replicated from A to B."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.s3 import S3Store
from s3_regions import Images

LAG = "20ms"


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture(scope="session")
def _folder_s3(folder_lab_factory: LabFactory) -> S3Store:
    return folder_lab_factory("s3", lag=LAG).get(S3Store)


@pytest.fixture
def s3_lab(_folder_s3: S3Store) -> Iterator[S3Store]:
    """One lab for all; a test heals what it has parted."""
    yield _folder_s3
    _folder_s3.heal(wait=False)
    _folder_s3.lag("b1", LAG)


@pytest.fixture
def images(s3_lab: S3Store) -> Iterator[Images]:
    made = Images(s3_lab)
    yield made
    for client in (made.plain_a, made.plain_b):
        client.close()
