"""The addresses by which servers that know one another by one address only are reached: one port a server.

Redis Sentinel tells every replica the same address of the primary, and a replica set of MongoDB has one configuration
for all members. Such an address is this router's: a connection that comes from another of the lab's servers goes on
through the link of that pair, with its lag; any other one, a client's or a server's to itself, straight to the server.

Run as a file, with the standard library only: ``_router.py TABLE``, a JSON file ``{"listen": {port: server}, "direct":
{server: port}, "links": {"target<-source": port}, "sources": {address: server}, "pids": {server: pid}}``, read anew for
each connection. Servers are told by a source address of their own, or by their processes.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 65536


def origin(table: dict[str, Any], peer: tuple[str, int], here: tuple[str, int]) -> str | None:
    """Which server a connection comes from, by the addresses of both ends; None where from none of them."""
    found: str | None = table.get("sources", {}).get(peer[0])
    pids: dict[str, int] = table.get("pids", {})
    return owner(peer[1], here[1], pids) if found is None and pids else found


def owner(port: int, here: int, pids: dict[str, int]) -> str | None:
    """Which of these processes has the connection from one port of 127.0.0.1 to another: one port may have many."""
    ends = [f"0100007F:{port:04X}", f"0100007F:{here:04X}"]
    with Path("/proc/net/tcp").open() as lines:
        inode = next((words[9] for words in map(str.split, lines) if words[1:3] == ends), None)
    wanted = f"socket:[{inode}]"
    for server, pid in pids.items():
        with suppress(OSError):
            for each in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(each.path) == wanted:
                        return server
    return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


async def _connection(path: Path, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Joins a client with where it is to go, until either side ends: both end then, as over a real connection."""
    table: dict[str, Any] = json.loads(path.read_text())
    source = origin(table, writer.get_extra_info("peername"), writer.get_extra_info("sockname"))
    port = table["links"].get(f"{source}<-{server}", table["direct"][server])
    try:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.transport.abort()
        return
    pumps = [asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))]
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
        await asyncio.start_server(functools.partial(_connection, path, server), "127.0.0.1", int(port))
        for port, server in table["listen"].items()
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
