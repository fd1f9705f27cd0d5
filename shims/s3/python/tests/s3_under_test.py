"""S3 as the conformance kit drives it: three MinIO servers, one object a value."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import antipode_s3
from antipode.shim import Shim
from antipode_lab.stores.s3 import S3Store
from antipode_lab.under_test import LabUnderTest
from botocore.exceptions import ClientError

BUCKET = "posts"
_users = itertools.count(1)


class S3UnderTest(LabUnderTest):
    """A lab of a primary and two replicas; made anew after the cases that spoil it."""

    kind = "s3"
    store = S3Store
    shim: ClassVar[type[Shim]] = antipode_s3.S3Shim
    exceptions: ClassVar[Mapping[str, str]] = {
        "open_transaction": "S3 has no transactions",
        "transaction_over_two_scopes": "S3 has no transactions",
        "transaction_only_read_so_far": "S3 has no transactions",
        "rolled_back_transaction": "S3 has no transactions",
        "barrier_in_a_transaction": "S3 has no transactions",
        "commit_inside_a_transaction": "S3 has no transactions",
        "past_moment": "S3 has no cursors: what is fetched is the object that was asked for",
        "hashed_keys": "objects are asked for by their keys, which a hash does not give back: unproven",
    }
    patience = 30.0
    brief = 0.5
    slack = 10.0
    rights_cure = "s3:GetBucketVersioning"
    unfit_cure = "put-bucket-versioning"

    def begin(self) -> None:
        self._more: list[Any] = []
        self._plain = {name: self.lab.new_client(name) for name in self.lab.servers}
        replicas = [(self._plain[name], BUCKET) for name in self.replicas]
        self._wrapped = {
            name: antipode_s3.wrap(plain, store=self.name, bucket=BUCKET, replicas=replicas)
            for name, plain in self._plain.items()
        }

    def close_clients(self) -> None:
        for client in [*self._plain.values(), *self._more]:
            client.close()

    # Data

    def write(self, key: str, value: str) -> None:
        self._wrapped[self.primary].put_object(Bucket=BUCKET, Key=key, Body=value.encode())

    def read(self, key: str, at: str) -> str | None:
        return _get(self._wrapped[at], key)

    def look(self, key: str, at: str) -> str | None:
        return _get(self._plain[at], key)

    def delete(self, key: str) -> None:
        self._wrapped[self.primary].delete_object(Bucket=BUCKET, Key=key)

    def raw_write(self, key: str, value: str) -> None:
        self._plain[self.primary].put_object(Bucket=BUCKET, Key=key, Body=value.encode())

    def write_nothing(self) -> None:
        self.delete(self.new_key("never there"))

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        plain = self.lab.new_client(server)
        self._more.append(plain)
        listed = None if replicas is None else [(self._plain[name], BUCKET) for name in replicas]
        return antipode_s3.wrap(plain, store=self.name, bucket=BUCKET, replicas=listed, wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def downloaded(key: str) -> str:
            into = io.BytesIO()
            client.download_fileobj(BUCKET, key, into)
            return into.getvalue().decode()

        return {"get_object": lambda key: _get(client, key), "download_fileobj": downloaded}

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        return {
            "head_object": lambda key: client.head_object(Bucket=BUCKET, Key=key)["ContentLength"],
            "list_objects_v2": lambda key: client.list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"],
            "list_object_versions": lambda key: client.list_object_versions(Bucket=BUCKET, Prefix=key)["Versions"],
            "get_object_acl": lambda key: client.get_object_acl(Bucket=BUCKET, Key=key)["Grants"],
            "get_object_tagging": lambda key: client.get_object_tagging(Bucket=BUCKET, Key=key)["ResponseMetadata"],
        }

    def list_port(self, port: int) -> None:
        client = self.lab.new_client(self.primary, port=port)
        self._more.append(client)
        antipode_s3.register(self.name, replicas=[(client, BUCKET)])

    # Links and servers

    def partition(self, replica: str) -> None:
        # Silent: a source whose connections are cut calls its target offline, and comes back seconds after it.
        self.lab.partition(replica, mode="silent")

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        plain = self.lab.new_client(self.primary, timeout=0.3, attempts=1)
        client = antipode_s3.wrap(plain, store=self.name, bucket=BUCKET)
        self.lab.freeze(self.primary)
        try:
            client.put_object(Bucket=BUCKET, Key=key, Body=value.encode())
        finally:
            self.lab.thaw(self.primary)
            plain.close()

    def write_refused(self, key: str) -> None:
        self.raw_write(key, "there already")
        self._wrapped[self.primary].put_object(Bucket=BUCKET, Key=key, Body=b"v", IfNoneMatch="*")

    def write_without_rights(self, key: str, value: str) -> None:
        client = self.client_with_rights(["s3:PutObject"])
        antipode_s3.wrap(client, store=self.name, bucket=BUCKET).put_object(Bucket=BUCKET, Key=key, Body=value.encode())

    def client_with_rights(self, actions: Sequence[str]) -> Any:
        """A client of the primary, of a user that may do only this."""
        name = f"user{next(_users)}"
        place = f"arn:aws:s3:::{BUCKET}"
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": [place, f"{place}/*"]}
        self.lab.create_user(
            self.primary, name, "a-secret", json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        )
        return self.lab.new_client(self.primary, user=name, password="a-secret")

    def wrap_unfit(self) -> None:
        bucket = f"plain{next(_users)}"
        self.lab.make_bucket(bucket, versioning=False, servers=[self.primary])
        antipode_s3.wrap(self._plain[self.primary], store="unfit", bucket=bucket)


def _get(client: Any, key: str) -> str | None:
    try:
        answer = client.get_object(Bucket=BUCKET, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            return None
        raise
    return str(answer["Body"].read().decode())
