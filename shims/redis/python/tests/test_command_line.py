"""`antipode doctor` and `antipode epoch` on real servers: what they say, and what settling an epoch does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import antipode
import antipode_redis
import pytest
import redis
from antipode.shim.administration import Administration, Level
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.redis import RedisStore
from antipode_redis import RedisShim

PASSWORD = "s3cret-of-ann"


def antipode_command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the installed command."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("antipode"), *words],
        env={**{k: v for k, v in os.environ.items() if not k.startswith("ANTIPODE_STORE_")}, **environment},
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    assert PASSWORD not in ran.stdout + ran.stderr
    return ran


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> RedisStore:
    """A primary and a replica, which the tests leave as they are."""
    store: RedisStore = module_lab_factory("redis", replicas=1, lag="5ms").redis
    return store


def url(lab: RedisStore, server: str, login: str = "") -> str:
    return lab.url(server).replace("://", f"://{login}")


def until(condition: Callable[[], object], timeout: float = 20.0) -> None:
    """Polls, with a deadline."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < timeout, "waited in vain"
        time.sleep(0.01)


def write(lab: RedisStore) -> antipode.Lineage:
    """Writes once through the shim, and waits until the write's epoch is marked; the write's lineage."""
    with isolated():
        client = antipode_redis.wrap(lab.client(lab.primary), store="blog-posts")
        with antipode.scope() as scope:
            client.set("post:42", "hi")
            lineage = scope.lineage
        until(lambda: [record for record in RedisShim.epochs(url(lab, lab.primary)) if record.current])
    return lineage


def test_the_shim_offers_what_the_command_line_asks_for() -> None:
    shim: Administration = RedisShim
    assert isinstance(shim, Administration)
    assert shim.schemes == ("redis", "rediss", "unix")


def test_doctor_tells_roles_and_marks(lab: RedisStore) -> None:
    lineage = write(lab)
    [position] = lineage
    assert isinstance(position.version, antipode.Ordered)
    until(lambda: all(RedisShim.epochs(url(lab, server)) for server in ("a", "b1")))
    ran = antipode_command("doctor", url(lab, "a"), url(lab, "b1"))
    assert ran.returncode == 0, ran.stdout
    assert f"role: primary, in epoch {position.version.epoch}" in ran.stdout
    assert f"role: replica, in epoch {position.version.epoch}" in ran.stdout
    assert "the current one up to" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("2 servers: everything that is written and waited for here can be")


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        (("+@all", "~*", "&*", "-info"), "rights: its user may not ask where it is"),
        (("+@all", "~*", "&*", "-hset"), "rights: its user may not write marks"),
        (("+@all", "~app:*", "&*"), "rights: its user may not read the marks"),
    ],
)
def test_doctor_names_the_right_that_is_missing_and_the_grant(
    lab: RedisStore, rules: tuple[str, ...], what: str
) -> None:
    lab.create_user("ann", PASSWORD, *rules)
    before = lab.client("a").dbsize()
    ran = antipode_command("doctor", url(lab, "a", f"ann:{PASSWORD}@"))
    assert ran.returncode == 1, ran.stdout
    assert what in ran.stdout
    assert "-> Grant it: ACL SETUSER" in ran.stdout
    assert lab.client("a").dbsize() == before  # it looked, and wrote nothing


def test_doctor_and_epoch_cannot_tell_of_a_server_that_is_not_there(lab: RedisStore) -> None:
    address = url(lab, "a", f"nobody:{PASSWORD}@")
    for words in (["doctor", address], ["epoch", "list", "blog-posts", "--at", address]):
        ran = antipode_command(*words)
        assert ran.returncode == 2
        assert "invalid username-password" in ran.stdout + ran.stderr


def test_doctor_warns_that_marks_may_be_evicted(lab: RedisStore) -> None:
    lab.config("a", "maxmemory-policy", "allkeys-lru")
    try:
        findings = RedisShim.diagnose(url(lab, "a"))
    finally:
        lab.config("a", "maxmemory-policy", "noeviction")
    assert any(finding.level is Level.WARNING and "allkeys-lru" in finding.what for finding in findings)
    assert all(finding.level is not Level.UNPROVEN for finding in findings)


@pytest.mark.redis_lab(replicas=1, lag="5ms")
def test_an_epoch_that_lost_writes_is_settled_by_hand(redis_lab: RedisStore) -> None:
    write(redis_lab)
    redis_lab.partition("b1")
    lost = write(redis_lab)  # never reaches b1
    [position] = lost
    assert isinstance(position.version, antipode.Ordered)
    epoch = position.version.epoch
    redis_lab.promote("b1")
    redis_lab.heal()
    write(redis_lab)  # marks the new epoch
    primary = url(redis_lab, "b1")

    def verdict() -> antipode.Verdict:
        with isolated():
            antipode_redis.register("blog-posts", replicas=[primary])
            result = antipode.barrier(lost, timeout=2, on_timeout="proceed", on_unproven="proceed")
            return result.stores["blog-posts"].verdict

    assert verdict() is antipode.Verdict.UNPROVEN
    listed = antipode_command("epoch", "list", "blog-posts", ANTIPODE_STORE_BLOG_POSTS_PRIMARY=primary)
    assert listed.returncode == 0
    rows = {row.split()[0]: row for row in listed.stdout.splitlines()[1:]}
    assert "current" not in rows[epoch]
    assert sum("current" in row for row in rows.values()) == 1

    asked = antipode_command("epoch", "settle", "--fenced", "blog-posts", epoch, "--at", primary)  # nobody answers
    assert asked.returncode == 1
    assert verdict() is antipode.Verdict.UNPROVEN
    current = next(name for name, row in rows.items() if "current" in row)
    assert (
        antipode_command("epoch", "settle", "--fenced", "blog-posts", current, "--at", primary, "--yes").returncode == 2
    )
    settled = antipode_command("epoch", "settle", "--fenced", "blog-posts", epoch, "--at", primary, "--yes")
    assert settled.returncode == 0, settled.stderr
    assert verdict() is antipode.Verdict.VISIBLE
    assert "settled by hand" in antipode_command("epoch", "list", "blog-posts", "--at", primary).stdout


def test_the_server_itself_refuses_to_settle_the_epoch_that_is_written_now(lab: RedisStore) -> None:
    """Between the look and the mark a promotion may come: the step that writes asks again."""
    [position] = write(lab)
    assert isinstance(position.version, antipode.Ordered)
    with pytest.raises(antipode.ConfigurationError, match="written in this epoch now"):
        RedisShim.settle(url(lab, "a"), position.version.epoch)
    with pytest.raises(antipode.ConfigurationError, match="is a replica"):
        RedisShim.settle(url(lab, "b1"), "00112233445566ff")
    with pytest.raises(antipode.ConfigurationError, match="no Redis epoch"):
        RedisShim.settle(url(lab, "a"), "nonsense")
    [record] = [record for record in RedisShim.epochs(url(lab, "a")) if record.current]
    assert not record.settled
    assert isinstance(redis.Redis.from_url(url(lab, "a")).hget("antipode:epochs", position.version.epoch), bytes)
