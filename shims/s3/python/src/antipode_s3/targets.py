"""How to reach one bucket at one endpoint beside the application's own client, with its credentials and settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from antipode import ConfigurationError
from antipode.shim.administration import without_credentials
from antipode.shim.aws import client_beside, client_of, own_config, own_session
from botocore.config import Config

SCHEMES: Final = ("s3", "s3+http", "s3+https")
_FORMS: Final = "s3://BUCKET?region=…, or s3+https://[KEY:SECRET@]HOST[:PORT]/BUCKET?region=…"
POOL: Final = 8
"""Questions that are in flight at once to one server."""
SERVICE: Final = "s3"


@dataclass(frozen=True)
class Target:
    """One bucket at one endpoint."""

    bucket: str
    address: str
    """Its name for people and for telling servers apart: no credentials."""
    client: Any = field(default=None, compare=False)
    """The application's client, whose credentials and settings ours takes."""
    url: str = field(default="", repr=False)

    def connect(self, timeout: float) -> Any:
        """A client of our own: its connections, its time-outs, no retries."""
        if self.client is None:
            return _from_url(self.url, timeout)
        return client_beside(self.client, own_config(timeout, max_pool_connections=POOL))

    def __str__(self) -> str:
        return self.address


def target_of(given: Any, bucket: str = "") -> Target:
    """The target behind a URL, a (client, bucket) pair, a Bucket resource, or a client where a bucket is named."""
    if isinstance(given, Target):
        return given
    if isinstance(given, str):
        parts = _parse(given)
        return Target(parts.bucket, parts.address, url=given)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        return target_of(given[0], given[1])
    client = client_of(given, SERVICE)
    name = bucket or str(getattr(given, "bucket_name", None) or getattr(given, "name", None) or "")
    if client is None or not name:
        raise ConfigurationError(
            f"{type(given).__name__} names no bucket of a store: give a URL ({_FORMS}), a pair (client, bucket), or a "
            "Bucket of a boto3 resource",
            code="AP501",
        )
    plain = getattr(client, "_antipode_plain", None) or client
    return Target(name, f"{client.meta.endpoint_url}/{name}", client=plain)


@dataclass(frozen=True)
class _Parts:
    bucket: str
    endpoint: str | None
    key: str | None
    secret: str | None = field(repr=False)
    options: dict[str, str]

    @property
    def address(self) -> str:
        """All that tells this bucket from one of the same name elsewhere; no credentials."""
        if self.endpoint is not None:
            return f"{without_credentials(self.endpoint)}/{self.bucket}"
        region = self.options.get("region")
        return f"s3://{self.bucket}?region={region}" if region else f"s3://{self.bucket}"


def _parse(url: str) -> _Parts:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme.lower() not in SCHEMES:
        raise ConfigurationError(f"{without_credentials(url)!r} is no address of a bucket: want {_FORMS}", code="AP502")
    split = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(split.query).items()}
    unknown = set(options) - {"region", "endpoint", "profile"}
    if unknown:
        raise ConfigurationError(
            f"s3 addresses take region, endpoint and profile, not {', '.join(sorted(unknown))}", code="AP502"
        )
    if scheme.lower() == "s3":
        bucket, endpoint = split.netloc.rpartition("@")[2], options.get("endpoint")
    else:
        bucket = split.path.strip("/")
        endpoint = f"{scheme[3:]}://{split.netloc.rpartition('@')[2]}"
    if not bucket:
        raise ConfigurationError(f"{without_credentials(url)!r} names no bucket: want {_FORMS}", code="AP502")
    login = split.netloc.rpartition("@")[0]
    key, _, secret = login.partition(":")
    return _Parts(bucket, endpoint, unquote(key) or None, unquote(secret) or None, options)


def _from_url(url: str, timeout: float) -> Any:
    parts = _parse(url)
    config = own_config(timeout, max_pool_connections=POOL)
    if parts.endpoint is not None:
        config = config.merge(Config(s3={"addressing_style": "path"}))
    return own_session(profile=parts.options.get("profile")).create_client(
        SERVICE,
        region_name=parts.options.get("region"),
        endpoint_url=parts.endpoint,
        aws_access_key_id=parts.key,
        aws_secret_access_key=parts.secret,
        config=config,
    )
