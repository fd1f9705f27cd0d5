"""Branches whose rows are in PostgreSQL: on a connection of its own, through partitions and failovers (spec BRANCH)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode import Lineage, UnfitStoreError
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.errors import ConfigurationError
from antipode._model.result import BarrierResult
from antipode._store.branch_table import CLOSED
from antipode.shim.administration import Finding, InitRequest, Level
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import PostgresqlShim
from pg_regions import INSERT, STORE, Posts, prepare, until


def make_table(lab: PostgresqlStore) -> None:
    """What `antipode init --set branches=yes` makes, run as it says."""
    wanted = InitRequest(STORE, user="app", options={"branches": "yes"})
    url = lab.url(lab.primary, user="postgres", database="app")
    for step in PostgresqlShim.preparations(url, wanted):
        if "branches" in step.text:
            assert step.run is not None
            step.run()
    for name in lab.replicas:
        lab.wait_caught_up(name)


@pytest.fixture
def posts(quiet_posts: Posts) -> Posts:
    make_table(quiet_posts.lab)
    antipode.configure(branches=quiet_posts.wrap("a"))
    return quiet_posts


def hand_over(within: float = 30.0) -> tuple[str, Lineage]:
    with antipode.scope() as scope:
        with antipode.branch(within=within):
            task = antipode.serialize()
        return task, scope.lineage


def run(posts: Posts, task: str, key: str, *, at: str = "a") -> None:
    with antipode.message_scope(task), posts.wrap(at) as connection:
        connection.execute(INSERT, (key,))
        antipode.close()


def look(lineage: Lineage, timeout: float) -> BarrierResult:
    CLOSED._held.clear()  # as another process, which has seen nothing yet
    began = time.monotonic()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    assert time.monotonic() - began < timeout + 2.0, "past its deadline"
    return result


def test_a_barrier_waits_until_the_standby_shows_the_close_and_the_write(posts: Posts) -> None:
    """BRANCH-12, BRANCH-13."""
    task, lineage = hand_over()
    assert str(look(lineage, 0.1).stores[BRANCHES].verdict) == "timed_out"
    posts.lab.partition("b1")
    run(posts, task, "k1")
    assert str(look(lineage, 0.3).stores[BRANCHES].verdict) == "timed_out"
    posts.lab.heal("b1", wait=False)
    until(lambda: look(lineage, 2.0).complete)
    assert posts.shows("b1", "k1") == "v"


def test_a_close_is_not_in_the_applications_transaction(posts: Posts) -> None:
    """BRANCH-22: what that rolls back, the row is not; the branch then says that nothing was written."""
    task, lineage = hand_over()
    with antipode.message_scope(task), posts.wrap("a", autocommit=False) as connection:
        connection.execute(INSERT, ("k2",))
        connection.rollback()
        connection.execute("SELECT 1")
        antipode.close()
        connection.rollback()
    assert look(lineage, 10.0).complete


def test_the_first_close_stands_and_rows_whose_time_is_over_go(posts: Posts) -> None:
    """BRANCH-10, BRANCH-22."""
    with posts.lab.connect("a", database="app") as connection:
        connection.execute(
            "INSERT INTO antipode.branches "
            "SELECT 'old' || n, '1', now() - interval '1 s' FROM generate_series(1, 25) AS n"
        )
        connection.commit()
        for number in range(3):
            task, lineage = hand_over()
            run(posts, task, f"first{number}")
            run(posts, task, f"second{number}")
            assert look(lineage, 10.0).complete
        rows = connection.execute("SELECT id, ends - now() FROM antipode.branches WHERE id LIKE 'old%'").fetchall()
        assert not rows
        [(left,)] = connection.execute("SELECT min(ends - now()) FROM antipode.branches").fetchall()
        assert left.total_seconds() > 23 * 3600


def test_a_standby_alone_closes_nothing(posts: Posts) -> None:
    """BRANCH-10."""
    task, _ = hand_over()
    with isolated(), antipode.message_scope(task):
        posts.wrap("b1")
        with pytest.raises(ConfigurationError, match="wrap a client of that"):
            antipode.close()


def test_without_the_table_it_is_told_at_once_what_makes_it(quiet_posts: Posts) -> None:
    """BRANCH-24, BRANCH-18."""
    with quiet_posts.lab.connect("a", database="app") as connection:
        connection.execute("DROP TABLE IF EXISTS antipode.branches")
    wrapped = quiet_posts.wrap("a")
    with pytest.raises(UnfitStoreError, match=r"antipode init blog-posts .* --set branches=yes"):
        antipode.configure(branches=wrapped)
    quiet_posts.lab.wait_caught_up("b1")
    lineage = Lineage([BranchId.new(STORE, 30).write_id])
    result = look(lineage, 5.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "antipode.branches" in result.stores[BRANCHES].reason
    lab = quiet_posts.lab
    root = lab.url("a", user="postgres", database="app")
    found = diagnosed(root)
    assert found.level is Level.OK  # most stores keep none
    assert "no table" in found.what
    assert "--user postgres --set branches=yes" in found.cure
    make_table(lab)
    assert all(diagnosed(lab.url(name)).what.endswith("may use it") for name in ("a", "b1"))
    with lab.connect("a", user="postgres", database="app") as connection:
        connection.execute("REVOKE DELETE ON antipode.branches FROM app")
    found = diagnosed(lab.url("a"))
    assert (found.level, found.what) == (Level.WARNING, "branches: no right to the table")
    make_table(lab)
    assert diagnosed(lab.url("a")).level is Level.OK
    assert antipode.configure(branches=STORE).branches == STORE


def diagnosed(url: str) -> Finding:
    """What `antipode doctor` says of branches."""
    [found] = [each for each in PostgresqlShim.diagnose(url) if each.what.startswith("branches: ")]
    return found


@pytest.fixture
def fresh(lab_factory: LabFactory) -> Iterator[Posts]:
    lab = lab_factory("postgresql", replicas=2, lag=["5ms", "10ms"]).get(PostgresqlStore)
    prepare(lab)
    make_table(lab)
    with isolated():
        posts = Posts(lab, replicas=[lab.url("b1")])
        antipode.configure(branches=posts.wrap("a"))
        yield posts
        posts.close()


def test_a_row_that_a_failover_lost_is_no_close(fresh: Posts) -> None:
    """BRANCH-13, BRANCH-15: and the task, tried again at the new primary, closes it."""
    lab = fresh.lab
    task, lineage = hand_over(within=1.0)
    for name in ("b1", "b2"):
        lab.partition(name)
    with antipode.message_scope(task):
        antipode.close()
    lab.kill("a")
    for name in ("b1", "b2"):
        lab.heal(name, wait=False)
    lab.promote("b1")
    result = look(lineage, 5.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "abandoned" in result.stores[BRANCHES].reason
    with psycopg.connect(lab.url("b1"), autocommit=True) as plain:
        connection = antipode_postgresql.wrap(plain, STORE)
        with antipode.message_scope(task):
            connection.execute(INSERT, ("again",))
            antipode.close()
    until(lambda: look(lineage, 2.0).satisfied)
    assert fresh.shows("b1", "again") == "v"
