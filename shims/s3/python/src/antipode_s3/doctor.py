"""What of a bucket matters to Antipode, and what it needs first: `antipode doctor`, `antipode init` (spec SHIM-3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

from antipode import ConfigurationError
from antipode.shim.administration import EpochRecord, Finding, InitRequest, Level, Step
from antipode.shim.aws import code_of, status_of
from botocore.exceptions import ClientError

from antipode_s3.probe import (
    READING,
    SETTINGS,
    enable_versioning,
    grant,
    may_read,
    policy_statement,
    probe,
    shortcomings,
)
from antipode_s3.targets import Target, target_of

OPTIONS: Final[Mapping[str, str]] = {
    "to": "the bucket of the other region, to which replication sends",
    "role": "the ARN of the role that S3 takes on to replicate",
}
_TIMEOUT_S: Final = 5.0
_WRITING: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def diagnose(target: Any) -> list[Finding]:
    """What would be unproven at this bucket, why, and what cures it."""
    place = target_of(target)
    with closing(place.connect(_TIMEOUT_S)) as client:
        return list(_findings(client, place))


def _findings(client: Any, place: Target) -> Iterator[Finding]:
    facts = probe(client, place.bucket, place.address, reads=False)
    if facts.unfit:
        what, _, cure = facts.unfit.partition(". ")
        yield Finding(Level.UNPROVEN, what, "what is waited for at this bucket is unproven", cure, code="AP208")
        return
    if "s3:GetBucketVersioning" in facts.refused:
        yield Finding(
            Level.UNKNOWN,
            "rights: its user may not ask whether versioning is on",
            "without versioning, an overwritten object cannot be told from one that never came",
            grant(place.bucket, "s3:GetBucketVersioning"),
            code="AP203",
        )
    else:
        yield Finding(Level.OK, "versioning is on")
    if unreadable := may_read(client, place.bucket, place.address):
        what, _, cure = unreadable.partition(". ")
        yield Finding(
            Level.UNPROVEN, f"rights: {what}", "barriers that wait at this bucket are unproven", cure, code="AP203"
        )
    else:
        yield Finding(Level.OK, "rights: its user may see which objects and versions are there")
    if facts.replicates is None:
        yield Finding(
            Level.UNKNOWN,
            "rights: its user may not ask for the replication rules",
            "whether what is written here reaches other regions is not known",
            grant(place.bucket, "s3:GetReplicationConfiguration"),
            code="AP203",
        )
    found = shortcomings(facts, place.bucket)
    for what, cure in found:
        level = Level.WARNING if facts.replicates is False else Level.UNPROVEN  # without rules it may be a replica
        yield Finding(
            level, f"replication: {what.partition(':')[0]}", what.partition(":")[2].strip(), cure, code="AP516"
        )
    if facts.replicates and not found:
        yield Finding(Level.OK, "replication: a rule sends every object and delete marker on")
    yield from _of_lifecycle(client, place)


def _of_lifecycle(client: Any, place: Target) -> Iterator[Finding]:
    """Rules that remove what proofs need: versions that are not current, delete markers."""
    try:
        rules = client.get_bucket_lifecycle_configuration(Bucket=place.bucket).get("Rules", [])
    except ClientError as error:
        if status_of(error) != 404 and code_of(error) != "NoSuchLifecycleConfiguration":
            yield Finding(
                Level.UNKNOWN,
                f"lifecycle: its rules cannot be asked for ({code_of(error)})",
                "rules that remove old versions and delete markers take proofs with them",
                grant(place.bucket, "s3:GetLifecycleConfiguration"),
                code="AP203",
            )
        return
    enabled = [rule for rule in rules if rule.get("Status") == "Enabled"]
    if any(
        "NoncurrentVersionExpiration" in rule or (rule.get("Expiration") or {}).get("ExpiredObjectDeleteMarker")
        for rule in enabled
    ):
        yield Finding(
            Level.WARNING,
            "lifecycle: old versions or delete markers are removed",
            "lineages that are older than that, and speak of what was superseded or deleted, time out",
            "keep them as long as lineages rest: messages, sessions, objects that were written with them",
            code="AP709",
        )


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """Versioning, the user's rights, and replication; S3 needs no schema."""
    place = target_of(url)
    if unknown := set(wanted.options) - set(OPTIONS):
        raise ConfigurationError(f"s3 takes {', '.join(OPTIONS)}, not {', '.join(sorted(unknown))}", code="AP707")
    actions = (*READING, *SETTINGS, *_WRITING)
    role = wanted.options.get("role", "ROLE_ARN")
    rule = {
        "Role": role,
        "Rules": [
            {
                "ID": f"antipode-{wanted.store}",
                "Status": "Enabled",
                "Priority": 1,
                "Filter": {"Prefix": ""},
                "DeleteMarkerReplication": {"Status": "Enabled"},
                "Destination": {"Bucket": f"arn:aws:s3:::{wanted.options.get('to', 'BUCKET_OF_THE_OTHER_REGION')}"},
            }
        ],
    }
    return [
        Step(
            "aws",
            enable_versioning(place.bucket),
            "without versioning nothing is replicated, and an overwritten object cannot be told from one that never "
            "came. To be done at the bucket of each region",
            partial(_enable, place),
        ),
        Step(
            "aws",
            f"aws iam put-user-policy --user-name {wanted.user or 'USER'} --policy-name antipode-{wanted.store} "
            f"--policy-document '{json.dumps(_policy(place.bucket, actions))}'",
            "without s3:ListBucket an object that is not there cannot be told from a forbidden one, and waits are "
            "unproven. To be done for the bucket of each region",
        ),
        Step(
            "aws",
            f"aws s3api put-bucket-replication --bucket {place.bucket} "
            f"--replication-configuration '{json.dumps(rule)}'",
            "without it what is written here reaches no other region; without DeleteMarkerReplication deletions do not",
        ),
    ]


def _policy(bucket: str, actions: Sequence[str]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [policy_statement(bucket, *actions)]}


def _enable(place: Target) -> str:
    with closing(place.connect(_TIMEOUT_S)) as client:
        if client.get_bucket_versioning(Bucket=place.bucket).get("Status") == "Enabled":
            return "there already"
        client.put_bucket_versioning(Bucket=place.bucket, VersioningConfiguration={"Status": "Enabled"})
        return "enabled"


def epochs(target: Any) -> list[EpochRecord]:
    """None: versions of objects do not depend on who was the primary when."""
    target_of(target)
    return []


def settle(target: Any, epoch: str, position: int | None = None) -> None:
    """Raises ConfigurationError: there is nothing to settle."""
    words = f"S3 has no epochs, so there is no {epoch!r} to settle: objects have versions of their own"
    raise ConfigurationError(words, code="AP513")
