"""Timelines on real servers: what was lost never passes, what is there is proved, at every kind of server (EPOCH)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode import Lineage, Ordered, Verdict
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlOptions, PostgresqlStore
from antipode_postgresql.positions import epoch_of
from pg_regions import STORE, Posts, prepare

NAMES = ("a", "b1", "b2")
PATIENCE_S = 20.0


@pytest.fixture
def lab(lab_factory: LabFactory) -> PostgresqlStore:
    lab = lab_factory("postgresql", replicas=2, lag=["2ms", "8ms"]).get(PostgresqlStore)
    prepare(lab)
    return lab


@pytest.fixture
def posts(lab: PostgresqlStore) -> Iterator[Posts]:
    with isolated():
        antipode.configure(free_path_ttl=0)
        posts = Posts(lab)
        antipode_postgresql.register(STORE, replicas=[lab.url(name) for name in NAMES])
        yield posts
        posts.close()


def timeline(lineage: Lineage) -> int:
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    epoch = epoch_of(write_id.version.epoch)
    assert epoch is not None
    return epoch.timeline


def lose(posts: Posts, to: str, key: str, count: int = 3) -> Lineage:
    """Promotes a standby; the old primary's last writes are lost."""
    found: list[Lineage] = []
    old = posts.lab.primary
    posts.lab.promote(to, lose=lambda _: found.extend(posts.write(f"{key}-{n}", at=old) for n in range(count)))
    return found[0]


def test_three_timelines_with_lost_tails(posts: Posts, lab: PostgresqlStore) -> None:
    """EPOCH-28."""
    kept, lost = {}, {}
    kept[1] = posts.write("kept-1")
    posts.comes("b1", kept[1])
    lost[1] = lose(posts, "b1", "lost-1")
    lab.heal()
    lab.repoint("a", "b1")
    kept[2] = posts.write("kept-2")
    posts.comes("b2", kept[2])
    lost[2] = lose(posts, "b2", "lost-2")
    lab.heal()
    lab.repoint("b1", "b2")
    lab.repoint("a", "b2")
    for number in range(20):  # further than what was lost: numbers alone would pass
        kept[3] = posts.write(f"kept-3-{number}")
    assert [timeline(one) for one in kept.values()] == [1, 2, 3]
    for name in NAMES:
        posts.comes(name, kept[3])
        for number in (1, 2):
            posts.comes(name, kept[number])
            assert posts.shows(name, f"kept-{number}") == "v"
            assert posts.shows(name, f"lost-{number}-0") is None
            assert posts.at(name, lost[number], PATIENCE_S) is Verdict.UNPROVEN
    result = posts.look(lost[2], PATIENCE_S)
    assert "ended there" in result.stores[STORE].reason


def test_a_fallback_to_the_primary_tells_every_write_that_a_failover_lost(posts: Posts, lab: PostgresqlStore) -> None:
    """BAR-46: the region lags, and the new primary has lost them: 10 of 10 are told, none is read stale in silence."""
    assert posts.look(posts.write("before"), PATIENCE_S).satisfied
    found: list[Lineage] = []
    old = lab.primary
    lab.promote("b1", lose=lambda _: found.extend(posts.write(f"lost-{n}", at=old) for n in range(10)))
    reader, primary = posts.wrap("b2"), posts.wrap("b1")

    def read(connection: psycopg.Connection[Any], key: str) -> Any:
        row = connection.execute("SELECT value FROM posts WHERE key = %s", (key,)).fetchone()
        return None if row is None else row[0]

    told = 0
    for number, lineage in enumerate(found):
        on_unproven: Literal["raise", "proceed"] = "proceed" if number % 2 else "raise"
        with antipode.scope(lineage), suppress(antipode.BarrierError):
            here, there = partial(read, reader, f"lost-{number}"), partial(read, primary, f"lost-{number}")
            antipode.read_or_fallback(here, there, timeout=0, on_unproven=on_unproven)
            continue
        told += 1
    assert told == 10
    with antipode.scope(posts.write("fresh")):
        here, there = partial(read, reader, "fresh"), partial(read, primary, "fresh")
        assert antipode.read_or_fallback(here, there, timeout=0, on_unproven="proceed") == "v"


def test_a_standby_on_the_old_branch_that_got_further(posts: Posts, lab: PostgresqlStore) -> None:
    """It has replayed more than the position, of another history."""
    assert posts.look(posts.write("before"), PATIENCE_S).satisfied
    lab.partition("b1")
    lab.promote("b1", lose=None, repoint=False, wait=False)
    for number in range(200):
        posts.write(f"old branch {number}", at="a")
    new = posts.write("new branch", at="b1")
    assert timeline(new) == 2
    [write_id] = new.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    assert lab.place("b2").position > write_id.version.counter
    assert posts.at("b2", new, 0.5) is not Verdict.VISIBLE
    assert posts.at("a", new, 0.5) is not Verdict.VISIBLE
    posts.comes("b1", new)
    lab.heal(wait=False)
    lab.repoint("b2", "b1")
    posts.comes("b2", new)
    assert posts.shows("b2", "new branch") == "v"


def test_two_standbys_promoted_apart(posts: Posts, lab: PostgresqlStore) -> None:
    """EPOCH-29: both call it timeline 2 of the same system, forked at one place: only the word tells them apart."""
    posts.look(posts.write("before"), PATIENCE_S)
    lab.partition("b1")
    lab.partition("b2")
    lab.promote("b1", lose=None, repoint=False, wait=False)
    lab.promote_apart("b2")
    mine = posts.write("at b1", at="b1")
    for number in range(100):
        other = posts.write(f"at b2 {number}", at="b2")
    assert timeline(mine) == timeline(other) == 2
    assert lab.place("b2").position > max(w.version.counter for w in mine.of_store(STORE))  # type: ignore[union-attr]
    posts.comes("b1", mine)
    posts.comes("b2", other)
    assert posts.at("b2", mine, PATIENCE_S) is Verdict.UNPROVEN
    assert posts.shows("b2", "at b1") is None
    lab.heal(wait=False)
    lab.repoint("b2", "b1")
    posts.comes("b2", mine)
    assert posts.at("b2", other, PATIENCE_S) is Verdict.UNPROVEN


def test_a_connection_lives_through_its_servers_promotion(posts: Posts, lab: PostgresqlStore) -> None:
    wrapped = posts.wrap("b1")
    wrapped.execute("SELECT 1")
    before = posts.write("before")
    with antipode.scope() as scope, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        wrapped.execute("INSERT INTO posts (key, value) VALUES ('at a standby', 'v')")
    assert not scope.pending
    lab.promote("b1", lose=0)
    with antipode.scope() as scope:
        wrapped.execute("INSERT INTO posts (key, value) VALUES ('same connection', 'v')")
        after = scope.lineage
    assert timeline(after) == 2
    for lineage in (before, after):
        posts.comes("b1", lineage)
        posts.comes("b2", lineage)


@pytest.mark.stores
def test_barriers_parked_across_a_promotion_and_the_primary_gone(posts: Posts, lab: PostgresqlStore) -> None:
    posts.look(posts.write("before"), PATIENCE_S)
    lab.lag("b2", "400ms")
    last = posts.write("last")
    verdicts: dict[str, Verdict] = {}
    waiters = [
        threading.Thread(target=lambda name=name: verdicts.update({name: posts.at(name, last, PATIENCE_S)}))
        for name in ("b1", "b2")
    ]
    for waiter in waiters:
        waiter.start()
    lab.wait_caught_up("b1")
    lab.kill("a")
    lab.promote("b1")
    for waiter in waiters:
        waiter.join()
    assert verdicts["b2"] is Verdict.VISIBLE
    assert verdicts["b1"] is Verdict.VISIBLE
    assert posts.shows("b2", "last") == "v"


def test_an_operator_settles_an_epoch(posts: Posts, lab: PostgresqlStore) -> None:
    lost = lose(posts, "b1", "lost")
    lab.heal()
    lab.repoint("a", "b1")
    after = posts.write("after")
    for name in NAMES:
        posts.comes(name, after)
        assert posts.at(name, lost, PATIENCE_S) is Verdict.UNPROVEN
    [write_id] = lost.of_store(STORE)
    [current] = after.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    assert isinstance(current.version, Ordered)
    url = lab.url("b1", user="postgres")
    shim = antipode_postgresql.PostgresqlShim
    with pytest.raises(ValueError, match="written now"):
        shim.settle(url, current.version.epoch)
    with pytest.raises(ValueError, match="no epoch"):
        shim.settle(url, "nonsense!")
    with pytest.raises(ValueError, match="standby"):
        shim.settle(lab.url("b2", user="postgres"), write_id.version.epoch)
    shim.settle(url, write_id.version.epoch)
    records = {record.epoch: record for record in shim.epochs(url)}
    assert records[write_id.version.epoch].settled
    assert records[current.version.epoch].current
    for name in NAMES:
        lab.wait_caught_up(name) if name != "b1" else None
        posts.comes(name, lost)


def test_a_dump_s_epochs_prove_nothing_in_another_system(lab_factory: LabFactory) -> None:
    """EPOCH-22: the rows name the system that they came from; on the operator's word they count."""
    labs = []
    for _ in range(2):
        options = {"postgresql": PostgresqlOptions(fresh=True)}
        labs.append(lab_factory("postgresql", replicas=1, lag="1ms", options=options).get(PostgresqlStore))
        prepare(labs[-1])
    source, copy = labs
    with isolated():
        original = Posts(source)
        written = original.write("post")
        original.close()
    with isolated():
        restored = Posts(copy)
        restored.write("its own")
        for table, columns in (("antipode.epochs", "*"), ("posts", "key, value")):
            with source.connect("a", database="app") as giver, copy.connect("a", database="app") as taker:
                rows = giver.execute(f"SELECT {columns} FROM {table}").fetchall()
                names = "" if columns == "*" else f" ({columns})"
                for row in rows:
                    places = ", ".join(["%s"] * len(row))
                    taker.execute(f"INSERT INTO {table}{names} VALUES ({places})", row)
        [write_id] = written.of_store(STORE)
        assert isinstance(write_id.version, Ordered)
        assert restored.shows("a", "post") == "v"
        for name in ("a", "b1"):
            assert restored.at(name, written, 0.5) is Verdict.UNPROVEN, "its positions mean nothing here"
        shim, url = antipode_postgresql.PostgresqlShim, copy.url("a", user="postgres")
        [foreign] = [record for record in shim.epochs(url) if record.epoch == write_id.version.epoch]
        assert "another system" in foreign.detail
        shim.settle(url, write_id.version.epoch)
        for name in ("a", "b1"):
            restored.comes(name, written)
        restored.close()


@pytest.mark.stores
def test_without_the_table_only_the_first_timeline_is_proved(lab_factory: LabFactory) -> None:
    """Positions are given; what may be another branch of one number is unproven (EPOCH-6, EPOCH-26, EPOCH-29)."""
    lab = lab_factory("postgresql", replicas=2, lag=["2ms", "2ms"]).get(PostgresqlStore)
    with lab.connect("a", user="app") as connection:
        connection.execute("CREATE TABLE posts (key text PRIMARY KEY, value text)")
    lab.wait_links()
    with lab.connect("a") as connection:
        connection.execute("ALTER ROLE app REPLICATION")
    for unique in (False, True):
        with isolated():
            posts = Posts(lab, unique_timelines=unique)
            first = posts.write("first", "v") if lab.primary == "a" else None
            if first is not None:
                posts.comes("b2", first)
                lab.promote("b1", lose=0)
            second = posts.write(f"second-{unique}")
            assert timeline(second) == 2
            if unique:
                posts.comes("b2", second)
            else:
                assert posts.at("b2", second, PATIENCE_S) is Verdict.UNPROVEN
            posts.close()
