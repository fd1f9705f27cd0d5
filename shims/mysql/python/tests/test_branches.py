"""Branches whose rows are in MariaDB or MySQL: connections of their own, partitions, lost rows (spec BRANCH)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import antipode
import pytest
from antipode import Lineage, UnfitStoreError
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.errors import ConfigurationError
from antipode._model.result import BarrierResult
from antipode._store.branch_table import CLOSED
from antipode.shim.administration import Finding, InitRequest, Level
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores._sql_store import SqlStore
from antipode_lab.stores.mariadb import MariaDBStore
from antipode_mysql import MySQLShim
from sql_regions import STORE, Posts, make_table, until


def make_branches(lab: SqlStore) -> None:
    """What `antipode init --set branches=yes` makes, run as it says."""
    for step in MySQLShim.preparations(lab.url(lab.primary), InitRequest(STORE, options={"branches": "yes"})):
        if "GRANT" not in step.text:
            assert step.run is not None
            step.run()
    lab.wait_links()


@pytest.fixture(params=["mariadb", "mysql"])
def rows(request: pytest.FixtureRequest, _labs: dict[str, SqlStore]) -> Iterator[Posts]:
    """The store of posts on either kind of server, with the table."""
    posts = Posts(_labs[request.param], tracked=request.param == "mysql")
    posts.lab.heal()
    make_branches(posts.lab)
    antipode.configure(branches=posts.at("a"))
    yield posts
    posts.lab.heal()


def hand_over(within: float = 30.0) -> tuple[str, Lineage]:
    with antipode.scope() as scope:
        with antipode.branch(within=within):
            task = antipode.serialize()
        return task, scope.lineage


def run(posts: Posts, task: str, key: str) -> None:
    with antipode.message_scope(task), posts.at(posts.lab.primary).cursor() as cursor:
        cursor.execute("REPLACE INTO posts VALUES (%s, 'v')", (key,))
        antipode.close()


def look(lineage: Lineage, timeout: float) -> BarrierResult:
    CLOSED._held.clear()  # as another process, which has seen nothing yet
    began = time.monotonic()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    assert time.monotonic() - began < timeout + 2.0, "past its deadline"
    return result


def test_a_barrier_waits_until_the_replica_shows_the_close_and_the_write(rows: Posts) -> None:
    """BRANCH-12, BRANCH-13."""
    task, lineage = hand_over()
    assert str(look(lineage, 0.1).stores[BRANCHES].verdict) == "timed_out"
    for name in ("b1", "b2"):
        rows.lab.partition(name)
    run(rows, task, "branch-1")
    assert str(look(lineage, 0.3).stores[BRANCHES].verdict) == "timed_out"
    rows.lab.heal(wait=False)
    until(lambda: look(lineage, 2.0).complete)
    assert rows.shows("b1", "branch-1") == rows.shows("b2", "branch-1") == "v"


def test_a_close_is_not_in_the_applications_transaction(rows: Posts) -> None:
    """BRANCH-22."""
    task, lineage = hand_over()
    connection = rows.wrap(rows.pymysql("a", autocommit=False))
    with antipode.message_scope(task), connection.cursor() as cursor:
        cursor.execute("REPLACE INTO posts VALUES ('branch-2', 'v')")
        connection.rollback()
        antipode.close()
        connection.rollback()
    connection.close()
    assert look(lineage, 10.0).complete


def test_the_first_close_stands_and_rows_whose_time_is_over_go(rows: Posts) -> None:
    """BRANCH-10, BRANCH-22."""
    for number in range(25):
        rows.lab.run("a", f"INSERT INTO antipode.branches VALUES ('old{number}', '1', UNIX_TIMESTAMP() - 5)")
    for number in range(3):
        task, lineage = hand_over()
        run(rows, task, f"first-{number}")
        run(rows, task, f"second-{number}")
        assert look(lineage, 10.0).complete
    assert not rows.lab.run("a", "SELECT id FROM antipode.branches WHERE id LIKE 'old%'")
    [[left]] = rows.lab.run("a", "SELECT MIN(ends) - UNIX_TIMESTAMP() FROM antipode.branches")
    assert int(left) > 23 * 3600


def test_a_replica_alone_closes_nothing_though_its_user_might(rows: Posts) -> None:
    """BRANCH-10: root may write at a read-only server; the row would be a transaction that only that one has."""
    task, _ = hand_over()
    with isolated(), antipode.message_scope(task):
        rows.wrap(rows.pymysql("b1"))
        with pytest.raises(ConfigurationError, match="wrap a client of that"):
            antipode.close()


def test_without_the_table_it_is_told_at_once_what_makes_it(rows: Posts) -> None:
    """BRANCH-24, BRANCH-18."""
    rows.lab.run("a", "DROP TABLE antipode.branches")
    rows.lab.wait_links()
    with pytest.raises(UnfitStoreError, match=r"antipode init blog-posts .* --set branches=yes"):
        antipode.configure(branches=rows.at("a"))
    result = look(Lineage([BranchId.new(STORE, 30).write_id]), 5.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "antipode.branches" in result.stores[BRANCHES].reason
    for name in ("a", "b1"):
        found = diagnosed(rows.lab.url(name))
        assert found.level is Level.OK  # most stores keep none
        assert "no table" in found.what
        assert "--set branches=yes" in found.cure
    make_branches(rows.lab)
    assert all(diagnosed(rows.lab.url(name)).what.endswith("may be used") for name in ("a", "b1"))
    assert antipode.configure(branches=STORE).branches == STORE


def diagnosed(url: str) -> Finding:
    """What `antipode doctor` says of branches."""
    [found] = [each for each in MySQLShim.diagnose(url) if each.what.startswith("branches: ")]
    return found


def test_doctor_says_that_a_login_may_only_read_the_rows(rows: Posts) -> None:
    """BRANCH-24, and that nothing is written to find it out; what `antipode init` prints cures it."""
    lab = rows.lab
    lab.create_user("looker", "")
    lab.run("a", "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'looker'@'%'")
    url = lab.url("a").replace("root@", "looker@")
    assert "looker" in url
    assert diagnosed(url).level is Level.OK
    lab.run("a", "GRANT SELECT ON antipode.branches TO 'looker'@'%'")
    before = lab.run("a", "SELECT @@GLOBAL.gtid_executed" if lab.kind == "mysql" else "SELECT @@GLOBAL.gtid_binlog_pos")
    found = diagnosed(url)
    assert found.level is Level.WARNING
    assert "INSERT command denied" in found.what
    after = lab.run("a", "SELECT @@GLOBAL.gtid_executed" if lab.kind == "mysql" else "SELECT @@GLOBAL.gtid_binlog_pos")
    assert before == after
    steps = MySQLShim.preparations(lab.url("a"), InitRequest(STORE, "looker", {"branches": "yes"}))
    for step in steps:
        assert step.run is not None
        step.run()
    assert diagnosed(url).what.endswith("may be used")


def test_a_row_that_a_failover_lost_is_no_close(lab_factory: LabFactory) -> None:
    """BRANCH-13, BRANCH-15: and the task, tried again at the new primary, closes it."""
    lab = lab_factory("mariadb", replicas=2, lag="3ms").get(MariaDBStore)
    make_table(lab)
    make_branches(lab)
    posts = Posts(lab)
    antipode.configure(branches=posts.at("a"))
    task, lineage = hand_over(within=1.0)
    for name in ("b1", "b2"):
        lab.partition(name)
    with antipode.message_scope(task):
        antipode.close()
    lab.kill("a")
    lab.heal(wait=False)
    lab.promote("b1")
    result = look(lineage, 6.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "abandoned" in result.stores[BRANCHES].reason
    posts.at("b1")
    run(posts, task, "again")
    until(lambda: look(lineage, 2.0).stores.get(BRANCHES) is None)
    assert posts.shows("b1", "again") == "v"
