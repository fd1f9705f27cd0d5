"""The lab's MariaDB, on real servers."""

from __future__ import annotations

from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.mariadb import LOST_TABLE, MariaDBStore


def test_a_failover_loses_writes_and_the_old_primary_is_rebuilt_under_a_fresh_id(lab_factory: LabFactory) -> None:
    lab = lab_factory("mariadb", replicas=2, lag="3ms").get(MariaDBStore)
    lab.run("a", "CREATE TABLE t (i INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    for name in lab.replicas:
        lab.wait_caught_up(name)
        assert lab.run(name, "SELECT i FROM t") == [(1,)]
    lab.promote("b1", lose=3)
    assert lab.primary == "b1"
    assert lab.run("a", f"SELECT COUNT(*) FROM {LOST_TABLE}") == [(3,)]
    lab.run("b1", "INSERT INTO t VALUES (2)")
    lab.heal()
    lab.repoint("a", "b1")
    assert lab.server_id("a") == 4
    assert lab.gtids("a") == lab.gtids("b1")
    assert lab.run("a", "SELECT i FROM t ORDER BY i") == [(1,), (2,)]
    lab.restart("b2", crash=True)
    lab.run("b1", "INSERT INTO t VALUES (3)")
    lab.wait_caught_up("b2")
    assert lab.run("b2", "SELECT COUNT(*) FROM t") == [(3,)]
