"""A client of asyncio, driven as a blocking one: what holds a blocking client's ways holds its ways, too (SHIM-49)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["BlockingProxy"]


class BlockingProxy:
    """A client, or what it gave: each call runs on the loop, in the caller's context, until it is done."""

    _client: Any
    _loop: asyncio.AbstractEventLoop

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.__dict__.update(_client=client, _loop=loop)

    def __getattr__(self, name: str) -> Any:
        return self._driven(getattr(self._client, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._client, name, value)

    def __enter__(self) -> Any:
        return self._driven(self._client.__aenter__())

    def __exit__(self, *error: object) -> Any:
        return self._driven(self._client.__aexit__(*error))

    def __iter__(self) -> Iterator[Any]:
        each = self._client.__aiter__()
        while True:
            try:
                yield self._driven(each.__anext__())
            except StopAsyncIteration:
                return

    def __getitem__(self, name: Any) -> Any:
        return self._driven(self._client[name])

    def __call__(self, *args: Any, **options: Any) -> Any:
        given = {name: _plain(option) for name, option in options.items()}
        return self._driven(self._client(*map(_plain, args), **given))

    def _driven(self, value: Any) -> Any:
        if inspect.isawaitable(value) and not _is_of_asyncio(value.__class__):
            return self._driven(self._loop.run_until_complete(_wait(value)))
        if _is_of_asyncio(value.__class__) or inspect.isroutine(value) or hasattr(value, "__aiter__"):
            return BlockingProxy(value, self._loop)
        return value


@cache
def _is_of_asyncio(kind: type[object]) -> bool:
    """Return whether calls on such an object are awaited; of redis-py's pipelines that is so, and they are, too."""
    return any(inspect.iscoroutinefunction(getattr(kind, name, None)) for name in dir(kind))


async def _wait(value: Any) -> Any:
    return await value


def _plain(value: Any) -> Any:
    return value._client if isinstance(value, BlockingProxy) else value
