"""One lab of three regions for this folder: what a test changes of it is undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from antipode._facade.configuration import configure
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.dynamodb import DynamoDbStore
from dynamodb_regions import LAGS, Posts, restore


@pytest.fixture(scope="session")
def folder_dynamodb_lab(folder_lab_factory: LabFactory) -> DynamoDbStore:
    lab = folder_lab_factory("dynamodb", replicas=len(LAGS), lag=[f"{lag}ms" for lag in LAGS.values()])
    store = lab.get(DynamoDbStore)
    for table in ("native", "mirror"):
        store.create_table(table, StreamSpecification={"StreamEnabled": False})  # not replicated
    store.create_table("lasting", time_to_live=None)
    store.create_table(
        "sorted",
        AttributeDefinitions=[
            {"AttributeName": "who", "AttributeType": "S"},
            {"AttributeName": "when", "AttributeType": "N"},
            {"AttributeName": "kind", "AttributeType": "S"},
        ],
        KeySchema=[{"AttributeName": "who", "KeyType": "HASH"}, {"AttributeName": "when", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-kind",
                "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        time_to_live="expires",
    )
    return store


@pytest.fixture
def dynamodb_lab(folder_dynamodb_lab: DynamoDbStore) -> Iterator[DynamoDbStore]:
    with isolated():
        configure(replica_out_after=30.0)  # on a loaded machine a server may take seconds for an answer
        yield folder_dynamodb_lab
    restore(folder_dynamodb_lab)


@pytest.fixture
def posts(dynamodb_lab: DynamoDbStore) -> Posts:
    return Posts(dynamodb_lab)
