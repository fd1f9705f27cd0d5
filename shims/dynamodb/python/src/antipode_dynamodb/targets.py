"""How to reach a region's DynamoDB beside the application's own client, and what it is called."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from antipode import ConfigurationError

SCHEMES: Final = ("dynamodb", "dynamodb+http", "dynamodb+https")


@dataclass(frozen=True, slots=True)
class Target:
    """One region's endpoint."""

    address: str
    region: str
    client: Any


def is_client(what: Any) -> bool:
    """Whether this is a boto3 client of DynamoDB."""
    model = getattr(getattr(what, "meta", None), "service_model", None)
    return getattr(model, "service_name", "") == "dynamodb"


def is_resource(what: Any) -> bool:
    """Whether this is a boto3 resource of DynamoDB, or one of its tables."""
    meta = getattr(what, "meta", None)
    return getattr(meta, "service_name", "") == "dynamodb" and hasattr(meta, "client")


def target_of(what: Any) -> Target:
    """The target behind a client, a resource, or a URL.

    `dynamodb://eu-central-1` is AWS's endpoint there, `dynamodb+http://127.0.0.1:8000/eu-central-1` another one;
    credentials are found as boto3 finds them. Raises ConfigurationError for what is none of these.
    """
    if isinstance(what, Target):
        return what
    if isinstance(what, str):
        return _by_url(what)
    client = what.meta.client if is_resource(what) else what
    if not is_client(client):
        raise ConfigurationError(f"no DynamoDB client, table or URL: {type(what).__name__}", code="AP501")
    client = getattr(client, "_antipode_plain", client)
    return Target(address_of(client.meta.endpoint_url, client.meta.region_name), client.meta.region_name, client)


def address_of(endpoint: str, region: str) -> str:
    """A name for people, which is a URL that `target_of` takes; no credentials."""
    parts = urlsplit(endpoint)
    if (parts.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws")):
        return f"dynamodb://{region}"
    host = parts.netloc.rpartition("@")[2]
    return f"dynamodb+{parts.scheme}://{host}/{region}"


@functools.lru_cache(maxsize=64)
def _by_url(url: str) -> Target:
    import boto3

    parts = urlsplit(url)
    plain = parts.scheme == "dynamodb"
    region = (parts.hostname or "") if plain else parts.path.strip("/")
    if parts.scheme not in SCHEMES or not region or parse_qs(parts.query):
        raise ConfigurationError(
            f"no address of DynamoDB: {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}; want "
            "dynamodb://REGION, or dynamodb+https://HOST:PORT/REGION for another endpoint",
            code="AP502",
        )
    endpoint = None if plain else f"{parts.scheme.rpartition('+')[2]}://{parts.netloc.rpartition('@')[2]}"
    given: dict[str, Any] = {"region_name": region, "endpoint_url": endpoint}
    if parts.username:
        given |= {"aws_access_key_id": parts.username, "aws_secret_access_key": parts.password or ""}
    client = boto3.session.Session().client("dynamodb", **given)
    return Target(address_of(client.meta.endpoint_url, region), region, client)
