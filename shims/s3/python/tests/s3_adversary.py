"""S3 for the adversary (spec SHIM-49): one object a row, written in boto3's ways, also over one of a clock ahead."""

from __future__ import annotations

import hashlib
import io
import re
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import antipode
import antipode_s3
from antipode._store.hybrid_clock import HybridClock
from antipode._store.store import registry
from antipode.testing.adversary import Stage
from antipode_lab.stores.s3 import S3Store
from antipode_s3 import S3Shim, metadata
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from s3_regions import BUCKET

AHEAD = 12
"""So many objects have a version of a clock that is ahead."""
AHEAD_S = 600
OLDER = b"older"
VOLATILE = frozenset(
    ["ResponseMetadata", "VersionId", "CopySourceVersionId", "LastModified", "UploadId", "Date", "HostId", "RequestId"]
)


class Client:
    """A wrapped client, and a plain one."""

    def __init__(self, wrapped: Any, plain: Any) -> None:
        self.wrapped = wrapped
        self.plain = plain

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation on the bucket."""
        return getattr(self.wrapped, operation)(Bucket=BUCKET, **arguments)

    def begin(self, key: str) -> dict[str, Any]:
        """Begin an upload of one part."""
        place = {"Key": key, "UploadId": self.call("create_multipart_upload", Key=key)["UploadId"]}
        part = self.call("upload_part", **place, PartNumber=1, Body=b"of parts")
        return {**place, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}

    def abort(self, key: str) -> object:
        """Begin an upload, and end it."""
        place = self.begin(key)
        return self.call("abort_multipart_upload", Key=key, UploadId=place["UploadId"])


def _call(operation: str, **arguments: Any) -> Callable[[Client, str], object]:
    return lambda client, row: client.call(operation, Key=row, **arguments)


def _uploaded(client: Client, row: str) -> object:
    return client.wrapped.upload_fileobj(io.BytesIO(b"f"), BUCKET, row)


def _of_parts(client: Client, row: str) -> object:
    return client.call("complete_multipart_upload", **client.begin(row))


def _of_a_copied_part(client: Client, row: str) -> object:
    place = {"Key": row, "UploadId": client.call("create_multipart_upload", Key=row)["UploadId"]}
    part = client.call("upload_part_copy", **place, PartNumber=1, CopySource=f"{BUCKET}/source")["CopyPartResult"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    return client.call("complete_multipart_upload", **place, MultipartUpload=parts)


def _again(client: Client, row: str) -> object:
    client.call("put_object", Key=row, Body=b"1")
    client.call("delete_object", Key=row)
    return client.call("put_object", Key=row, Body=b"2")


def _only_if_new(client: Client, row: str) -> object:
    client.call("put_object", Key=row, Body=b"1", IfNoneMatch="*")
    return client.call("put_object", Key=row, Body=b"2", IfNoneMatch="*")


def _deleted(client: Client, row: str) -> object:
    client.call("put_object", Key=row, Body=b"1")
    return client.call("delete_objects", Delete={"Objects": [{"Key": row}]})


def _over_one_ahead(client: Client, row: str) -> object:
    return client.call("put_object", Key=_ahead(row), Body=row.encode())


def _behind_a_deletion(client: Client, row: str) -> object:
    """Code without Antipode deletes an object; another takes its place."""
    client.plain.delete_object(Bucket=BUCKET, Key=_ahead(row))
    return _over_one_ahead(client, row)


def _above_one_ahead(client: Client, row: str) -> object:
    client.call("head_object", Key=_ahead(row))
    return _over_one_ahead(client, row)


def _ahead(row: str) -> str:
    """The object that a row takes the place of."""
    return f"ahead-{zlib.crc32(row.encode()) % AHEAD:02}"


def _body(client: Any, key: str) -> bytes:
    return bytes(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())


def _downloaded(client: Any, key: str) -> bytes:
    into = io.BytesIO()
    client.download_fileobj(BUCKET, key, into)
    return into.getvalue()


def _digest(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def _found(row: str, look: Callable[[str], str]) -> bool:
    """Return whether a row is there, under its own key or in place of another object; `look` gives a key's digest."""
    for key in (row, _ahead(row)):
        try:
            found = look(key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
        else:
            return key == row or found == _digest(row.encode())
    return False


def _listed(reader: Any, key: str) -> str | None:
    """Return the digest of a key's content as a list has it."""
    there = reader.list_objects_v2(Bucket=BUCKET, Prefix=key).get("Contents", ())
    return next((each["ETag"].strip('"') for each in there if each["Key"] == key), None)


def _steady(value: Any) -> Any:
    """Return an answer without what differs from call to call."""
    if isinstance(value, dict):
        return {name: _steady(each) for name, each in sorted(value.items()) if name not in VOLATILE}
    return repr(value) if isinstance(value, str | int | bool) else type(value).__name__


class S3Stage(Stage):
    """One lab of a primary and a replica."""

    errors = (ClientError, BotoCoreError, Boto3Error)
    writes: ClassVar = {
        "put": _call("put_object", Body=b"v"),
        "put with metadata": _call("put_object", Body=b"v", Metadata={"who": "x"}, ContentType="text/plain"),
        "put twice, if it is new": _only_if_new,
        "copy": _call("copy_object", CopySource=f"{BUCKET}/source"),
        "managed copy": lambda client, row: client.wrapped.copy({"Bucket": BUCKET, "Key": "source"}, BUCKET, row),
        "managed upload": _uploaded,
        "upload of parts": _of_parts,
        "upload of a copied part": _of_a_copied_part,
        "put, delete, put": _again,
        "put, delete": _deleted,
        "over one of a clock ahead": _over_one_ahead,
        "above one of a clock ahead": _above_one_ahead,
        "in the place of one of a clock ahead": _behind_a_deletion,
    }
    acts: ClassVar = {
        "read": lambda client: client.call("head_object", Key="source")["ContentLength"],
        # not a key that is missing: MinIO asks the cut replica for that, and waits 30 s for its answer
        "error": lambda client: client.call("get_object", Key="source", Range="bytes=100-"),
        "refusal": lambda client: client.call("put_object", Key="source", Body=b"x", IfNoneMatch="*"),
        "upload that ends": lambda client: client.abort("never"),
        "delete nothing": lambda client: client.call("delete_object", Key="nothing"),
    }
    reads: ClassVar = {
        "get": lambda reader, row: _found(row, lambda key: _digest(_body(reader, key))),
        "head": lambda reader, row: _found(
            row, lambda key: str(reader.head_object(Bucket=BUCKET, Key=key)["ETag"]).strip('"')
        ),
        "download": lambda reader, row: _found(row, lambda key: _digest(_downloaded(reader, key))),
        "list": lambda reader, row: (
            _listed(reader, row) is not None or _listed(reader, _ahead(row)) == _digest(row.encode())
        ),
    }
    replicas = ("b1",)

    def __init__(self, lab: S3Store) -> None:
        self.lab = lab
        self._plain = {name: lab.new_client(name) for name in ("a", "b1")}
        self._client, self._other = (self._made(self.wrap(self._plain["a"])) for _ in range(2))

    def wrap(self, plain: Any, **options: Any) -> Any:
        """Wrap a client under the stage's name."""
        replicas = [(self._plain["b1"], BUCKET)]
        return antipode_s3.wrap(plain, store=self.name, bucket=BUCKET, replicas=replicas, **options)

    def open(self, kind: int, *, plain: bool = False) -> Client:
        return self._made(self._plain["a"]) if plain else self._client

    def _made(self, client: Any) -> Client:
        return Client(client, self._plain["a"])

    def close(self, client: Any) -> None:
        """All share the connections of one client a server."""

    def reader(self) -> Any:
        return self.wrap(self._plain["b1"], wait_on_read=True)

    def rows(self, server: str | None = None) -> set[str]:
        return set(self._places(self._plain[server or "a"]))

    def contents(self) -> Mapping[str, object]:
        client, found = self._plain["a"], dict[str, object]()
        for row, key in self._places(client).items():
            answer = client.get_object(Bucket=BUCKET, Key=key)
            kept = {name: value for name, value in answer["Metadata"].items() if name != metadata.NAME}
            found[row] = answer["Body"].read(), answer["ContentType"], kept
        return found

    def _places(self, client: Any) -> dict[str, str]:
        """Return the key that each row stands under: one with an older object there first has another's."""
        there = {each["Key"]: each["Size"] for each in client.list_objects_v2(Bucket=BUCKET).get("Contents", ())}
        rows = {key: key for key in there if key.startswith("adv-")}
        for key in [key for key, size in there.items() if key.startswith("ahead-") and size != len(OLDER)]:
            with suppress(client.exceptions.NoSuchKey):  # deleted meanwhile
                rows[_body(client, key).decode()] = key
        return rows

    def tell(self, result: Any) -> str:
        told = super().tell(_steady(result) if isinstance(result, dict) else result)
        return re.sub(r" \(reached max retries: \d+\)", "", told)  # how often botocore asked a busy server

    def clear(self) -> None:
        client = self._plain["a"]
        old = client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        if old:
            client.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": each["Key"]} for each in old]})
        client.put_object(Bucket=BUCKET, Key="source", Body=b"source")
        shim = registry().need(self.name).shim
        assert isinstance(shim, S3Shim)
        clock = shim.clock
        shim.clock = HybridClock(time_ns=lambda: time.time_ns() + AHEAD_S * 10**9)
        for number in range(AHEAD):
            with antipode.scope():
                self._other.call("put_object", Key=f"ahead-{number:02}", Body=OLDER)
        shim.clock = clock

    def cut(self) -> None:
        self.lab.wait_caught_up("b1")
        self.lab.partition("b1", mode="silent")  # a source that is refused is slow to try again

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)
