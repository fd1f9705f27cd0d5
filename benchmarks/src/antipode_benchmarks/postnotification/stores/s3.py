"""Posts in S3: a bucket in region A, replicated to one in each place of region B; boto3's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote, urlsplit

import boto3.session
from antipode_lab.model import StoreState
from botocore.config import Config
from botocore.exceptions import ClientError

from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place
from antipode_benchmarks.postnotification.stores._blocking import THREADS, BlockingPosts

BUCKET: Final = "posts"
REGION: Final = "us-east-1"
LAB: Final[Mapping[str, Any]] = {"buckets": [BUCKET], "region": REGION}


class S3Posts(BlockingPosts[Any]):
    """An object a post."""

    shared: ClassVar[bool] = True

    def connect(self, url: str) -> Any:
        """A client of one endpoint."""
        place = urlsplit(url)
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=f"http://{place.hostname}:{place.port}",
            region_name=REGION,
            aws_access_key_id=unquote(place.username or ""),
            aws_secret_access_key=unquote(place.password or ""),
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=THREADS),
        )
        if not self.setup.antipode:
            return client
        import antipode_s3  # the baseline does without it

        return antipode_s3.wrap(
            client,
            store=STORE,
            bucket=BUCKET,
            wait_on_read=self.setup.wait_on_read,
            timeout=self.setup.options.timeout,
        )

    def put(self, client: Any, key: str, body: bytes) -> None:
        """PUT at the primary's bucket."""
        client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def get(self, client: Any, key: str) -> bytes | None:
        """GET at a replica's bucket."""
        try:
            found: bytes = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise
        return found


open_posts = S3Posts


def prepare(lab: StoreState) -> Place:
    """The lab has made the buckets and their replication."""
    login = f"{quote(lab.details['user'])}:{quote(lab.details['password'])}"
    return Place(
        {
            name: f"s3+http://{login}@{server.host}:{server.port}/{BUCKET}?region={REGION}"
            for name, server in lab.servers.items()
        }
    )


def register(setup: Setup) -> None:
    """follower-notify waits for all of the region's buckets, and has no client of its own."""
    import antipode_s3

    antipode_s3.register(STORE, replicas=[setup.posts[name] for name in setup.options.replicas])
