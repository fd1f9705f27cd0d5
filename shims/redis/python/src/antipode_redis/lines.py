"""A connection on which questions of ours are asked: a blocking one, and an asyncio one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from antipode import Lineage
from antipode.shim.both_ways import Steps
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis.binding import Binding
from antipode_redis.serving import AsyncServedConnection, ServedConnection, server_of

_EARLY_S: Final = 0.01
"""A socket's clock may be so much early."""


class Late(Exception):
    """The answer to a question of ours did not come by its deadline; the connection is closed."""


class Line:
    """A blocking connection. What its methods return is a step (`antipode.shim.both_ways`)."""

    given: Any = ServedConnection
    pause: Any = staticmethod(time.sleep)

    def __init__(self, connection: Any, binding: Binding) -> None:
        self._connection = connection
        self._binding = binding

    def send(self, *commands: Sequence[Any]) -> Any:
        """Send these commands in one packet."""
        return self._connection.send_packed_command(self._connection.pack_commands(commands))

    def receive(self, *, raw: bool = False, until: float | None = None) -> Any:
        """Return one reply; an error reply is a value. Raise what redis-py raises.

        raw: without decoding. until: when it has to be there, by `time.monotonic`: else the connection is closed, as
        the reply is open on it still, and `Late` raised. None: the application waits for it as it always does.
        """
        try:
            return self._reply(raw, until)
        except ResponseError as error:
            return error

    def _reply(self, raw: bool, until: float | None) -> Any:
        if until is None:
            return self._connection.read_response(disable_decoding=raw)
        own = getattr(self._connection, "_conn", self._connection)  # with redis-py's client cache there is a proxy
        sock = own._sock
        left = max(until - time.monotonic(), 0.001)
        sock.settimeout(min(own.socket_timeout or left, left))
        try:
            return self._connection.read_response(disable_decoding=raw)
        except (RedisTimeoutError, OSError) as error:
            if time.monotonic() < until - _EARLY_S:
                raise
            self.cut()
            raise Late from error
        finally:
            if own._sock is sock:
                sock.settimeout(own.socket_timeout)

    def wait_for(self, lineage: Lineage, timeout: float) -> Any:
        """Wait until the engine has seen these writes at the connection's server, so long at most; its verdict."""
        server = server_of(self._binding, self._connection)
        return None if server is None else server.wait_for(lineage, timeout).verdict

    def cut(self) -> Any:
        """Close the connection: replies may be on their way."""
        return self._connection.disconnect()

    def closing(self, steps: Steps[Any]) -> Steps[Any]:
        """Do these steps on the connection, which whatever breaks them off closes."""
        try:
            return (yield from steps)
        except BaseException:
            yield self.cut()
            raise


class AsyncLine(Line):
    """An asyncio connection."""

    given = AsyncServedConnection
    pause = staticmethod(asyncio.sleep)

    async def receive(self, *, raw: bool = False, until: float | None = None) -> Any:
        """Return one reply, as the blocking line does."""
        try:
            if until is None:
                return await self._connection.read_response(disable_decoding=raw)
            async with asyncio.timeout(max(until - time.monotonic(), 0.001)) as limit:
                return await self._connection.read_response(disable_decoding=raw)
        except ResponseError as error:
            return error
        except TimeoutError as error:
            if until is None or not limit.expired():
                raise
            await self.cut()
            raise Late from error

    async def wait_for(self, lineage: Lineage, timeout: float) -> Any:
        """Wait as the blocking line does."""
        server = server_of(self._binding, self._connection)
        return None if server is None else (await server.wait_for_async(lineage, timeout)).verdict

    def cut(self) -> Any:
        """Close the connection: replies may be on their way."""
        return self._connection.disconnect(nowait=True)
