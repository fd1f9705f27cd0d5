"""A region's part of the lab in a container: what replicates DynamoDB Local, or SNS and SQS (moto).

Both are the native lab's own programs, which speak on loopback alone; here they are given ways out of it and into it.

    region.py dynamodb NAME REGION ENDPOINT SOURCE=HOST:PORT…
    region.py sns REGION REGION=HOST:PORT…
    region.py answers PORT
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAMS = Path(os.environ.get("PROGRAMS", "/lab"))
LISTEN = os.environ.get("LISTEN", "0.0.0.0")
"""The address that other containers reach."""
ACCESS_KEY = "antipode"
DYNAMODB_PORT, SNS_PORT = 9100, 5000
"""What others connect to; the program itself listens on loopback, a thousand above."""
LINKS = 20_000
"""The first port of loopback that stands for a link."""


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def forward(listen: tuple[str, int], target: tuple[str, int]) -> asyncio.Server:
    """Whoever connects to `listen` is connected to `target`; where that refuses, the connection is closed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))

    return await asyncio.start_server(connected, *listen)


def links(arguments: list[str]) -> dict[str, tuple[str, int]]:
    """`b1=toxiproxy:21010` as where it leads."""
    found = {}
    for argument in arguments:
        name, _, place = argument.partition("=")
        host, _, port = place.rpartition(":")
        found[name] = (host, int(port))
    return found


def plan(arguments: list[str]) -> tuple[str, dict[str, object], int, list[tuple[tuple[str, int], tuple[str, int]]]]:
    """The program, its configuration, the port that others use, and what is forwarded to where."""
    kind, *rest = arguments
    others = links(rest[3:] if kind == "dynamodb" else rest[1:])
    ports = {name: LINKS + number for number, name in enumerate(others)}
    ways = [(("127.0.0.1", ports[name]), place) for name, place in others.items()]
    if kind == "dynamodb":
        name, region, endpoint = rest[:3]
        config: dict[str, object] = {"name": name, "endpoint": endpoint, "region": region, "key": ACCESS_KEY}
        config |= {"listen": DYNAMODB_PORT + 1000, "sources": ports, "clock_ms": 0}
        return "_dynamodb_replicator.py", config, DYNAMODB_PORT, ways
    config = {"region": rest[0], "port": SNS_PORT + 1000, "links": ports}
    return "_sns_server.py", config, SNS_PORT, ways


def make_table(endpoint: str, region: str) -> None:
    """The table `posts`, as the native lab makes it."""
    import boto3

    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=ACCESS_KEY,
    )
    while True:
        try:
            if "posts" in client.list_tables()["TableNames"]:
                return
            break
        except Exception:
            time.sleep(0.2)
    client.create_table(
        TableName="posts",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    client.update_time_to_live(TableName="posts", TimeToLiveSpecification={"Enabled": True, "AttributeName": "_apx"})


async def serve_ways(ways: list[tuple[tuple[str, int], tuple[str, int]]], ready: threading.Event) -> None:
    """Forwards until the process ends."""
    servers = [await forward(listen, target) for listen, target in ways]
    ready.set()
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main(arguments: list[str]) -> None:
    """Runs until the container is stopped."""
    if arguments[0] == "answers":
        # The program's own port: the way to it takes connections before it does.
        socket.create_connection(("127.0.0.1", int(arguments[1]) + 1000), timeout=3).close()
        return
    program, config, port, ways = plan(arguments)
    ways.append(((LISTEN, port), ("127.0.0.1", port + 1000)))
    ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(serve_ways(ways, ready)), daemon=True).start()
    ready.wait(30)
    if arguments[0] == "dynamodb":
        make_table(arguments[3], arguments[2])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        sys.argv = [program, file.name]
        runpy.run_path(str(PROGRAMS / program), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
