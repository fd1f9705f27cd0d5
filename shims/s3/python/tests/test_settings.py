"""Buckets that prove nothing, and what is said of them (SHIM-3)."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import antipode
import antipode_s3
import boto3
import pytest
from antipode import ConfigurationError, Lineage, Ordered, UnfitStoreError, Verdict, WriteId
from antipode.shim.administration import Finding, InitRequest, Level, administration_of
from antipode_lab.stores.s3 import S3Store
from antipode_s3 import S3Shim
from antipode_s3.targets import target_of
from s3_regions import BUCKET, STORE, Images, new_key, until

_numbers = itertools.count(1)
ALL = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:ListBucketVersions", "s3:GetBucketVersioning")


def new_bucket(lab: S3Store, *, versioning: bool = True, server: str = "a") -> str:
    bucket = f"bucket-{next(_numbers)}"
    lab.make_bucket(bucket, versioning=versioning, servers=[server])
    return bucket


def suspended(lab: S3Store) -> str:
    bucket = new_bucket(lab)
    with lab.client("a") as client:
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    return bucket


def user_with(lab: S3Store, actions: Sequence[str], server: str = "a") -> dict[str, str]:
    """A user of one server that may do only this with the bucket."""
    name = f"user-{next(_numbers)}"
    place = f"arn:aws:s3:::{BUCKET}"
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": [place, f"{place}/*"]}
    lab.create_user(server, name, "a-secret", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    return {"user": name, "password": "a-secret"}


UNFIT: dict[str, tuple[Callable[[S3Store], tuple[Any, str]], str]] = {
    "versioning off": (lambda lab: (lab.new_client("a"), new_bucket(lab, versioning=False)), "put-bucket-versioning"),
    "versioning suspended": (lambda lab: (lab.new_client("a"), suspended(lab)), "put-bucket-versioning"),
    "no bucket": (lambda lab: (lab.new_client("a"), "not-there"), "no bucket 'not-there'"),
    "wrong region": (lambda lab: (lab.new_client("a", region="eu-west-1"), BUCKET), "us-east-1"),
    "wrong credentials": (lambda lab: (lab.new_client("a", user="nobody"), BUCKET), "may not ask"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_unfit_bucket_is_refused_with_what_cures_it(s3_lab: S3Store, name: str) -> None:
    make, words = UNFIT[name]
    client, bucket = make(s3_lab)
    with pytest.raises(UnfitStoreError) as refused:
        antipode_s3.wrap(client, STORE, bucket=bucket)
    assert words in str(refused.value)
    assert "on_unfit='unproven'" in str(refused.value)


@pytest.mark.parametrize("name", UNFIT)
def test_where_the_service_shall_start_it_is_unproven(s3_lab: S3Store, name: str) -> None:
    make, words = UNFIT[name]
    client, bucket = make(s3_lab)
    antipode_s3.wrap(client, STORE, bucket=bucket, on_unfit="unproven")
    lineage = Lineage([WriteId(STORE, "k", Ordered("", 1))])
    result = antipode.barrier(lineage, timeout=30, on_timeout="proceed").stores[STORE]
    assert result.verdict is Verdict.UNPROVEN
    assert words in result.reason


@pytest.mark.parametrize("many", [False, True])
def test_a_deletion_without_versioning_is_incomplete(s3_lab: S3Store, many: bool) -> None:
    """SHIM-16: the answer names no version and no marker, and the object is gone."""
    bucket = f"plain-{next(_numbers)}"
    client = s3_lab.new_client("a")
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="k", Body=b"v")
    wrapped: Any = antipode_s3.wrap(client, STORE, bucket=bucket, on_unfit="unproven")
    with antipode.scope() as opened:
        if many:
            wrapped.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})
        else:
            wrapped.delete_object(Bucket=bucket, Key="k")
        assert opened.lineage.incomplete == {STORE}


@pytest.mark.parametrize("missing", [ALL[:2], ALL[2:4], ALL[:4]])
def test_a_reader_without_a_right_proves_nothing_and_says_the_grant(images: Images, missing: Sequence[str]) -> None:
    """Without s3:ListBucket, S3 answers 403 for what is not there: that is no proof of anything."""
    assert images.judge(images.put(new_key())).satisfied  # something is there
    s3_lab = images.lab
    login = user_with(s3_lab, [action for action in ALL if action not in missing], "b1")
    client = s3_lab.new_client("b1", **login)
    antipode_s3.register("theirs", replicas=[(client, BUCKET)])
    lineage = Lineage([WriteId("theirs", "k", Ordered("", 1))])
    result = antipode.barrier(lineage, timeout=30, stores=["theirs"], on_timeout="proceed").stores["theirs"]
    assert result.verdict is Verdict.UNPROVEN
    assert all(right in result.reason for right in missing)


def test_a_reader_with_the_rights_of_the_page_waits(images: Images) -> None:
    login = user_with(images.lab, ALL[:4], "b1")
    antipode_s3.register("theirs", replicas=[(images.lab.new_client("b1", **login), BUCKET)])
    with antipode.scope() as opened:
        images.a.put_object(Bucket=BUCKET, Key=new_key(), Body=b"v")
        theirs = Lineage(WriteId("theirs", w.key, w.version) for w in opened.lineage.of_store(STORE))
    assert antipode.barrier(theirs, timeout=30, stores=["theirs"]).complete


def test_a_bucket_that_is_made_later_is_found(s3_lab: S3Store) -> None:
    """What is unfit is asked anew: nobody has to restart who only waits."""
    bucket = f"later-{next(_numbers)}"
    client = s3_lab.new_client("a")
    wrapped: Any = antipode_s3.wrap(client, STORE, bucket=bucket, on_unfit="unproven")
    nothing = Lineage([WriteId(STORE, "k", Ordered("", 1))])
    assert antipode.barrier(nothing, timeout=5, on_timeout="proceed").stores[STORE].verdict is Verdict.UNPROVEN
    s3_lab.make_bucket(bucket, servers=["a"])
    with antipode.scope() as opened:
        wrapped.put_object(Bucket=bucket, Key="k", Body=b"v")
        written = opened.lineage
    until(lambda: antipode.barrier(written, timeout=1, on_timeout="proceed").satisfied)


def test_without_replication_the_writer_is_told(s3_lab: S3Store, caplog: pytest.LogCaptureFixture) -> None:
    bucket = new_bucket(s3_lab)
    wrapped: Any = antipode_s3.wrap(s3_lab.new_client("a"), STORE, bucket=bucket)
    with caplog.at_level(logging.WARNING, "antipode"), antipode.scope() as opened:
        wrapped.put_object(Bucket=bucket, Key="k", Body=b"v")
        assert antipode.barrier(timeout=30).complete, "it is there, in its own bucket"
        assert opened.lineage
    assert "no enabled replication rule" in caplog.text
    assert "put-bucket-replication" in caplog.text


def test_an_endpoint_that_does_not_answer_is_no_error_until_somebody_waits() -> None:
    client = boto3.session.Session().client(
        "s3",
        endpoint_url="http://127.0.0.1:1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
    )
    antipode.configure(replica_out_after=0.3)
    antipode_s3.wrap(client, STORE, bucket=BUCKET)
    lineage = Lineage([WriteId(STORE, "k", Ordered("", 1))])
    result = antipode.barrier(lineage, timeout=20, on_timeout="proceed").stores[STORE]
    assert result.verdict is Verdict.UNPROVEN


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "needs bucket="),
        ({"bucket": BUCKET, "rest": "field"}, "native"),
        ({"bucket": BUCKET, "hash_keys": True}, "hash_keys"),
        ({"bucket": BUCKET, "replicas": ["http://somewhere"]}, "s3://BUCKET"),
        ({"bucket": BUCKET, "replicas": ["s3://b?colour=red"]}, "region, endpoint and profile"),
        ({"bucket": BUCKET, "replicas": ["s3+http://host:1"]}, "names no bucket"),
    ],
)
def test_options_that_cannot_be(s3_lab: S3Store, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        antipode_s3.wrap(s3_lab.new_client("a"), STORE, **arguments)


def test_only_s3_is_wrapped() -> None:
    queue = boto3.session.Session().client("sqs", region_name="us-east-1")
    for other in (queue, object()):
        with pytest.raises(TypeError, match="S3"):
            antipode_s3.wrap(other, STORE, bucket=BUCKET)


def test_addresses_tell_buckets_apart_and_hold_no_credentials() -> None:
    def address(given: str) -> str:
        return target_of(given).address

    assert address("s3+http://key:secret@127.0.0.1:9000/posts?region=eu-west-1") == "http://127.0.0.1:9000/posts"
    here, there = (address(f"s3://posts?endpoint=http://u:p@{host}") for host in ("a:1", "b:1"))
    assert here != there
    assert "u:p" not in here
    assert address("s3://posts?region=eu-west-1") != address("s3://posts?region=us-east-1")


# doctor, init


def found(lab: S3Store, level: Level, server: str = "a", bucket: str = BUCKET, **login: str) -> list[Finding]:
    url = lab.replica_url(server, bucket)
    if login:
        url = url.replace("//antipode:antipode-lab@", f"//{login['user']}:{login['password']}@")
    return [each for each in administration_of(url).diagnose(url) if each.level is level]


def test_doctor_finds_nothing_wrong_with_a_replicated_bucket(s3_lab: S3Store) -> None:
    assert not found(s3_lab, Level.UNPROVEN) + found(s3_lab, Level.WARNING) + found(s3_lab, Level.UNKNOWN)
    assert any("replication" in each.what for each in found(s3_lab, Level.OK))


def test_doctor_finds_what_is_missing(s3_lab: S3Store) -> None:
    [finding] = found(s3_lab, Level.UNPROVEN, bucket=new_bucket(s3_lab, versioning=False))
    assert "versioning is off" in finding.what
    assert "put-bucket-versioning" in finding.cure
    [finding] = found(s3_lab, Level.WARNING, bucket=new_bucket(s3_lab))
    assert "no enabled replication rule" in finding.what
    [finding] = found(s3_lab, Level.UNPROVEN, bucket="not-there")
    assert "no bucket" in finding.what
    login = user_with(s3_lab, ["s3:GetBucketVersioning"])
    assert any("s3:ListBucket" in each.cure for each in found(s3_lab, Level.UNPROVEN, **login))
    kept = new_bucket(s3_lab)
    with s3_lab.client("a") as client:
        rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}}
        rule["NoncurrentVersionExpiration"] = {"NoncurrentDays": 1}
        client.put_bucket_lifecycle_configuration(Bucket=kept, LifecycleConfiguration={"Rules": [rule]})
    assert any("lifecycle" in each.what for each in found(s3_lab, Level.WARNING, bucket=kept))


def test_init_prepares_a_bucket(s3_lab: S3Store) -> None:
    bucket = new_bucket(s3_lab, versioning=False)
    url = s3_lab.replica_url("a", bucket)
    versioning, rights, replication = S3Shim.preparations(url, InitRequest(STORE, "bob", {"to": "images-eu"}))
    assert versioning.run is not None
    assert versioning.run() == "enabled"
    assert versioning.run() == "there already"
    assert not found(s3_lab, Level.UNPROVEN, bucket=bucket)
    assert "--user-name bob" in rights.text
    assert "arn:aws:s3:::images-eu" in replication.text
    assert not any("antipode-lab@" in step.text for step in (versioning, rights, replication))
    with pytest.raises(ConfigurationError):
        S3Shim.preparations(url, InitRequest(STORE, None, {"no such": "word"}))
    assert S3Shim.epochs(url) == []
    with pytest.raises(ConfigurationError, match="no epochs"):
        S3Shim.settle(url, "e")
