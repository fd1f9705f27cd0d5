"""What operators are told, and what they prepare: `antipode doctor` and `antipode init` (spec SHIM-3, SHIM-16)."""

from __future__ import annotations

import antipode
import antipode_mongodb
import pytest
from antipode import Verdict
from antipode._model.errors import ConfigurationError, UnfitStoreError
from antipode.shim.administration import InitRequest, Level
from antipode_mongodb import MongoShim
from antipode_mongodb.targets import target_of
from fake_mongod import SET_ID, FakeMongod
from mongodb_regions import BARE, DATABASE, STORE, Posts
from pymongo import AsyncMongoClient, MongoClient


def test_what_doctor_finds_missing_is_gone_once_init_was_run(posts: Posts, name: str) -> None:
    """SHIM-3, SHIM-4, SHIM-16"""
    fresh = f"fresh-{name}"
    url = posts.lab.mongo_url("a")
    posts.plain["a"][fresh]["posts"].insert_one({})
    [missing] = [each for each in MongoShim.diagnose(url) if each.what.startswith(f"{fresh}:")]
    assert missing.level is Level.UNPROVEN
    with pytest.raises(UnfitStoreError, match="createIndex"):
        posts.wrap(posts.plain["a"][fresh], tombstones=True)
    [make, grant] = MongoShim.preparations(url, InitRequest(STORE, "bob", {"database": fresh}))
    assert make.text == missing.cure
    assert make.run is not None
    assert grant.run is not None
    for expected in ("created", "there already"):
        assert make.run() == expected
    assert grant.run() == "not needed: this server has no such right"
    [found] = [each for each in MongoShim.diagnose(url) if each.what.startswith(f"{fresh}:")]
    assert found.level is Level.OK
    collection = posts.wrap(posts.plain["a"][fresh], tombstones=True)["posts"]
    with antipode.scope() as scope:
        collection.insert_one({"_id": name})
        collection.delete_one({"_id": name})
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    [there, _] = MongoShim.preparations(posts.lab.mongo_url("b1"), InitRequest(STORE, None, {"database": BARE}))
    assert there.run is not None
    with pytest.raises(ValueError, match="name the primary"):
        there.run()


def test_doctor_says_what_a_server_is(posts: Posts) -> None:
    """SHIM-40"""
    [first, *_] = MongoShim.diagnose(posts.lab.mongo_url("b1"))
    assert first.what.startswith("FerretDB v2.7.0: documents have versions of their own")
    assert MongoShim.epochs(posts.lab.mongo_url("a")) == []
    with pytest.raises(ConfigurationError, match="versions of documents are of no epoch"):
        MongoShim.settle(posts.lab.mongo_url("a"), "0123456789abcdef01234567", 1)
    [gone] = MongoShim.diagnose("mongodb://ann:s3cret@127.0.0.1:1/")
    assert gone.level is Level.UNKNOWN
    assert "s3cret" not in repr(gone)


def test_doctor_says_what_a_replica_set_lacks() -> None:
    """EPOCH-32, EPOCH-7"""
    with FakeMongod() as member:
        levels = {each.what.partition(" (")[0]: each.level for each in MongoShim.diagnose(member.url)}
        assert levels["MongoDB 8.0.4, primary of the replica set rs0"] is Level.OK
        assert set(levels.values()) == {Level.OK}
        [epoch] = MongoShim.epochs(member.url)
        assert (epoch.epoch, epoch.current) == (str(SET_ID), True)
    with FakeMongod(default_w=1) as member:
        assert any(each.level is Level.UNPROVEN and "majority" in each.cure for each in MongoShim.diagnose(member.url))
    with FakeMongod(sharded=True) as router:
        assert [each.level for each in MongoShim.diagnose(router.url)] == [Level.UNPROVEN]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rest": "envelope"}, "want field or none"),
        ({"replicas": ["redis://somewhere"]}, "want mongodb://HOST:PORT"),
        ({"replicas": ["mongodb://one,two/"]}, "names 2 servers"),
        ({"replicas": "mongodb://one"}, "takes a list"),
    ],
)
def test_options_that_cannot_be(posts: Posts, wrong: dict[str, object], words: str) -> None:
    """SHIM-3, BAR-22"""
    with pytest.raises(ConfigurationError, match=words):
        antipode_mongodb.wrap(posts.plain["a"], store=STORE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a client"):
        antipode_mongodb.wrap("mongodb://somewhere", store=STORE)


def test_addresses_have_no_credentials_and_keep_the_clients_settings() -> None:
    """SHIM-1"""
    client: MongoClient[dict[str, object]] = MongoClient(
        "mongodb://ann:s3cret@one.example:27018/app?tls=false&authSource=admin", connect=False
    )
    target = target_of(client)
    assert target.address == "mongodb://one.example:27018"
    assert "s3cret" not in repr(target)
    ours = target.connect(1.0)
    assert ours.options._options["authsource"] == "admin"
    credentials = ours.options.pool_options._credentials
    assert credentials is not None
    assert (credentials.username, credentials.password) == ("ann", "s3cret")
    assert target_of("mongodb://one.example:27018").address == target.address
    later: AsyncMongoClient[dict[str, object]] = AsyncMongoClient("mongodb://one.example", connect=False)
    assert target_of(later).address == "mongodb://one.example:27017"
    with pytest.raises(ConfigurationError, match="several servers"):
        target_of(MongoClient("mongodb://one,two/?replicaSet=rs0", connect=False))


def test_a_server_that_does_not_answer_now_is_no_error(posts: Posts, name: str) -> None:
    """SHIM-3: it is examined when it is first used."""
    posts.lab.freeze("a")
    try:
        plain = posts.lab.client("a", timeout=0.3)
        client = antipode_mongodb.wrap(plain, store=STORE)
    finally:
        posts.lab.thaw("a")
    with antipode.scope() as scope:
        client[DATABASE]["posts"].insert_one({"_id": name})
        assert scope.lineage.of_store(STORE)
    plain.close()
