"""Three Sentinels over the lab's Redis, and the router that keeps the links' lags under them."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis as redis_py
from redis.backoff import NoBackoff
from redis.retry import Retry

from antipode_lab.processes import Supervisor, wait_until
from antipode_lab.stores import _router

SERVICE = "antipode"
"""The name under which clients ask a Sentinel for the primary."""
COUNT = 3


def source_address(index: int) -> str:
    """The loopback address from which the server of this index connects, and by which the router knows it."""
    return f"127.0.1.{index + 1}"


def start_router(
    supervisor: Supervisor,
    folder: Path,
    *,
    router_ports: Mapping[str, int],
    direct: Mapping[str, int],
    links: Mapping[str, int],
) -> None:
    """Starts the router; returns when it listens."""
    table = folder / "router.json"
    table.write_text(
        json.dumps(
            {
                "listen": {str(port): name for name, port in router_ports.items()},
                "direct": dict(direct),
                "sources": {source_address(index): name for index, name in enumerate(direct)},
                "links": dict(links),
            }
        )
    )
    supervisor.spawn("redis:router", [sys.executable, "-I", "-S", _router.__file__, str(table)])

    def listens() -> bool:
        for port in router_ports.values():
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", port)):
                    return False
        return True

    supervisor.wait_ready("redis:router", listens, 15)


def start_sentinels(
    supervisor: Supervisor, folder: Path, *, primary_port: int, replicas: int, down_after_ms: int
) -> list[int]:
    """Starts the Sentinels; returns their ports when each knows the others and every replica."""
    ports = supervisor.ports(COUNT)
    for index, port in enumerate(ports, 1):
        home = folder / f"sentinel{index}"
        home.mkdir()
        (home / "sentinel.conf").write_text(
            f"port {port}\nbind 127.0.0.1\ndir {home}\nprotected-mode no\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary_port} {COUNT // 2 + 1}\n"
            f"sentinel down-after-milliseconds {SERVICE} {down_after_ms}\n"
            # On a busy machine a promotion takes seconds; given up half way, it is followed by one of another replica.
            f"sentinel failover-timeout {SERVICE} 10000\n"
            f"sentinel parallel-syncs {SERVICE} 8\n"
        )
        program = shutil.which("redis-server") or "redis-server"
        supervisor.spawn(f"redis:sentinel{index}", [program, str(home / "sentinel.conf"), "--sentinel"])
    for index, port in enumerate(ports, 1):

        def knows(port: int = port) -> bool:
            with suppress(redis_py.RedisError):
                view = ask(port)
                known = int(view["num-slaves"]), int(view["num-other-sentinels"])
                return known == (replicas, COUNT - 1) and view["flags"] == "master"
            return False

        supervisor.wait_ready(f"redis:sentinel{index}", knows, 30)
    return ports


def ask(port: int) -> dict[str, str]:
    """What a Sentinel says of the primary (SENTINEL MASTER)."""
    with redis_py.Redis(port=port, socket_timeout=2, retry=Retry(NoBackoff(), 0), decode_responses=True) as client:
        client.set_response_callback("SENTINEL MASTER", lambda reply, **_: reply)
        reply: Any = client.execute_command("SENTINEL MASTER", SERVICE)
    if isinstance(reply, Mapping):
        return {str(key): str(value) for key, value in reply.items()}
    return dict(zip(reply[::2], reply[1::2], strict=True))


def wait_agreed(ports: Sequence[int], old_port: int | None, timeout: float) -> int:
    """Waits until all Sentinels name one primary, another than ``old_port``; returns its port at the
    router.
    """
    agreed: set[int] = set()

    def all_agree() -> bool:
        nonlocal agreed
        with suppress(redis_py.RedisError):
            views = [ask(port) for port in ports]
            agreed = {int(view["port"]) for view in views}
            busy = any("failover_in_progress" in view["flags"] for view in views)
            return len(agreed) == 1 and old_port not in agreed and not busy
        return False

    wait_until("the Sentinels to agree on a primary", all_agree, timeout, 0.05)
    return agreed.pop()
