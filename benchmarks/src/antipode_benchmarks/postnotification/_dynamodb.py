"""DynamoDB as the lab's servers are reached: clients by URL, for posts and for notifications."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import boto3.session
from antipode_lab.model import StoreState
from botocore.config import Config


def urls_of(lab: StoreState) -> dict[str, str]:
    """The servers' URLs as Antipode takes them, with the lab's key."""
    key = lab.details["access_key"]
    return {
        name: f"dynamodb+http://{key}:{key}@{server.host}:{server.port}/{lab.details['regions'][name]}"
        for name, server in lab.servers.items()
    }


def client_of(url: str, connections: int, service: str = "dynamodb") -> Any:
    """A plain client of one region; threads may share it."""
    place = urlsplit(url)
    return boto3.session.Session().client(
        service,
        endpoint_url=f"http://{place.hostname}:{place.port}",
        region_name=place.path.strip("/"),
        aws_access_key_id=unquote(place.username or ""),
        aws_secret_access_key=unquote(place.password or ""),
        config=Config(max_pool_connections=connections),
    )
