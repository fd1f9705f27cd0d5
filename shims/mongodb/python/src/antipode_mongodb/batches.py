"""What comes after a first batch: cursors that commands give, change streams, sessions with a snapshot (SHIM-48)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any

from antipode import EMPTY, Lineage
from pymongo.asynchronous.change_stream import AsyncChangeStream
from pymongo.asynchronous.command_cursor import AsyncCommandCursor
from pymongo.synchronous.change_stream import ChangeStream
from pymongo.synchronous.command_cursor import CommandCursor

from antipode_mongodb.binding import Binding
from antipode_mongodb.reading import DocumentRead


def cached(function: Callable[[Any], type[Any]]) -> Callable[[Any], type[Any]]:
    """Make one class for each of the client's own."""
    return functools.cache(function)


def watched(result: Any, binding: Binding, proved: Lineage) -> Any:
    """Return what a read has given; where it is a cursor its later batches are as old, and wait or are refused.

    proved: what was waited for before the read.
    """
    if isinstance(result, CommandCursor | AsyncCommandCursor):
        return _recording(result, binding, proved)
    if isinstance(result, ChangeStream | AsyncChangeStream):
        result.__class__ = _stream_class(type(result))
        result._antipode_binding = binding  # type: ignore[union-attr]
        _recording(result._cursor, binding, None)
    elif isinstance(result, Mapping) and isinstance(cursor := result.get("cursor"), Mapping) and cursor.get("id"):
        binding.cursors.put(cursor["id"], proved)  # its later batches are fetched by hand
    return result


def past_of(binding: Binding, command: Mapping[str, Any]) -> Lineage | None:
    """Return what was proved when the data that a `getMore` by hand fetches was taken; None of another command."""
    name = str(next(iter(command), ""))
    if name.lower() != "getmore":
        return None
    return binding.cursors.get(command[name]) or EMPTY


def _recording(cursor: Any, binding: Binding, proved: Lineage | None) -> Any:
    """`proved`: None where what comes later is new, as of a change stream."""
    cursor.__class__ = _cursor_class(type(cursor))
    cursor._antipode_binding, cursor._antipode_proved = binding, proved
    return cursor


@cached
def _cursor_class(plain: Any) -> type[Any]:
    if issubclass(plain, AsyncCommandCursor):

        class Recording(plain):  # type: ignore[misc]
            async def _send_message(self, operation: Any) -> None:
                with DocumentRead(self._antipode_binding, past=self._antipode_proved) as read:
                    if read.waits:
                        await asyncio.to_thread(read.wait)
                    await super()._send_message(operation)
                    read.mark()
    else:

        class Recording(plain):  # type: ignore[misc,no-redef]
            def _send_message(self, operation: Any) -> None:
                with DocumentRead(self._antipode_binding, past=self._antipode_proved) as read:
                    if read.waits:
                        read.wait()
                    super()._send_message(operation)
                    read.mark()

    Recording.__name__ = plain.__name__
    return Recording


@cached
def _stream_class(plain: Any) -> type[Any]:
    if issubclass(plain, AsyncChangeStream):

        class Recording(plain):  # type: ignore[misc]
            async def _create_cursor(self) -> Any:
                return _recording(await super()._create_cursor(), self._antipode_binding, None)
    else:

        class Recording(plain):  # type: ignore[misc,no-redef]
            def _create_cursor(self) -> Any:
                return _recording(super()._create_cursor(), self._antipode_binding, None)

    Recording.__name__ = plain.__name__
    return Recording
