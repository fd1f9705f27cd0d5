"""The lab's MongoDB: FerretDB over PostgreSQL with DocumentDB, on real servers."""

from __future__ import annotations

import time

import pytest
from antipode_lab.fixtures import LabFactory
from antipode_lab.processes import wait_until
from antipode_lab.stores.mongodb import LOST_DATABASE, MongoStore
from pymongo.errors import PyMongoError


def _has(lab: MongoStore, server: str, number: int) -> bool:
    with lab.client(server) as client:
        return client["app"]["posts"].find_one({"_id": number}) is not None


def _put(lab: MongoStore, number: int) -> None:
    with lab.client(lab.primary) as client:
        client["app"]["posts"].insert_one({"_id": number})


def test_documents_arrive_late_not_while_parted_and_after_healing(lab_factory: LabFactory) -> None:
    lab = lab_factory("mongodb", replicas=2, lag=["3ms", "250ms"]).get(MongoStore)
    began = time.monotonic()
    _put(lab, 1)
    wait_until("the near one", lambda: _has(lab, "b1", 1), 20, 0.005)
    wait_until("the far one", lambda: _has(lab, "b2", 1), 20, 0.005)
    assert time.monotonic() - began > 0.25
    lab.partition("b1")
    _put(lab, 2)
    lab.wait_caught_up("b2")
    assert _has(lab, "b2", 2)
    assert not _has(lab, "b1", 2)
    lab.heal("b1")
    assert _has(lab, "b1", 2)
    with lab.client("b1") as client, pytest.raises(PyMongoError, match="recovery"):
        client["app"]["posts"].insert_one({"_id": 3})


def test_a_failover_loses_writes_and_servers_rejoin_and_restart(lab_factory: LabFactory) -> None:
    lab = lab_factory("mongodb", replicas=2, lag="3ms").get(MongoStore)
    _put(lab, 1)
    lab.promote("b1", lose=3)
    assert lab.primary == "b1"
    assert _has(lab, "b1", 1)
    with lab.client("a") as old, lab.client("b1") as new:
        assert old[LOST_DATABASE]["lost"].count_documents({}) == 3
        assert new[LOST_DATABASE]["lost"].count_documents({}) == 0
    _put(lab, 2)
    lab.heal(wait=False)
    lab.repoint("a", "b1")
    assert _has(lab, "a", 2)
    lab.restart("b2", crash=True)
    _put(lab, 3)
    lab.wait_caught_up("b2")
    assert _has(lab, "b2", 3)
    lab.freeze("a")
    with lab.client("a", timeout=0.3) as client, pytest.raises(PyMongoError):
        client["app"]["posts"].find_one()
    lab.thaw("a")
    assert _has(lab, "a", 2)
