"""A client of asyncio, driven as a blocking one: what holds a blocking client's ways holds its ways, too (SHIM-49)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

__all__ = ["Driven"]


class Driven:
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

    def _driven(self, value: Any) -> Any:
        if inspect.isawaitable(value) and not hasattr(value, "__aenter__"):  # redis-py's pipelines are both
            return self._driven(self._loop.run_until_complete(_wait(value)))
        if hasattr(value, "__aenter__") or hasattr(value, "__aiter__"):
            return Driven(value, self._loop)
        if callable(value) and not inspect.isclass(value):
            return lambda *args, **options: self._driven(
                value(*map(_plain, args), **{name: _plain(option) for name, option in options.items()})
            )
        return value


async def _wait(value: Any) -> Any:
    return await value


def _plain(value: Any) -> Any:
    return value._client if isinstance(value, Driven) else value
