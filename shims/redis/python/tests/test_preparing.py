"""`antipode init redis://…` on a real server: what doctor finds missing is there afterwards (SHIM-3, EPOCH-26)."""

from __future__ import annotations

import pytest
from antipode.shim.administration import InitRequest, Level, StorePreparer
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.redis import RedisStore
from antipode_redis import RedisShim
from antipode_redis.probe import RIGHTS

PASSWORD = "s3cret-of-bob"


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> RedisStore:
    store: RedisStore = module_lab_factory("redis", replicas=1, lag="5ms").redis
    return store


def unproven(lab: RedisStore, login: str = "") -> list[str]:
    url = lab.url(lab.primary).replace("://", f"://{login}")
    return [finding.what for finding in RedisShim.diagnose(url) if finding.level is Level.UNPROVEN]


@pytest.mark.parametrize("pattern", ["~app:*", "~*"])
@pytest.mark.parametrize("options", [{}, {"marks_key": "app:marks"}])
def test_what_a_user_lacks_is_granted(lab: RedisStore, pattern: str, options: dict[str, str]) -> None:
    lab.create_user("bob", PASSWORD, "+get", "+set", "+hello", "+discard", pattern)
    key = options.get("marks_key", "antipode:epochs")
    login = lab.url(lab.primary).replace("://", f"://bob:{PASSWORD}@")
    assert [each for each in RedisShim.diagnose(login, key) if each.level is Level.UNPROVEN]
    grant, save = RedisShim.preparations(lab.url(lab.primary), InitRequest("blog-posts", "bob", options))
    assert save.run is None
    assert grant.run is not None
    assert grant.run() == "granted"
    assert not [each for each in RedisShim.diagnose(login, key) if each.level is not Level.OK and "rights" in each.what]
    assert grant.run() == "there already"
    assert grant.text.startswith("ACL SETUSER bob +info ")


def test_the_printed_command_is_the_one_that_works(lab: RedisStore) -> None:
    lab.create_user("ann", PASSWORD, "+get", "+hello", "+discard", "~app:*")
    grant, _ = RedisShim.preparations(lab.url(lab.primary), InitRequest("blog-posts"))
    assert grant.run is None  # nobody said to whom
    lab.client(lab.primary).execute_command(*grant.text.replace("USER +", "ann +").split())  # type: ignore[no-untyped-call]
    assert unproven(lab, f"ann:{PASSWORD}@") == []


def test_no_user_is_made(lab: RedisStore) -> None:
    grant, _ = RedisShim.preparations(lab.url(lab.primary), InitRequest("blog-posts", "nobody"))
    assert grant.run is not None
    with pytest.raises(ValueError, match="there is no user nobody"):
        grant.run()
    assert lab.client(lab.primary).acl_getuser("nobody") is None


def test_the_hook_is_there_and_refuses_names_that_cannot_be() -> None:
    shim: StorePreparer = RedisShim
    assert isinstance(shim, StorePreparer)
    for wanted in (InitRequest("s", "a b"), InitRequest("s", ""), InitRequest("s", None, {"marks_key": "a b"})):
        with pytest.raises(ValueError, match="is no"):
            shim.preparations("redis://nowhere", wanted)


@pytest.mark.parametrize("without", ["+multi", "+set", "+nothing"])
def test_doctor_asks_for_rights_without_using_them(lab: RedisStore, without: str) -> None:
    """EPOCH-26: also of a user who may not open a transaction, or not end one by DISCARD."""
    rights = [each for each in (*RIGHTS.split(), "+hello", "+mget", "+set") if each != without]
    lab.create_user("dora", PASSWORD, *rights, "~antipode:*")
    client = lab.client(lab.primary)
    client.config_resetstat()
    found = {
        each.what: each for each in RedisShim.diagnose(lab.url(lab.primary).replace("://", f"://dora:{PASSWORD}@"))
    }
    assert any("waits wake up at once" in what for what in found), found
    [branches] = [what for what in found if what.startswith("branches: ")]
    assert branches.startswith(
        {
            "+multi": "branches: nobody knows whether its user may keep them",
            "+set": "branches: its user may not keep them",
            "+nothing": "branches: its user may keep them here",
        }[without]
    )
    may_not_mark = any("may not write marks" in what for what in found)
    assert may_not_mark == (without == "+multi")
    used = client.info("commandstats")
    for command in ("set", "hset", "hdel", "eval"):
        assert used.get(f"cmdstat_{command}", {"calls": 0})["calls"] == 0, command
