"""How large a post is in its store, with whatever rests beside it: as a plain client of the primary finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from antipode_benchmarks.postnotification.options import Setup
from antipode_benchmarks.postnotification.stores import open_posts


def stored(setup: Setup, key: str) -> int:
    """Octets of a post at the primary; `setup` is one without Antipode."""
    posts: Any = open_posts(setup, "a", None)
    return _STORED[setup.options.post_storage](setup, posts, key)


def _redis(setup: Setup, _: Any, key: str) -> int:
    import redis

    with redis.Redis.from_url(setup.posts["a"]) as client:
        used: int = client.memory_usage(key, samples=0)  # as the server counts it, its own overhead included
        return used


def _postgresql(setup: Setup, _: Any, key: str) -> int:
    import psycopg

    with psycopg.connect(setup.posts["a"]) as connection:
        row = connection.execute("SELECT pg_column_size(posts.*) FROM posts WHERE key = %s", (key,)).fetchone()
    assert row is not None
    return int(row[0])


def _sql(setup: Setup, posts: Any, key: str) -> int:
    with posts.connect(setup.posts["a"]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM posts WHERE id = %s", (key,))
        return sum(len(value) for value in cursor.fetchone() if value is not None)


def _s3(setup: Setup, posts: Any, key: str) -> int:
    from antipode_benchmarks.postnotification.stores.s3 import BUCKET

    found = posts.connect(setup.posts["a"]).head_object(Bucket=BUCKET, Key=key)
    metadata = sum(len(name) + len(value) for name, value in found["Metadata"].items())
    return int(found["ContentLength"]) + len(key) + metadata


def _dynamodb(setup: Setup, posts: Any, key: str) -> int:
    from antipode_benchmarks.postnotification.stores.dynamodb import TABLE

    item = posts.connect(setup.posts["a"]).get_item(TableName=TABLE, Key={"id": {"S": key}})["Item"]
    return sum(len(name) + _attribute(value) for name, value in item.items())


def _attribute(value: dict[str, Any]) -> int:
    """As DynamoDB counts an attribute's value."""
    [(kind, content)] = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name) + _attribute(each) for name, each in content.items())
    if kind == "L":
        return 3 + sum(1 + _attribute(each) for each in content)
    if kind in {"SS", "NS", "BS"}:
        return sum(map(len, content))
    return 1 if kind in {"BOOL", "NULL"} else len(content)


def _mongodb(setup: Setup, posts: Any, key: str) -> int:
    import bson

    from antipode_benchmarks.postnotification.stores.mongodb import DATABASE

    with posts.connect(setup.posts["a"]) as client:
        return len(bson.encode(client[DATABASE]["posts"].find_one({"_id": key})))


_STORED: Final[dict[str, Callable[[Setup, Any, str], int]]] = {
    "redis": _redis,
    "postgresql": _postgresql,
    "mariadb": _sql,
    "mysql": _sql,
    "s3": _s3,
    "dynamodb": _dynamodb,
    "mongodb": _mongodb,
}
