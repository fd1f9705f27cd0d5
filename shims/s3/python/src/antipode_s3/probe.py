"""What a bucket allows: asked when a client is wrapped, and by whoever waits there (spec SHIM-3)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from antipode.shim.aws import code_of, status_of
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

NO_SUCH_KEY: Final = "antipode/no-such-object"
"""Asked for to learn what an object that is not there looks like to this user; nobody writes it."""
READING: Final = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:ListBucketVersions")
SETTINGS: Final = ("s3:GetBucketVersioning", "s3:GetReplicationConfiguration")
_WRONG_REGION: Final = frozenset(
    {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"}
)
_NOT_THERE: Final = frozenset({"ReplicationConfigurationNotFoundError", "NoSuchReplicationConfiguration"})


class UnavailableError(OSError):
    """The server answers that it cannot answer now: it starts, or has too much to do."""


@dataclass(frozen=True)
class Facts:
    """What was found out about one bucket at one endpoint."""

    reached: bool = False
    unfit: str = ""
    """Why nothing can be proved there, with what cures it; empty where proofs are possible."""
    replicates: bool | None = None
    """Whether a rule sends its objects elsewhere; None where that could not be asked."""
    deletes: bool | None = None
    """Whether every such rule sends delete markers."""
    filtered: bool = False
    """Whether some objects may be left out: every rule has a filter."""
    refused: tuple[str, ...] = field(default=())
    """Settings that its user may not ask for."""


def grant(bucket: str, *actions: str) -> str:
    """The statement of an IAM policy that gives these rights."""
    return f"Add to its policy: {json.dumps(policy_statement(bucket, *actions))}"


def policy_statement(bucket: str, *actions: str) -> dict[str, Any]:
    """The same, as it stands in a policy."""
    place = f"arn:aws:s3:::{bucket}"
    return {"Effect": "Allow", "Action": list(actions), "Resource": [place, f"{place}/*"]}


def enable_versioning(bucket: str) -> str:
    """The command that switches versioning on."""
    return f"aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled"


def raise_unavailable(error: ClientError) -> None:
    """Raises Unavailable where the server says that it cannot answer now."""
    if status_of(error) >= 500 or code_of(error) in ("SlowDown", "XMinioServerNotInitialized", "RequestTimeout"):
        raise UnavailableError(f"{code_of(error)} ({status_of(error)})") from error


def probe(client: Any, bucket: str, address: str, *, reads: bool) -> Facts:
    """Asks the bucket for its settings, and what its user may do; raises what the client raises out of reach.

    reads: whether somebody waits there, who needs the rights to look at objects.
    """
    refused: list[str] = []
    try:
        status = client.get_bucket_versioning(Bucket=bucket).get("Status", "")
    except ClientError as error:
        raise_unavailable(error)
        if status_of(error) != 403 or code_of(error) != "AccessDenied":
            return Facts(reached=True, unfit=_words(error, bucket, address))
        refused.append("s3:GetBucketVersioning")
        status = "Enabled"  # as far as is known: an answer without a version id shows it
    if status != "Enabled":
        return Facts(
            reached=True,
            unfit=(
                f"{address}: versioning is {'suspended' if status else 'off'}, so that an overwritten or deleted "
                f"object cannot be told from one that never came. {enable_versioning(bucket)}"
            ),
        )
    if elsewhere := _elsewhere(client, bucket, address):
        return Facts(reached=True, unfit=elsewhere)
    if reads and (unfit := may_read(client, bucket, address)):
        return Facts(reached=True, unfit=unfit, refused=tuple(refused))
    return _replication(client, bucket, tuple(refused))


def _elsewhere(client: Any, bucket: str, address: str) -> str:
    """A bucket in another region than its client's: botocore goes there, but it is not the one of this region."""
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as error:
        raise_unavailable(error)
        answer = error.response
    there = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region", "")
    here = client.meta.region_name
    if not there or not here or here in ("aws-global", there):
        return ""
    return (
        f"{address}: bucket {bucket!r} is in {there}, and its client in {here}. Name the bucket of this region, or "
        f"give the client region_name={there!r}"
    )


def _words(error: ClientError, bucket: str, address: str) -> str:
    """What is wrong with a bucket that answers no question at all, and what cures it."""
    code, status = code_of(error), status_of(error)
    text = error.response.get("Error", {}).get("Message", "")
    if code == "NoSuchBucket" or (status == 404 and code in ("404", "NoSuchBucket")):
        return f"{address}: there is no bucket {bucket!r} at this endpoint. Name the bucket of this region, or make it"
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = error.response.get("Error", {}).get("Region") or headers.get("x-amz-bucket-region")
    if code in _WRONG_REGION or status in (301, 307):
        there = f" It is in {region}: give the client region_name={region!r}." if region else ""
        return f"{address}: the client asks in a wrong region ({text or code}).{there or ' Set its region_name'}"
    if status in (401, 403):
        return f"{address}: its user may not ask ({code}: {text}). {grant(bucket, *READING, *SETTINGS)}"
    return f"{address}: {code or status}: {text}"


def may_read(client: Any, bucket: str, address: str) -> str:
    """What keeps this user from telling an object that is not there; empty where nothing does."""
    try:
        client.head_object(Bucket=bucket, Key=NO_SUCH_KEY)
    except ClientError as error:
        raise_unavailable(error)
        if status_of(error) == 403:  # without s3:ListBucket, S3 says so of objects that are not there
            words = "its user may not see whether an object is there"
            return f"{address}: {words} (HEAD gives 403). {grant(bucket, *READING)}"
        if status_of(error) != 404:
            return _words(error, bucket, address)
    try:
        some = client.list_object_versions(Bucket=bucket, MaxKeys=1).get("Versions", [])
    except ClientError as error:
        raise_unavailable(error)
        if status_of(error) == 403:
            return f"{address}: its user may not list versions ({code_of(error)}). {grant(bucket, *READING)}"
        return _words(error, bucket, address)
    for item in some:  # what is there may be forbidden though what is not there may be asked for
        for version in ({"VersionId": item["VersionId"]}, {}):
            try:
                client.head_object(Bucket=bucket, Key=item["Key"], **version)
            except ClientError as error:
                raise_unavailable(error)
                if status_of(error) == 403:
                    return f"{address}: its user may not look at objects (HEAD gives 403). {grant(bucket, *READING)}"
    return ""


def _replication(client: Any, bucket: str, refused: tuple[str, ...]) -> Facts:
    try:
        answer = client.get_bucket_replication(Bucket=bucket)
    except ClientError as error:
        if code_of(error) in _NOT_THERE or status_of(error) == 404:
            return Facts(reached=True, replicates=False, refused=refused)
        return Facts(reached=True, refused=(*refused, "s3:GetReplicationConfiguration"))
    except (BotoCoreError, HTTPClientError):
        return Facts(reached=True, refused=refused)
    rules = [rule for rule in answer["ReplicationConfiguration"].get("Rules", []) if rule.get("Status") == "Enabled"]
    whole = [rule for rule in rules if not _filters(rule)]
    return Facts(
        reached=True,
        replicates=bool(rules),
        deletes=bool(whole) and all(_deletes(rule) for rule in whole),
        filtered=bool(rules) and not whole,
        refused=refused,
    )


def _filters(rule: dict[str, Any]) -> bool:
    chosen = rule.get("Filter") or {}
    return bool(rule.get("Prefix") or chosen.get("Prefix") or chosen.get("Tag") or chosen.get("And"))


def _deletes(rule: dict[str, Any]) -> bool:
    if "Filter" not in rule:  # rules of the first form always send them
        return True
    return bool((rule.get("DeleteMarkerReplication") or {}).get("Status") == "Enabled")


def shortcomings(facts: Facts, bucket: str) -> list[tuple[str, str]]:
    """What keeps writes to this bucket from readers elsewhere: what follows, and what cures it."""
    found: list[tuple[str, str]] = []
    how = f"aws s3api put-bucket-replication --bucket {bucket} --replication-configuration file://replication.json"
    if facts.replicates is False:
        found.append(
            (
                "it has no enabled replication rule: what is written there reaches no other bucket, and barriers "
                "elsewhere time out",
                f"If writers use it: {how}",
            )
        )
    elif facts.filtered:
        found.append(
            (
                "all its replication rules have filters: objects that none lets through reach no other bucket, and "
                "barriers on them time out",
                f'Give it a rule with "Filter": {{"Prefix": ""}}: {how}',
            )
        )
    elif facts.deletes is False:
        found.append(
            (
                "its replication leaves delete markers out: what is deleted stays elsewhere, and barriers on deletes "
                "time out",
                f'Set "DeleteMarkerReplication": {{"Status": "Enabled"}}: {how}',
            )
        )
    return found
