"""What operators are told of a server, and what `antipode init` makes there (spec SHIM-3, EPOCH-24, EPOCH-26)."""

from __future__ import annotations

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode._model.errors import UnfitStoreError
from antipode.shim.administration import Administration, InitRequest, Level, StorePreparer, administration_of
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import PostgresqlShim


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    return module_lab_factory("postgresql", replicas=1, lag="1ms").get(PostgresqlStore)


def levels(url: str) -> dict[str, Level]:
    return {finding.what.partition(":")[0]: finding.level for finding in PostgresqlShim.diagnose(url)}


def test_init_and_doctor(lab: PostgresqlStore) -> None:
    url, standby = lab.url("a"), lab.url("b1")
    assert isinstance(PostgresqlShim, Administration)
    assert isinstance(PostgresqlShim, StorePreparer)
    assert administration_of("postgresql://a/blog") is PostgresqlShim
    before = levels(url)
    assert before["epochs"] is Level.UNPROVEN
    assert before["timeline"] is Level.OK
    assert levels(standby)["timeline"] is Level.UNPROVEN
    with lab.connect("a", user="app") as connection:
        connection.execute("CREATE TABLE posts (key text)")
    root = lab.url("a", user="postgres")
    steps = PostgresqlShim.preparations(root, InitRequest("posts", "app", {"table": "posts"}))
    for _ in range(2):  # it does no harm when it is done again
        for step in steps:
            assert step.run is not None
            assert step.run() == "done"
    lab.wait_caught_up("b1")
    assert levels(url)["epochs"] is Level.OK
    assert set(levels(standby).values()) == {Level.OK}
    refused = PostgresqlShim.preparations(lab.url("b1", user="postgres"), InitRequest("posts", "app"))[0].run
    assert refused is not None
    with pytest.raises(ValueError, match="standby"):
        refused()
    with lab.connect("a", user="app") as connection:
        connection.execute("ALTER ROLE app SET synchronous_commit = off")
    try:
        assert levels(url)["synchronous_commit"] is Level.WARNING
    finally:
        with lab.connect("a", user="app") as connection:
            connection.execute("ALTER ROLE app RESET synchronous_commit")


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_a_pooler_before_the_server(lab: PostgresqlStore, mode: str) -> None:
    """A real PgBouncer: one that gives each transaction another server process is refused, and said to doctors."""
    url = f"postgresql://app@127.0.0.1:{lab.pooler('a', mode)}/app"
    with psycopg.connect(url, autocommit=True) as plain, isolated():
        if mode == "session":
            wrapped = antipode_postgresql.wrap(plain, store="blog-posts")
            with antipode.scope() as scope:
                wrapped.execute("CREATE TABLE IF NOT EXISTS pooled (key text)")
                wrapped.execute("INSERT INTO pooled VALUES ('k')")
            assert scope.lineage.is_complete()
            assert len(scope.lineage.of_store("blog-posts")) == 1
        else:
            with pytest.raises(UnfitStoreError, match="pool_mode = session"):
                antipode_postgresql.wrap(plain, store="blog-posts")
    [told] = [level for what, level in levels(url).items() if what.startswith("a pooler")]
    assert told is (Level.OK if mode == "session" else Level.UNPROVEN)


def test_what_init_prints_asks_no_server() -> None:
    steps = PostgresqlShim.preparations("postgresql://nowhere.invalid/blog", InitRequest("posts"))
    assert all(step.text.endswith(";") for step in steps)
    assert [step for step in steps if step.run is None], "grants to nobody are printed only"
    assert all("USER" in step.text for step in steps if step.run is None)
    for user, table in (("", "posts"), ("app", "posts; DROP TABLE posts")):
        with pytest.raises(ValueError, match="no name"):
            PostgresqlShim.preparations("postgresql://a/blog", InitRequest("posts", user, {"table": table}))
    quoted = PostgresqlShim.preparations("postgresql://a/blog", InitRequest("posts", 'a"b'))
    assert any('TO "a""b"' in step.text for step in quoted)


def test_a_server_that_does_not_answer_is_the_clients_own_error() -> None:
    with pytest.raises(psycopg.OperationalError):
        PostgresqlShim.diagnose("postgresql://app@127.0.0.1:1/app")
