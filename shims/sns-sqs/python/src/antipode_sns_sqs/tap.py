"""Taps: queues beside a topic, where a process can see what has arrived in its region (DESIGN 7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from antipode import ConfigurationError
from antipode.shim.aws import client_beside, client_of, own_config, own_session

REMEMBERED: Final = 20_000
"""How many of the last messages a tap's reader remembers by default: about 3 MB."""
SCHEMES: Final = ("sqs+http", "sqs+https")
_FORMS: Final = (
    "https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE (the queue's URL), or "
    "sqs+https://[KEY:SECRET@]HOST[:PORT]/ACCOUNT/QUEUE?region=…"
)


@dataclass(frozen=True)
class Tap:
    """A queue of the region that waits, subscribed to the topic, that one process reads and nobody else.

    As a text: the queue's URL; with credentials or another endpoint `sqs+https://KEY:SECRET@HOST/ACCOUNT/QUEUE?region=…`.
    """

    url: str = field(repr=False)
    client: Any = field(default=None, compare=False, repr=False)
    """A boto3 client of SQS, whose credentials and settings ours takes; without, those of the environment."""
    remember: int = REMEMBERED
    """How many of the last messages are remembered; a message takes 130 bytes."""

    @classmethod
    def of(cls, target: Any) -> Tap:
        """A tap as it is given in code or by `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises ConfigurationError."""
        if isinstance(target, Tap):
            return target
        if isinstance(target, tuple) and len(target) == 2 and isinstance(target[1], str):
            return cls(target[1], client_of(target[0], "sqs"))
        if not isinstance(target, str):
            client, url = client_of(target, "sqs"), getattr(target, "url", None)
            if client is None or not isinstance(url, str):
                raise ConfigurationError(
                    f"{type(target).__name__} is no tap: give {_FORMS}, or (client, queue URL)", code="AP502"
                )
            return cls(url, client)
        _parts(target)
        return cls(target)

    @property
    def queue(self) -> str:
        """The queue's name."""
        return str(_parts(self.url).path).rpartition("/")[2]

    @property
    def endpoint(self) -> str:
        """Where its SQS answers."""
        parts = _parts(self.url)
        return f"{parts.scheme.removeprefix('sqs+')}://{parts.netloc.rpartition('@')[2]}"

    @property
    def queue_url(self) -> str:
        """The queue's URL as SQS's calls take it."""
        return f"{self.endpoint}{_parts(self.url).path}"

    @property
    def address(self) -> str:
        """The tap's address, without credentials."""
        return self.queue_url

    @property
    def region(self) -> str | None:
        """The region that its URL names."""
        parts = _parts(self.url)
        told = parse_qs(parts.query).get("region")
        host = (parts.hostname or "").split(".")
        return told[-1] if told else host[1] if host[0] == "sqs" and len(host) > 3 else None

    def connect(self, timeout: float, wait: float = 0.0) -> Any:
        """A client of our own, with these time-outs in seconds and no retries; `wait` is how long an answer may be
        kept back on purpose.
        """
        config = own_config(timeout, wait)
        if self.client is not None:
            plain = getattr(self.client, "_antipode_plain", self.client)
            return client_beside(plain, config, self.endpoint, self.region)
        key, _, secret = _parts(self.url).netloc.rpartition("@")[0].partition(":")
        login = {"aws_access_key_id": unquote(key), "aws_secret_access_key": unquote(secret)} if key else {}
        session = own_session()
        return session.create_client("sqs", region_name=self.region, endpoint_url=self.endpoint, config=config, **login)

    def __repr__(self) -> str:
        return f"<Tap {self.address}>"


def _parts(url: str) -> Any:
    parts = urlsplit(url)
    known = (*SCHEMES, "http", "https")
    if parts.scheme.lower() not in known or not parts.netloc or parts.path.count("/") != 2 or parts.path[-1] == "/":
        raise ConfigurationError(f"a tap is {_FORMS}, or antipode_sns_sqs.Tap(url, client)", code="AP502")
    return parts
