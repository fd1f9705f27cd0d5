"""Servers that may lose what they have, standbys that are cut off, and what is said of it (SHIM-45, BAR-59)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import antipode
import antipode_postgresql
import pytest
from antipode._model.errors import UnfitStoreError
from antipode._model.verdict import UnprovenKind
from antipode.shim.administration import Finding, Level
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import PostgresqlShim
from pg_regions import INSERT, STORE, prepare, proved, until


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    lab = module_lab_factory("postgresql", replicas=1, lag="1ms").get(PostgresqlStore)
    prepare(lab)
    return lab


@pytest.fixture
def registry() -> Iterator[None]:
    with isolated():
        yield


def switch(lab: PostgresqlStore, name: str, setting: str, value: str) -> None:
    with lab.connect(name) as connection:
        connection.execute(f"ALTER SYSTEM SET {setting} = {value}")
        connection.execute("SELECT pg_reload_conf()")
        until(lambda: connection.execute(f"SHOW {setting}").fetchone() == (value,))


@pytest.fixture(scope="module")
def without_fsync(module_lab_factory: LabFactory) -> PostgresqlStore:
    options = {"postgresql": {"fsync": False}}
    lab = module_lab_factory("postgresql", replicas=1, lag="1ms", options=options).get(PostgresqlStore)
    prepare(lab)
    return lab


def finding(url: str, begin: str) -> Finding | None:
    return next((each for each in PostgresqlShim.diagnose(url) if each.what.startswith(begin)), None)


def test_a_server_without_fsync_is_unfit(without_fsync: PostgresqlStore, registry: None) -> None:
    lab = without_fsync
    with lab.connect("a", user="app") as plain:
        with pytest.raises(UnfitStoreError, match="fsync = off"):
            antipode_postgresql.wrap(plain, STORE)
        wrapped = antipode_postgresql.wrap(plain, STORE, on_unfit="unproven")
        with antipode.scope() as scope:
            wrapped.execute(INSERT, ("1",))
            assert scope.lineage.incomplete == {STORE}
    with isolated(), lab.connect("a", user="app") as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")], relaxed_durability=True)
        with antipode.scope() as scope:
            wrapped.execute(INSERT, ("2",))
            assert proved(scope)
            assert antipode.barrier(timeout=30).complete
    found = finding(lab.url("b1"), "fsync: off")
    assert found is not None
    assert found.level is Level.UNPROVEN


def test_a_standby_that_may_lose_what_it_has_proves_nothing(lab: PostgresqlStore, registry: None) -> None:
    """SHIM-45: also where its setting changes while it is waited for."""
    with lab.connect("a", user="app") as plain, antipode.scope():
        wrapped = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
        wrapped.execute(INSERT, ("1",))
        assert antipode.barrier(timeout=30).complete
        switch(lab, "b1", "full_page_writes", "off")
        antipode.configure(reconnect=0.1, free_path_ttl=0.0)
        try:

            def result() -> antipode.BarrierResult:
                return antipode.barrier(timeout=1, on_timeout="proceed", on_unproven="proceed")

            until(lambda: not result().satisfied, 60)
            [verdict] = result().stores.values()
            assert verdict.kind is UnprovenKind.UNFIT
            assert "full_page_writes = off" in verdict.reason
        finally:
            switch(lab, "b1", "full_page_writes", "on")


def test_doctor_shows_a_standbys_lag_and_that_it_is_cut_off(lab: PostgresqlStore) -> None:
    url = lab.url("b1")
    until(lambda: finding(url, "log: comes from its primary, all replayed") is not None, 60)
    with lab.connect("b1") as operator, lab.connect("a", user="app") as writer:
        writer.execute(INSERT, ("before",))
        lab.wait_caught_up("b1")
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            writer.execute(INSERT, ("behind",))
            until(lambda: finding(url, "log: comes from its primary, replays what is") is not None, 60)
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
    lab.partition("b1")
    try:
        with lab.connect("a") as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
        until(lambda: finding(url, "log: it is cut off") is not None, 60)
        found = finding(url, "log: it is cut off")
        assert found is not None
        assert found.level is Level.UNPROVEN
    finally:
        lab.heal("b1")
    until(lambda: finding(url, "log: comes from its primary") is not None, 60)


def refused(lab: PostgresqlStore, url: str) -> antipode.BarrierResult:
    with lab.connect("a", user="app") as plain, antipode.scope():
        wrapped = antipode_postgresql.wrap(plain, STORE, replicas=[url], timeout=30)
        wrapped.execute(INSERT, (str(time.time()),))
        return antipode.barrier(timeout=3, on_timeout="proceed", on_unproven="proceed")


def test_a_missing_right_and_a_refused_login_speak_of_no_lost_write(lab: PostgresqlStore, registry: None) -> None:
    """BAR-59: nor of settling it."""
    with lab.connect("a", database="app") as connection:
        connection.execute("DROP ROLE IF EXISTS newcomer")
        connection.execute("CREATE ROLE newcomer LOGIN")
    lab.wait_caught_up("b1")
    login = {"nobody": UnprovenKind.CONNECTION, "newcomer": UnprovenKind.RIGHT}
    for user, kind in login.items():
        with isolated():
            result = refused(lab, lab.url("b1", user=user))
            assert not result.satisfied
            [verdict] = result.stores.values()
            assert verdict.kind is kind, verdict
            assert "lost" not in result.explain()
            assert "settle" not in result.explain()
            assert user in result.explain()
    with isolated():
        result = refused(lab, "postgresql://app@127.0.0.1:1/app")
        [verdict] = result.stores.values()
        assert verdict.kind is UnprovenKind.CONNECTION
        assert "lost" not in result.explain()


def test_functions_of_an_owner_without_the_rights_are_a_missing_right(lab: PostgresqlStore, registry: None) -> None:
    """N3's error: a database that was prepared by its own login."""
    with lab.connect("a", database="app") as connection:
        connection.execute("REVOKE pg_monitor FROM antipode_owner")
        lab.wait_caught_up("b1")
        try:
            result = refused(lab, lab.url("b1"))
            [verdict] = result.stores.values()
            assert verdict.kind is UnprovenKind.RIGHT, verdict
            assert "lost" not in result.explain()
            assert "antipode init" in result.explain()
            levels = {each.level for each in PostgresqlShim.diagnose(lab.url("b1"))}
            assert Level.UNPROVEN in levels
        finally:
            connection.execute("GRANT pg_monitor TO antipode_owner")
