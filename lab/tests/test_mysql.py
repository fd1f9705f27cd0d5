"""The lab's MySQL, on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from antipode_lab.errors import InstallError
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores._mysql_packages import UnpackedMySQL
from antipode_lab.stores.mysql import LOST_TABLE, MySQLStore
from antipode_lab.unpacked import UnpackedPackage


def test_it_is_a_mysql_9_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert int(UnpackedMySQL().version().partition(".")[0]) >= 9
    monkeypatch.setenv("ANTIPODE_CACHE", str(tmp_path))
    assert not UnpackedMySQL().ready()


def test_a_mysql_that_is_too_old_is_refused_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unpacked(_: UnpackedPackage, build: Path) -> Path:
        loader, server = build / "made/usr/lib/x/ld-linux-x.so.2", build / "made/usr/sbin/mysqld"
        for file in (loader, server):
            file.parent.mkdir(parents=True)
            file.write_text("#!/bin/sh\necho 'mysqld  Ver 8.4.1-1 for Linux'\n")
            file.chmod(0o755)
        return build / "made"

    monkeypatch.setenv("ANTIPODE_CACHE", str(tmp_path))
    monkeypatch.setattr(UnpackedPackage, "_unpacked", unpacked)
    for _ in range(2):
        with pytest.raises(InstallError, match=r"is MySQL 8\.4\.1-1; MySQL 9 or later"):
            UnpackedMySQL().install()
    assert not UnpackedMySQL().ready()


def test_a_failover_loses_writes_and_the_old_primary_is_rebuilt_under_a_fresh_uuid(lab_factory: LabFactory) -> None:
    lab = lab_factory("mysql", replicas=2, lag="3ms").get(MySQLStore)
    lab.run("a", "CREATE TABLE t (i INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    for name in lab.replicas:
        lab.wait_caught_up(name)
        assert lab.run(name, "SELECT i FROM t") == [(1,)]
    first = lab.server_uuid("a")
    assert len({lab.server_uuid(name) for name in lab.servers}) == 3
    lab.promote("b1", lose=3)
    assert lab.primary == "b1"
    assert lab.run("a", f"SELECT COUNT(*) FROM {LOST_TABLE}") == [(3,)]
    lab.run("b1", "INSERT INTO t VALUES (2)")
    lab.heal()
    lab.repoint("a", "b1")
    assert lab.server_uuid("a") != first
    assert lab.gtids("a") == lab.gtids("b1")
    assert lab.run("a", "SELECT i FROM t ORDER BY i") == [(1,), (2,)]
    lab.restart("b2", crash=True)
    lab.run("b1", "INSERT INTO t VALUES (3)")
    lab.wait_caught_up("b2")
    assert lab.run("b2", "SELECT COUNT(*) FROM t") == [(3,)]


def test_an_old_primary_that_lost_nothing_rejoins_under_its_uuid(lab_factory: LabFactory) -> None:
    lab = lab_factory("mysql", replicas=1, lag="3ms").get(MySQLStore)
    lab.run("a", "CREATE TABLE t (i INT PRIMARY KEY)")
    first = lab.server_uuid("a")
    lab.promote("b1", lose=0)
    lab.repoint("a", "b1")
    lab.run("b1", "INSERT INTO t VALUES (1)")
    lab.wait_caught_up("a")
    assert lab.server_uuid("a") == first
    lab.partition("a", mode="silent")
    lab.run("b1", "INSERT INTO t VALUES (2)")
    lab.heal()
    lab.wait_caught_up("a")
    assert lab.run("a", "SELECT COUNT(*) FROM t") == [(2,)]


@pytest.mark.parametrize("kept", [True, False])
def test_a_rebuilt_server_keeps_its_uuid_only_where_that_was_asked_for(lab_factory: LabFactory, kept: bool) -> None:
    options = {"mysql": {"fresh_server_ids": not kept}}
    lab = lab_factory("mysql", replicas=1, lag="3ms", options=options).get(MySQLStore)
    lab.run("a", "CREATE TABLE t (i INT PRIMARY KEY)")
    lab.wait_links()
    first = lab.server_uuid("a")
    lab.promote("b1", lose=1)
    lab.heal(wait=False)
    lab.repoint("a", "b1")
    assert (lab.server_uuid("a") == first) is kept
