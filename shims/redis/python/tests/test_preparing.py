"""`antipode init redis://…` on a real server: what doctor finds missing is there afterwards (SHIM-3, EPOCH-26)."""

from __future__ import annotations

import pytest
from antipode.administration import Level, Preparing, Wanted
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.redis import RedisStore
from antipode_redis import RedisShim

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
    grant, save = RedisShim.preparations(lab.url(lab.primary), Wanted("blog-posts", "bob", options))
    assert save.run is None
    assert grant.run is not None
    assert grant.run() == "granted"
    assert not [each for each in RedisShim.diagnose(login, key) if each.level is not Level.OK and "rights" in each.what]
    assert grant.run() == "there already"
    assert grant.text.startswith("ACL SETUSER bob +info ")


def test_the_printed_command_is_the_one_that_works(lab: RedisStore) -> None:
    lab.create_user("ann", PASSWORD, "+get", "+hello", "+discard", "~app:*")
    grant, _ = RedisShim.preparations(lab.url(lab.primary), Wanted("blog-posts"))
    assert grant.run is None  # nobody said to whom
    lab.client(lab.primary).execute_command(*grant.text.replace("USER +", "ann +").split())  # type: ignore[no-untyped-call]
    assert unproven(lab, f"ann:{PASSWORD}@") == []


def test_no_user_is_made(lab: RedisStore) -> None:
    grant, _ = RedisShim.preparations(lab.url(lab.primary), Wanted("blog-posts", "nobody"))
    assert grant.run is not None
    with pytest.raises(ValueError, match="there is no user nobody"):
        grant.run()
    assert lab.client(lab.primary).acl_getuser("nobody") is None


def test_the_hook_is_there_and_refuses_names_that_cannot_be() -> None:
    shim: Preparing = RedisShim
    assert isinstance(shim, Preparing)
    for wanted in (Wanted("s", "a b"), Wanted("s", ""), Wanted("s", None, {"marks_key": "a b"})):
        with pytest.raises(ValueError, match="is no"):
            shim.preparations("redis://nowhere", wanted)
