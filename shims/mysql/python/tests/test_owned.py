"""What a position behind a read covers while commits are on their way, on real servers (spec SHIM-13, EPOCH-31)."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing
from itertools import cycle
from typing import Any

import antipode
import pytest
from antipode import Ordered
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql.gtid_sets import epoch_of
from sql_regions import STORE, Posts, position

WRITERS = 10
PROCEDURE = (
    "CREATE PROCEDURE count_up(place INT, times INT) BEGIN DECLARE done INT DEFAULT 0; "
    "WHILE done < times DO UPDATE counts SET n = n + 1 WHERE id = place; SET done = done + 1; END WHILE; END"
)


def counted(connection: Any) -> int:
    with closing(connection.cursor()) as cursor:
        cursor.execute("SELECT SUM(n) FROM counts")
        return int(cursor.fetchall()[0][0])


@pytest.mark.stores
def test_a_read_amid_many_commits_covers_all_that_it_saw(any_posts: Posts, any_lab: SqlStore) -> None:
    """A server shows a commit before its set has it. Each writer's row counts its commits, so the sum counts all."""
    lab, every = any_lab, ", ".join(f"({place}, 0)" for place in range(WRITERS))
    lab.run("a", "DROP TABLE IF EXISTS counts", "CREATE TABLE counts (id INT PRIMARY KEY, n INT)")
    lab.run("a", f"INSERT INTO counts VALUES {every}", "DROP PROCEDURE IF EXISTS count_up", PROCEDURE)
    before = any_posts.last().counter
    setting = "binlog_commit_wait_usec" if lab.kind == "mariadb" else "binlog_group_commit_sync_delay"
    lab.run("a", f"SET GLOBAL {setting} = 2000", *["SET GLOBAL binlog_commit_wait_count = 9"][: lab.kind == "mariadb"])

    def write(place: int) -> None:
        with lab.client("a", read_timeout=120) as connection, connection.cursor() as cursor:
            cursor.execute("CALL count_up(%s, 300)", (place,))

    writers = [threading.Thread(target=write, args=(place,)) for place in range(WRITERS)]
    connects = (any_posts.pymysql, any_posts.connector)
    readers = cycle([any_posts.wrap(connect("a", autocommit=True)) for connect in connects])
    missed, reads = [], 0
    for writer in writers:
        writer.start()
    try:
        while any(writer.is_alive() for writer in writers):
            with antipode.reading() as seen:
                found = counted(next(readers))
            reads += 1
            if position(seen.lineage).counter < before + found:
                missed.append((position(seen.lineage).counter, before + found))
    finally:
        for writer in writers:
            writer.join()
        lab.run("a", f"SET GLOBAL {setting} = 0", *["SET GLOBAL binlog_commit_wait_count = 0"][: lab.kind == "mariadb"])
    assert reads > 50
    assert not missed, f"{len(missed)} of {reads} reads saw more than their position says: {missed[:5]}"


def test_a_number_that_is_owned_may_have_been_seen(fresh_mysql: Posts) -> None:
    """The time between a commit's being visible and its number's being executed, held open: by a dirty read."""
    posts = fresh_mysql
    uuid, number = posts.lab.run("a", "SELECT @@server_uuid")[0][0], posts.last().counter + 30
    names = {Ordered(epoch_of(uuid), number): f"{uuid}:{number}", Ordered(epoch_of(uuid, "late"), 7): f"{uuid}:late:7"}
    with ExitStack() as held:
        for key, name in enumerate(names.values()):
            writer = held.enter_context(closing(posts.lab.client("a", autocommit=False)))
            with writer.cursor() as cursor:
                cursor.execute(f"SET gtid_next='{name}'")
                cursor.execute(f"REPLACE INTO posts VALUES ('owned-{key}', 'v')")
        dirty = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"
        reader = posts.wrap(posts.pymysql("a", init_command=dirty))
        with antipode.reading() as seen, reader.cursor() as read:
            read.execute("SELECT body FROM posts WHERE id LIKE 'owned-%'")
            assert read.fetchall() == (("v",), ("v",))
    assert set(names) <= {write_id.version for write_id in seen.lineage.of_store(STORE)}


@pytest.mark.stores
@pytest.mark.parametrize("tracked", [False, True])
def test_a_write_that_changes_nothing_covers_what_other_servers_wrote(fresh_mysql: Posts, tracked: bool) -> None:
    """After a switch back, and before its first write, a server's own old numbers say nothing of what it saw."""
    posts = fresh_mysql
    posts.write("first")
    posts.lab.promote("b1", lose=0)
    posts.lab.repoint("a", "b1")
    other = posts.write("other")
    posts.lab.promote("a", lose=0)
    posts.lab.repoint("b1", "a")
    posts = Posts(posts.lab, tracked=tracked)
    lineage = posts.write("other")  # as it is there already, so that nothing is logged
    assert lineage >= other, f"{lineage} says nothing of {other}"
