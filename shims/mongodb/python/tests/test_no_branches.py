"""A MongoDB store holds no branches, and says so as any other store that cannot (spec BRANCH-18, BRANCH-24)."""

from __future__ import annotations

from collections.abc import Iterator

import antipode
import antipode_mongodb
import pytest
from antipode import Lineage
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.errors import ConfigurationError
from antipode.testing import isolated
from antipode_mongodb import MongoShim
from fake_mongod import FakeMongod

STORE = "blog-posts"


@pytest.fixture
def server() -> Iterator[FakeMongod]:
    with isolated(), FakeMongod() as server:
        yield server


def test_configure_refuses_it_by_whatever_names_it(server: FakeMongod) -> None:
    """BRANCH-24"""
    client = antipode_mongodb.wrap(server.client(), store=STORE)
    for named in (STORE, client, client["blog"], client["blog"]["posts"]):
        with pytest.raises(ConfigurationError, match="store of the kind mongodb has no table of branches") as refused:
            antipode.configure(branches=named)
        assert refused.value.code == "AP511"
    assert "branches" not in MongoShim.preparation_options
    assert not [each for each in MongoShim.diagnose(server.url) if "branches" in each.what]


def test_a_branch_that_names_it_is_unproven(server: FakeMongod) -> None:
    """BRANCH-18"""
    antipode_mongodb.wrap(server.client(), store=STORE)
    lineage = Lineage([BranchId.new(STORE, 30).write_id])
    result = antipode.barrier(lineage, timeout=10.0, on_timeout="proceed", on_unproven="proceed")
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "blog-posts is a store of the kind mongodb here, without branches" in result.stores[BRANCHES].reason
