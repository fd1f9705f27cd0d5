"""The addresses by which Redis Sentinel knows the servers: one port a server, the same for everybody.

Sentinels tell every replica the same address of the primary. Here that address is this router's: a
connection that comes from one of the lab's servers (each has a source address of its own, 127.0.1.n) goes
on through the link of that pair, with its lag; any other one, a client's or a Sentinel's, straight to the
server.

Run as a file, with the standard library only: ``_redis_router.py TABLE``, a JSON file
``{"listen": {port: server}, "direct": {server: port}, "sources": {address: server}, "links":
{"target<-source": port}}``.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 65536


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


async def _connection(
    table: dict[str, Any], server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Joins a client with where it is to go, until either side ends: both end then, as over a real
    connection.
    """
    origin = table["sources"].get(writer.get_extra_info("peername")[0])
    port = table["links"].get(f"{origin}<-{server}", table["direct"][server])
    try:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.transport.abort()
        return
    pumps = [
        asyncio.create_task(_pump(reader, far_writer)),
        asyncio.create_task(_pump(far_reader, writer)),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        writer.close()
        far_writer.close()


async def _main(path: Path) -> None:
    table = json.loads(path.read_text())
    servers = [
        await asyncio.start_server(functools.partial(_connection, table, server), "127.0.0.1", int(port))
        for port, server in table["listen"].items()
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
