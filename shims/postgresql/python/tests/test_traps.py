"""The traps of positions in PostgreSQL's log, each on real servers (spec EPOCH-1 to EPOCH-5, SHIM-11)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode import Lineage, Ordered, Verdict
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.looking import Look
from antipode_postgresql.positions import epoch_of, number_of
from pg_regions import STORE, Posts, prepare, until

INSERT = "INSERT INTO posts (key, value) VALUES (%s, 'v')"
PAGE = 8192


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    lab = module_lab_factory("postgresql", replicas=2, lag=["2ms", "5ms"]).get(PostgresqlStore)
    prepare(lab)
    return lab


@pytest.fixture
def posts(lab: PostgresqlStore) -> Iterator[Posts]:
    with isolated():
        posts = Posts(lab, replicas=[lab.url("b1"), lab.url("b2")])
        yield posts
        posts.close()


def position(lineage: Lineage) -> Ordered:
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    return write_id.version


def insert_position(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return number_of(row[0])


def fill(connection: psycopg.Connection[Any], octets: int) -> None:
    """Makes a record of so many octets in the log (a multiple of eight), with nothing in it."""
    connection.execute("SELECT pg_logical_emit_message(false, 'fill', repeat('x', %s))", (octets,))


def test_a_position_at_the_end_of_a_page_is_not_waited_for_in_vain(posts: Posts, lab: PostgresqlStore) -> None:
    """A record that ends with its page: the insert position already lies behind the next header, where none ends."""
    wrapped = posts.wrap("a")
    with lab.connect("a", database="app") as other:
        deadline = time.monotonic() + 60
        number = size = 0
        while True:
            assert time.monotonic() < deadline, "no record ended with its page"
            before = insert_position(other)
            if size and (left := PAGE - before % PAGE - size) >= 1400:
                fill(other, 400)
                header = insert_position(other) - before - 400  # what a message takes beside its text
                fill(other, left - 400 - 2 * header)
                before = insert_position(other)
            number += 1
            with antipode.scope() as scope:
                wrapped.execute(INSERT, (f"page-{number:06d}",))
                lineage = scope.lineage
            after = insert_position(other)
            if after % PAGE == 24:
                break
            if before // PAGE == after // PAGE:
                size = after - before
        assert position(lineage).counter == after - 24
        assert posts.look(lineage, 10.0).satisfied


def test_what_another_session_has_not_committed_does_not_hold_a_barrier_up(posts: Posts, lab: PostgresqlStore) -> None:
    wrapped = posts.wrap("a")
    with lab.connect("a", user="app", autocommit=False) as other:
        for number in range(10):
            other.execute(INSERT, (f"uncommitted-{number}",))
            with antipode.scope() as scope:
                wrapped.execute(INSERT, (f"committed-{number}",))
                other.execute(INSERT, (f"behind-{number}",))
                result = posts.look(scope.lineage, 10.0)
            assert result.satisfied
            assert posts.shows("b1", f"committed-{number}") == "v"
        other.rollback()


def by_parameters(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute(INSERT, (key,))


def by_plain_text(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute(f"INSERT INTO posts (key, value) VALUES ('{key}', 'v')".encode())


def by_one_message(connection: psycopg.Connection[Any], key: str) -> None:
    """Several statements without BEGIN are one transaction: a position read among them is before the commit."""
    text = f"INSERT INTO posts (key, value) VALUES ('{key}', 'v'); SELECT pg_current_wal_flush_lsn()"
    connection.execute(text.encode())


def by_transaction(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.transaction(), connection.transaction():
        connection.execute(INSERT, (key,))


def by_words(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute("BEGIN")
    connection.execute(INSERT, (key,))
    connection.execute("COMMIT")


def by_many(connection: psycopg.Connection[Any], key: str) -> None:
    connection.cursor().executemany(INSERT, [(f"{key}-1",), (key,)])


def by_copy(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.cursor().copy("COPY posts (key, value) FROM STDIN") as copy:
        copy.write_row((key, "v"))


def by_pipeline(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.pipeline():
        connection.execute(INSERT, (f"{key}-1",))
        connection.execute(INSERT, (key,))


def by_transaction_in_pipeline(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.pipeline():
        for name in (f"{key}-1", key):
            with connection.transaction():
                connection.execute(INSERT, (name,))


def by_function(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute("SELECT add_post(%s)", (key,))


def by_function_in_transaction(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.transaction():
        connection.execute("SELECT add_post(%s)", (key,))


def by_block(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute(f"DO $$ BEGIN INSERT INTO posts (key, value) VALUES ('{key}', 'v'); END $$".encode())


def by_stream(connection: psycopg.Connection[Any], key: str) -> None:
    assert list(connection.cursor().stream(INSERT + " RETURNING key", (key,))) == [(key,)]


def by_local_setting(connection: psycopg.Connection[Any], key: str) -> None:
    """What SET LOCAL said is gone behind the COMMIT."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = off")
        connection.execute(INSERT, (key,))


WAYS = [value for name, value in list(globals().items()) if name.startswith("by_")]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_pass_shows_the_row_whatever_way_it_was_written(
    posts: Posts, lab: PostgresqlStore, way: Callable[..., None], asynchronous: bool
) -> None:
    with lab.connect("a", user="app") as other:
        other.execute(
            "CREATE OR REPLACE FUNCTION add_post(text) RETURNS void LANGUAGE sql AS "
            "$$ INSERT INTO posts (key, value) VALUES ($1, 'v') $$"
        )
    wrapped = posts.wrap("a")
    if asynchronous:
        wrapped.execute("SET synchronous_commit = off")
    with lab.connect("b1", user="app") as reader:
        for number in range(5):
            key = f"{way.__name__}-{asynchronous}-{number}"
            with antipode.scope() as scope:
                way(wrapped, key)
                assert not scope.pending
                assert scope.lineage.is_complete()
                lineage = scope.lineage
            assert posts.look(lineage, 15.0).satisfied
            found = reader.execute("SELECT value FROM posts WHERE key = %s", (key,)).fetchone()
            assert found == ("v",), "a false pass"
            with lab.connect("a", user="app") as primary:
                row = primary.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
                assert row is not None
                assert number_of(row[0]) >= position(lineage).counter, "not durable when it was recorded"


def test_asynchronous_commits_may_be_left_incomplete(posts: Posts) -> None:
    wrapped = posts.wrap("a", async_commits="incomplete")
    for number in range(8):  # past what prepares the question
        with antipode.scope() as scope:
            with wrapped.transaction():
                wrapped.execute("SET LOCAL synchronous_commit = off")
                wrapped.execute(INSERT, (f"left incomplete {number}",))
            assert scope.lineage.incomplete == {STORE}
            assert not scope.lineage.of_store(STORE)


def test_a_recorded_asynchronous_commit_survives_a_crash(posts: Posts, lab: PostgresqlStore) -> None:
    """Else its place in the log would be used again on the same timeline, and pass for another write."""
    wrapped = posts.wrap("a")
    wrapped.execute("SET synchronous_commit = off")
    lineages = {}
    for number in range(5):
        with antipode.scope() as scope:
            wrapped.execute(INSERT, (f"crash-{number}",))
            lineages[f"crash-{number}"] = scope.lineage
    lab.restart("a", crash=True)
    for key, lineage in lineages.items():
        assert posts.look(lineage, 30.0).satisfied
        for name in ("a", "b1", "b2"):
            assert posts.shows(name, key) == "v"


def test_waiting_does_not_hold_replay_up(posts: Posts, lab: PostgresqlStore) -> None:
    """A snapshot kept at a standby stops replay at the next record that conflicts with it, for 30 s by default."""
    with lab.connect("a", user="app") as primary:
        primary.execute("CREATE TABLE short_lived (key text)")
        primary.execute("INSERT INTO short_lived SELECT 'x' FROM generate_series(1, 1000)")
        wrapped = posts.wrap("a")
        posts.look(posts.write("before"), 5.0)
        lab.lag("b1", "500ms")
        try:
            primary.execute("DELETE FROM short_lived WHERE true")
            primary.execute("VACUUM (TRUNCATE) short_lived")
            primary.execute("DROP TABLE short_lived")
            with antipode.scope() as scope:
                wrapped.execute(INSERT, ("behind what conflicts",))
                results: list[antipode.BarrierResult] = []
                waiters = [
                    threading.Thread(target=lambda: results.append(posts.look(scope.lineage, 15.0))) for _ in range(10)
                ]
                for waiter in waiters:
                    waiter.start()
                for waiter in waiters:
                    waiter.join()
            assert all(result.satisfied for result in results)
        finally:
            lab.lag("b1", "2ms")


def test_the_server_is_asked_by_one_poller_however_many_wait(
    posts: Posts, lab: PostgresqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded by the process and the millisecond, not by the waiters: two glances, and a look in ten."""
    posts.look(posts.write("warm"), 5.0)
    asked = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(Look, name)

        def count(look: Look, *args: Any) -> Any:
            if look is posts.server("b1").session:
                asked[name] += 1
            return plain(look, *args)

        return count

    for name in ("look", "glance"):
        monkeypatch.setattr(Look, name, counted(name))
    lab.partition("b1")
    began = time.monotonic()
    try:
        lineage = posts.write("asked for by many")
        with lab.connect("b1") as server:
            waiters = [threading.Thread(target=lambda: posts.at("b1", lineage, 1.0)) for _ in range(50)]
            for waiter in waiters:
                waiter.start()
            sessions: set[int] = set()
            while any(waiter.is_alive() for waiter in waiters):
                row = server.execute(
                    "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'antipode'"
                ).fetchone()
                sessions |= set((row and row[0]) or [])
                time.sleep(0.05)
            assert len(sessions) == 1
        waited = time.monotonic() - began
        assert asked["glance"] <= 2000 * waited
        assert asked["look"] <= 2 * 100 * waited + len(waiters), "what is new to be waited for is looked for at once"
    finally:
        lab.heal()


def test_the_receiver_is_down(posts: Posts, lab: PostgresqlStore) -> None:
    """What the standby has stays proved while nobody knows which timeline it would follow next."""
    kept = posts.write("kept while the receiver is down")
    assert posts.look(kept, 15.0).satisfied
    lab.partition("b1")
    try:
        with lab.connect("b1") as server:
            until(lambda: server.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,))
        posts.server("b1").reset()
        posts.comes("b1", kept)
        later = posts.write("later")
        assert posts.at("b1", later, 0.3) is not Verdict.VISIBLE
    finally:
        lab.heal()
    posts.comes("b1", later)


def test_a_standby_restarts_between_two_barriers(posts: Posts, lab: PostgresqlStore) -> None:
    """It may answer from before what it had shown: nothing that was proved before holds.

    Without the free path, which believes a proof for `free_path_ttl` (the page's exposure; BAR-33).
    """
    antipode.configure(free_path_ttl=0)
    with lab.connect("a", user="app") as primary:
        primary.execute("CREATE TABLE IF NOT EXISTS bulk (number int)")
        primary.execute("INSERT INTO bulk SELECT generate_series(1, 50000)")
    lineage = posts.write("shown before")
    assert posts.look(lineage, 10.0).satisfied
    lab.restart("b1", crash=True, wait=False)
    posts.comes("b1", lineage)
    assert posts.shows("b1", "shown before") == "v"


def test_a_frozen_server_does_not_hold_a_barrier_past_its_deadline(posts: Posts, lab: PostgresqlStore) -> None:
    posts.look(posts.write("warm"), 5.0)
    lab.freeze("b2")
    try:
        lineage = posts.write("frozen")
        assert posts.at("b2", lineage, 0.5) is not Verdict.VISIBLE
        posts.comes("b1", lineage)
    finally:
        lab.thaw("b2")
    posts.comes("b2", lineage)


def test_the_epoch_names_system_timeline_and_branch(posts: Posts, lab: PostgresqlStore) -> None:
    version = position(posts.write("epoch"))
    epoch = epoch_of(version.epoch)
    assert epoch is not None
    with lab.connect("a", database="app") as connection:
        system = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
        assert system == (epoch.system,)
        rows = connection.execute("SELECT timeline, word FROM antipode.epochs").fetchall()
    assert rows == [(epoch.timeline, epoch.word)]
    assert len(str(posts.write("size"))) <= 64, "beside a row"


def test_a_user_without_the_right_is_told_what_to_run(posts: Posts, lab: PostgresqlStore) -> None:
    with lab.connect("a", database="app") as connection:
        connection.execute("CREATE ROLE nobody_yet LOGIN")
        connection.execute("GRANT SELECT ON posts TO nobody_yet")
    lineage = posts.write("told")
    lab.wait_caught_up("b1")
    antipode_postgresql.register("other", replicas=[lab.url("b1", user="nobody_yet")])
    found = Lineage([antipode.WriteId.position("other", *position(lineage))])
    result = antipode.barrier(found, stores=["other"], timeout=20, on_unproven="proceed", on_timeout="proceed")
    assert result.stores["other"].verdict is Verdict.UNPROVEN
    assert "antipode init" in result.stores["other"].reason


def test_the_attribute_replication_is_enough(posts: Posts, lab: PostgresqlStore) -> None:
    """Where no function may be made: the server's history by the replication protocol."""
    with lab.connect("a", database="app") as connection:
        connection.execute("CREATE ROLE follower LOGIN REPLICATION")
        connection.execute("GRANT USAGE ON SCHEMA antipode TO follower")
        connection.execute("GRANT SELECT ON antipode.epochs TO follower")
    lineage = posts.write("by replication")
    lab.wait_caught_up("b1")
    antipode_postgresql.register("other", replicas=[lab.url("b1", user="follower")])
    found = Lineage([antipode.WriteId.position("other", *position(lineage))])
    assert antipode.barrier(found, stores=["other"], timeout=20).satisfied
