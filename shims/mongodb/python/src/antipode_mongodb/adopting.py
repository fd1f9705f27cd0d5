"""What an application, or GridFS, makes by PyMongo's classes of a wrapped client's parts (spec SHIM-50).

`Collection(database, name)`, `Database(client, name)` and cursors of a collection ask nothing of what they are made of,
so that the constructors themselves have to look. What is made of a plain client stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.cursor import AsyncCursor, AsyncRawBatchCursor
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.synchronous.collection import Collection
from pymongo.synchronous.cursor import Cursor, RawBatchCursor
from pymongo.synchronous.database import Database

from antipode_mongodb.recording import (
    RecordingClient,
    RecordingCollection,
    RecordingDatabase,
    as_recording_collection,
    as_recording_cursor,
    as_recording_database,
)


def _adopt_database(database: Any) -> None:
    if isinstance(database.client, RecordingClient):
        as_recording_database(database)


def _adopt_collection(collection: Any) -> None:
    if isinstance(collection.database, RecordingDatabase):
        as_recording_collection(collection)


def _adopt_cursor(cursor: Any) -> None:
    if isinstance(cursor._collection, RecordingCollection):
        as_recording_cursor(cursor, is_raw=isinstance(cursor, RawBatchCursor | AsyncRawBatchCursor))


_ADOPT: Final[dict[Any, Callable[[Any], None]]] = {
    Database: _adopt_database,
    AsyncDatabase: _adopt_database,
    Collection: _adopt_collection,
    AsyncCollection: _adopt_collection,
    Cursor: _adopt_cursor,
    AsyncCursor: _adopt_cursor,
}


def _looking(own: Callable[..., None], adopt: Callable[[Any], None]) -> Callable[..., None]:
    @functools.wraps(own)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        own(self, *args, **kwargs)
        adopt(self)

    return construct


@functools.cache
def look_at_constructors() -> None:
    """Have PyMongo's constructors look at what a part is made of; once a process."""
    for kind, adopt in _ADOPT.items():
        kind.__init__ = _looking(kind.__init__, adopt)
