"""The traps of MariaDB's positions, each on real servers (spec EPOCH; what its own wait would pass is shown beside)."""

from __future__ import annotations

import threading
import time
from typing import Any

import antipode
import antipode_mysql
import pytest
from antipode import UnfitStoreError, Verdict
from antipode.shim import Server
from antipode_lab.stores.mariadb import MariaDBStore
from sql_regions import STORE, Posts, lose, never, position, until


@pytest.mark.parametrize("after", [0, 2, 8])
def test_a_lost_tail_never_passes_however_much_the_next_primary_writes(fresh_posts: Posts, after: int) -> None:
    posts = fresh_posts
    kept, lost = lose(posts, 5)
    for number in range(after):
        new = posts.write(f"new-{number}")
        assert posts.verdict(new, 20) is Verdict.VISIBLE
    for lineage in lost:
        never(posts, lineage)
    assert posts.verdict(kept, 20) is Verdict.VISIBLE
    if after == 8:
        epoch, counter = position(lost[0])
        [(answer,)] = posts.lab.run("b2", f"SELECT MASTER_GTID_WAIT('{epoch}-{counter}', 5)")
        assert answer == 0, "the server's own wait passes what was lost"
        assert posts.shows("b2", "lost-0") is None
        assert posts.look(lost[0], 20).stores[STORE].verdict is Verdict.UNPROVEN


def test_what_the_promoted_server_wrote_is_seen_there_at_once(fresh_posts: Posts) -> None:
    posts = fresh_posts
    lose(posts, 1)
    new = posts.write("new")
    epoch, counter = position(new)
    [(answer,)] = posts.lab.run("b1", f"SELECT MASTER_GTID_WAIT('{epoch}-{counter}', 0.3)")
    assert answer == -1, "the server's own wait hangs on the server that wrote it"
    assert posts.verdict(new, 20) is Verdict.VISIBLE


def test_a_server_that_is_primary_twice_under_another_id(fresh_posts: Posts) -> None:
    posts = fresh_posts
    kept, lost = lose(posts, 4)
    posts.lab.heal(wait=False)
    posts.lab.repoint("a", "b1")
    middle = posts.write("middle")
    posts.lab.promote("a", lose=0)
    posts.lab.repoint("b1", "a")
    again = [posts.write(f"again-{number}") for number in range(6)]
    assert position(again[0]).epoch != position(kept).epoch
    assert posts.verdict(kept | middle | again[-1], 20) is Verdict.VISIBLE
    for lineage in lost:
        never(posts, lineage)


@pytest.mark.parametrize("fresh_posts", [{"fresh_server_ids": False}], indirect=True)
def test_ids_that_are_used_again_prove_nothing(fresh_posts: Posts) -> None:
    posts = fresh_posts
    kept, lost = lose(posts, 4)
    posts.lab.heal(wait=False)
    posts.lab.repoint("a", "b1")
    posts.lab.promote("a", lose=0)  # no write between: its log names server 1 alone
    posts.lab.repoint("b1", "a")
    again = [posts.write(f"again-{number}") for number in range(6)]
    assert position(lost[0]) in [position(lineage) for lineage in again], "two writes have one name"
    assert posts.shows("b2", "lost-0") is None
    until(lambda: posts.shows("b2", "again-5"))
    passed = posts.verdict(lost[0], 20)
    assert passed is Verdict.VISIBLE, "the false statement passes what was lost: nobody can notice"
    with antipode.testing.isolated():
        posts = Posts(posts.lab, fresh_server_ids=False)
        posts.at("b2")
        for lineage in (kept, lost[0], again[-1]):
            result = posts.look(lineage, 20).stores[STORE]
            assert result.verdict is Verdict.UNPROVEN
            assert "fresh_server_ids=True" in result.reason


@pytest.mark.parametrize(
    "setting", ["log-slave-updates", "sync-binlog", "replicate-ignore-db", "log-bin", "slave-skip-errors"]
)
def test_settings_that_make_positions_lie_are_refused(lab_factory: Any, setting: str) -> None:
    value = {"sync-binlog": "0", "replicate-ignore-db": "other", "slave-skip-errors": "1062"}.get(setting, "OFF")
    config = {setting: value} if setting != "log-bin" else {"log-slave-updates": "OFF", "skip-log-bin": "1"}
    options = {"mariadb": {"server_config": {"b1": config}}}
    lab = lab_factory("mariadb", replicas=1, lag="2ms", options=options).get(MariaDBStore)
    words = {"log-slave-updates": "Set log_slave_updates=ON", "sync-binlog": "SET GLOBAL sync_binlog=1"}
    words |= {"replicate-ignore-db": "replicate_ignore_db=other", "log-bin": "log_bin=OFF"}
    words |= {"slave-skip-errors": "slave_skip_errors=1062"}
    with pytest.raises(UnfitStoreError, match=words[setting]):
        antipode_mysql.wrap(lab.client("a"), store="s", replicas=[lab.url("b1")], fresh_server_ids=True)
    lab.run("a", "CREATE TABLE posts (id VARCHAR(64) PRIMARY KEY, body TEXT)")
    with antipode.testing.isolated():
        posts = Posts(lab, on_unfit="unproven")
        lineage = posts.write("k")
        result = posts.look(lineage, 20).stores[STORE]
        assert result.verdict is Verdict.UNPROVEN
        assert words[setting] in result.reason


def test_a_pass_means_that_the_row_is_there(posts: Posts) -> None:
    """The log's state moves before the commit can be seen; polled alone it passes rows that are not there."""
    posts.lab.run("b1", "STOP SLAVE", "SET GLOBAL slave_parallel_threads = 4", "START SLAVE")
    try:
        antipode.configure(free_path_ttl=0)
        for number in range(150):
            lineage = posts.write(f"there-{number}")
            assert posts.verdict(lineage, 20) is Verdict.VISIBLE
            assert posts.shows("b1", f"there-{number}") == "v"
    finally:
        posts.lab.run("b1", "STOP SLAVE", "SET GLOBAL slave_parallel_threads = 0", "START SLAVE")


def test_domains_are_waited_for_each_by_itself(fresh_posts: Posts) -> None:
    posts = fresh_posts  # a domain stays in the state of its servers
    client = posts.wrap(posts.lab.client("a"))
    with antipode.scope() as scope, client.cursor() as cursor:
        cursor.execute("REPLACE INTO posts VALUES ('zero', 'v')")
        cursor.execute("SET gtid_domain_id = 7")
        cursor.execute("REPLACE INTO posts VALUES ('seven', 'v')")
        epochs = {write_id.version.epoch.partition("-")[0] for write_id in scope.lineage.of_store(STORE)}  # type: ignore[union-attr]
        assert epochs == {"0", "7"}
    assert posts.verdict(scope.lineage, 20) is Verdict.VISIBLE
    for name in ("b1", "b2"):
        assert posts.shows(name, "zero") == posts.shows(name, "seven") == "v"


def test_a_partition_and_a_frozen_replica(posts: Posts) -> None:
    posts.lab.partition("b1")
    lineage = posts.write("parted")
    assert posts.verdict(lineage, 0.4) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(lineage, 20) is Verdict.VISIBLE
    posts.lab.freeze("b2")
    try:
        lineage = posts.write("frozen")
        result = posts.look(lineage, 10)
        assert result.satisfied, result.explain()
        assert not result.complete
        assert "left out" in result.explain()
    finally:
        posts.lab.thaw("b2")
    until(lambda: posts.look(lineage, 1.0).complete)


def test_an_unfit_wait_holds_nothing_up(posts: Posts) -> None:
    """While a barrier waits, the replica goes on, and an operator's statements there are not held up for long."""
    posts.lab.partition("b1")
    lineage = posts.write("held")
    [b1] = [server for server in antipode.stores()[0].servers() if str(posts.lab.server("b1").port) in server.address]
    assert isinstance(b1, Server)
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(posts.verdict(lineage, 20)))
    thread.start()
    until(lambda: b1.session is not None and b1.session.waiter is not None)
    began = time.monotonic()
    posts.lab.run("b1", "STOP SLAVE", "SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_slave_pos", "START SLAVE")
    assert time.monotonic() - began < 10
    posts.lab.heal("b1")
    thread.join(25)
    assert found == [Verdict.VISIBLE]
