"""The wrapped classes: PyMongo's own, sync and async, whose operations go by what they do to data."""

from __future__ import annotations

import asyncio
import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from antipode import EMPTY, Lineage
from antipode.shim import ReadValue, refuse_making
from antipode.shim.both_ways import Steps, run, run_async
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.read_concern import ReadConcern
from pymongo.synchronous.cursor import Cursor

from antipode_mongodb import commands, noting, operations
from antipode_mongodb.batches import cached, past_of
from antipode_mongodb.binding import Binding
from antipode_mongodb.commands import given_back
from antipode_mongodb.fields import hiding, is_whole, widened
from antipode_mongodb.operations import Given, given_to
from antipode_mongodb.outcome import BATCHES, ONE, SEVERAL, failure_in
from antipode_mongodb.positions import aborted, bound_session, committed, taken
from antipode_mongodb.reading import CursorRead, DocumentRead, can_strip
from antipode_mongodb.writing import BoundCollection, as_plain

_FIND = ("filter", "projection")


def _binding_of(client: Any) -> Binding:
    return cast("Binding", client._antipode)


# Collections


class RecordingCollection:
    """What makes a collection record. Never made by itself: mixed into PyMongo's own class."""

    _antipode_plain_class: type[Any]
    _antipode_cursor_class: type[Any]

    @property
    def _antipode(self) -> Binding:
        return self._antipode_at.binding

    @property
    def _antipode_at(self) -> BoundCollection:
        at = self.__dict__.get("_antipode_known")
        if at is None:
            plain: Any = object.__new__(self._antipode_plain_class)
            plain.__dict__.update(self.__dict__)
            codec = plain.codec_options.with_options(document_class=dict)
            ours = as_plain(plain.with_options(codec_options=codec), self._antipode_plain_class)
            at = BoundCollection(_binding_of(plain.database.client), plain, ours, plain.full_name)
            self.__dict__["_antipode_known"] = at
        return cast("BoundCollection", at)

    def with_options(self, *args: Any, **kwargs: Any) -> Any:
        return as_recording_collection(self._antipode_at.low.with_options(*args, **kwargs))

    def __getitem__(self, name: str) -> Any:
        return as_recording_collection(super().__getitem__(name))  # type: ignore[misc]

    def find(self, *args: Any, **kwargs: Any) -> Any:
        at = self._antipode_at
        given = {**dict(zip(_FIND, args, strict=False)), **kwargs}
        projection, rest = given.pop("projection", None), args[2:]
        collecting = (at.binding.collects() or noting.wants_versions(at.binding)) and can_strip(at.low.codec_options)
        if collecting:
            asked, without_id = widened(projection)
        else:
            asked, without_id = hiding(projection), False
        cursor = self._antipode_cursor_class(self, given.pop("filter", None), asked, *rest, **given)
        cursor._antipode_seen = CursorRead(
            at.binding, at.namespace, wide=collecting, whole=is_whole(projection), without_id=without_id
        )
        return cursor

    def find_raw_batches(self, *args: Any, **kwargs: Any) -> Any:
        at = self._antipode_at
        given = {**dict(zip(_FIND, args, strict=False)), **kwargs}
        given["projection"] = hiding(given.get("projection"))
        sent = (given.pop("filter", None), given.pop("projection"), *args[2:])
        plain = at.low.find_raw_batches(*sent, **given)  # refuses what it refuses
        cursor = _cursor_class(type(plain))(at.low, *sent, **given)
        cursor._antipode_seen = CursorRead(
            at.binding, at.namespace, wide=False, whole=False, without_id=False, raw=True
        )
        return cursor


def _collection_method(name: str, *, is_async: bool, how: Callable[[BoundCollection, str, Given], Steps[Any]]) -> Any:
    if is_async:

        async def async_method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await run_async(how(self._antipode_at, name, _in_session(self, given_to(name, args, kwargs))))

        return async_method

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(how(self._antipode_at, name, _in_session(self, given_to(name, args, kwargs))))

    return method


def _in_session(collection: Any, given: Given) -> Given:
    """Return the arguments of a call with the session that is bound, where they name none."""
    bound = None if given.get("session") is not None else bound_session(collection.database.client)
    return given if bound is None else {**given, "session": bound}


def _is_async(plain: type[Any]) -> bool:
    return any("asynchronous" in each.__module__ for each in plain.__mro__)


@cached
def recording_collection(plain: Any) -> type[Any]:
    """The class of a wrapped client's collections: a subclass of the client's own."""
    is_async = _is_async(plain)
    members: dict[str, Any] = {"__module__": plain.__module__, "_antipode_plain_class": plain}
    for names, how in (
        (operations.WRITES, operations.write),
        (operations.COUNTS, operations.count),
        (("aggregate", "aggregate_raw_batches"), operations.aggregate),
        (operations.INQUIRIES, operations.inquire),
    ):
        for name in names:
            method = _collection_method(name, is_async=is_async, how=how)
            members[name] = functools.wraps(getattr(plain, name))(method)
    members["_antipode_cursor_class"] = _cursor_class(AsyncCursor if is_async else Cursor)
    return type(plain.__name__, (RecordingCollection, plain), members)


def as_recording_collection(collection: Any) -> Any:
    """Make this collection of a wrapped client's record."""
    if not isinstance(collection, RecordingCollection):
        collection.__class__ = recording_collection(type(collection))
    return collection


# Cursors


_TAILABLE: Final = 2
"""The bit of a query's flags."""


def _client_of(cursor: Any) -> Any:
    return cursor._collection.database.client


class _RecordingCursor:
    """What makes a cursor record: its members, for a class of one base, as objects that are made change theirs."""

    _antipode_seen: CursorRead | None = None
    _antipode_proved = EMPTY
    """What its first documents were to come after, and its later ones, which are as old, have come after (SHIM-48)."""

    def _antipode_read(self) -> DocumentRead | None:
        """The first documents are one read, as of now: those that come later may be as old, and are told to nobody."""
        seen, own = self._antipode_seen, cast("Any", self)
        if seen is None or own._explain:
            return None
        is_later = own._id is not None and not own._query_flags & _TAILABLE  # whose later documents are new ones
        past = self._antipode_proved if is_later else None
        session = own._session or bound_session(_client_of(self))
        return DocumentRead(seen.binding, _client_of(self), past, session, is_told=own._id is None)

    def _antipode_waited(self, read: DocumentRead) -> None:
        if cast("Any", self)._id is None:
            self._antipode_proved = read.proved

    def _antipode_came(self, read: DocumentRead, session: Any) -> None:
        seen = self._antipode_seen
        assert seen is not None
        own = cast("Any", self)
        read.server = seen.binding.server_at(_client_of(self), own.address)
        found: list[ReadValue] | None = None
        if read.is_noted:
            try:
                found = noting.of_cursor(seen, own)  # before our fields are taken out
            except Exception:
                read.fail(traceback.format_exc(limit=-2))
        concern: ReadConcern = own._collection.read_concern
        # In a transaction the collection's is not sent, and what the transaction's own promises holds when it has
        # committed with a majority: until then its values may be taken back.
        level = None if session is not None and session.in_transaction else concern.level
        seen.batch(read, own._data, own._collection.codec_options, session, level)
        read.returned(lambda: found or (), covers=() if read.covers is None else (read.covers,))


_CURSOR_MEMBERS: Final = {name: it for name, it in vars(_RecordingCursor).items() if name.startswith("_antipode")}


@cached
def _cursor_class(plain: Any) -> type[Any]:
    def _clone(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain._clone(self, *args, **kwargs)
        made._antipode_seen = self._antipode_seen
        return made

    members = {**_CURSOR_MEMBERS, "_clone": _clone, "__slots__": (), "__module__": plain.__module__}
    base: Any = type(plain.__name__, (plain,), members)
    if _is_async(plain):

        class AsyncRecordingCursor(base):  # type: ignore[misc]
            __slots__ = ()

            async def _send_message(self, operation: Any) -> None:
                read = self._antipode_read()
                if read is None:
                    await super()._send_message(operation)
                    return
                with read:
                    if read.waits:
                        await asyncio.to_thread(read.wait)
                    self._antipode_waited(read)
                    session = self._session  # a cursor that is at its end lets go of it
                    await super()._send_message(operation)
                    if read.asks:
                        await asyncio.to_thread(read.ask)
                    self._antipode_came(read, session)

        AsyncRecordingCursor.__name__ = plain.__name__
        return AsyncRecordingCursor

    class RecordingCursor(base):  # type: ignore[misc]
        __slots__ = ()

        def _send_message(self, operation: Any) -> None:
            read = self._antipode_read()
            if read is None:
                super()._send_message(operation)
                return
            with read:
                if read.waits:
                    read.wait()
                self._antipode_waited(read)
                session = self._session  # a cursor that is at its end lets go of it
                super()._send_message(operation)
                if read.asks:
                    read.ask()
                self._antipode_came(read, session)

    RecordingCursor.__name__ = plain.__name__
    return RecordingCursor


def as_recording_cursor(cursor: Any, *, is_raw: bool) -> None:
    """Make this cursor, which was made by its class of a recording collection, wait and say what it reads."""
    if hasattr(cursor, "_antipode_seen"):
        return
    at = cursor._collection._antipode_at
    projection = cursor._projection
    wide = not is_raw and not projection and can_strip(at.low.codec_options)
    if not wide:
        cursor._projection = hiding(projection)
    cursor.__class__ = _cursor_class(type(cursor))
    cursor._antipode_seen = CursorRead(at.binding, at.namespace, wide=wide, whole=wide, without_id=False, raw=is_raw)


# Databases


class RecordingDatabase:
    """What makes a database's collections record."""

    @property
    def _antipode(self) -> Binding:
        return _binding_of(cast("Any", self).client)

    def __getitem__(self, name: str) -> Any:
        return as_recording_collection(super().__getitem__(name))  # type: ignore[misc]

    def get_collection(self, *args: Any, **kwargs: Any) -> Any:
        return as_recording_collection(super().get_collection(*args, **kwargs))  # type: ignore[misc]

    def with_options(self, *args: Any, **kwargs: Any) -> Any:
        return as_recording_database(super().with_options(*args, **kwargs))  # type: ignore[misc]


_How = Callable[[Any, Given, Given, Callable[[Any], Any]], Steps[Any]]  # itself, arguments, more keywords, the call


def _wide_method(plain: type[Any], name: str, how: _How) -> Any:
    """A method of a database's or a client's that may write."""
    own = getattr(plain, name)
    signature = inspect.signature(own)

    def steps(self: Any, args: Any, kwargs: Given) -> Steps[Any]:
        try:
            given = dict(signature.bind(self, *args, **kwargs).arguments)
        except TypeError:
            return (yield own(self, *args, **kwargs))  # raises it, with its own words
        del given["self"]
        more = given.pop("kwargs", {})
        if given.get("session") is None and (bound := bound_session(getattr(self, "client", self))) is not None:
            given["session"] = bound
        return (yield from how(self, given, more, lambda used: own(self, **{**given, **more, "session": used})))

    if _is_async(plain):

        async def async_method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await run_async(steps(self, args, kwargs))

        return functools.wraps(own)(async_method)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(steps(self, args, kwargs))

    return functools.wraps(own)(method)


def _wide(client: Any, given: Given, concern: Any, call: Callable[[Any], Any], **options: Any) -> Steps[Any]:
    return operations.wide_write(_binding_of(client), client, concern, given.get("session"), call, **options)


def _read(self: Any, given: Given, call: Callable[[Any], Any], past: Lineage | None = None) -> Steps[Any]:
    client, session = getattr(self, "client", self), given.get("session")
    return operations.untold(_binding_of(client), client, lambda: call(session), session=session, past=past)


def _asked(self: Any, given: Given, call: Callable[[Any], Any], sent: Mapping[str, Any]) -> Steps[Any]:
    """A command that does not write."""
    if not commands.reads_data(sent):
        return (yield call(given.get("session")))
    return (yield from _read(self, given, call, past_of(_binding_of(self.client), sent)))


def _inquire(self: Any, given: Given, _more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    return _read(self, given, call)


def _command(self: Any, given: Given, more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    sent = commands.command_of(given, more)
    own = sent.get("writeConcern")  # no other goes with it; without, the server's default holds
    return _sent(self, given, sent, call, own if isinstance(own, Mapping) else {}, failure=failure_in)


def _cursor_command(self: Any, given: Given, more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    return _sent(self, given, commands.command_of(given, more), call, None)


def _sent(
    self: Any, given: Given, sent: Mapping[str, Any], call: Callable[[Any], Any], concern: Any, **options: Any
) -> Steps[Any]:
    if not commands.may_write(sent):
        return (yield from _asked(self, given, call, sent))
    parts = ONE if commands.is_of_one(sent) else SEVERAL
    steps = _wide(self.client, given, concern, call, parts=parts, **options)
    if commands.gives_data(sent):
        steps = given_back(_binding_of(self.client), given.get("session"), steps)
    return (yield from steps)


def _aggregate(self: Any, given: Given, more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    if not commands.writes_out(given["pipeline"]):
        return (yield from _read(self, given, call))
    steps = _wide(self.client, given, operations.concern_of(more, self), call)
    return (yield from given_back(_binding_of(self.client), given.get("session"), steps))


def _drop_collection(self: Any, given: Given, _more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    given["name_or_collection"] = _named(given["name_or_collection"])
    return _wide(self.client, given, operations.concern_of({}, self), call, parts=ONE)


def _drop_database(self: Any, given: Given, _more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    given["name_or_database"] = getattr(given["name_or_database"], "name", given["name_or_database"])
    return _wide(self, given, operations.concern_of({}, self), call)


def _client_bulk_write(self: Any, given: Given, _more: Given, call: Callable[[Any], Any]) -> Steps[Any]:
    return _wide(self, given, operations.concern_of(given, self), call, parts=BATCHES)


_OF_DATABASES: Final[dict[str, _How]] = {
    "command": _command,
    "cursor_command": _cursor_command,
    "aggregate": _aggregate,
    "drop_collection": _drop_collection,
    **dict.fromkeys(("list_collections", "list_collection_names", "validate_collection", "watch"), _inquire),
}
_OF_CLIENTS: Final[dict[str, _How]] = {
    "drop_database": _drop_database,
    "bulk_write": _client_bulk_write,
    **dict.fromkeys(("list_databases", "list_database_names", "watch"), _inquire),
}


@cached
def recording_database(plain: Any) -> type[Any]:
    """The class of a wrapped client's databases."""
    members: dict[str, Any] = {"__module__": plain.__module__}
    for name, how in _OF_DATABASES.items():
        members[name] = _wide_method(plain, name, how)
    if _is_async(plain):

        async def async_create(self: Any, *args: Any, **kwargs: Any) -> Any:
            return as_recording_collection(await plain.create_collection(self, *args, **kwargs))

        create: Any = async_create
    else:

        def create(self: Any, *args: Any, **kwargs: Any) -> Any:
            return as_recording_collection(plain.create_collection(self, *args, **kwargs))

    members["create_collection"] = functools.wraps(plain.create_collection)(create)
    return type(plain.__name__, (RecordingDatabase, plain), members)


def _named(collection: Any) -> Any:
    return collection.name if isinstance(collection, RecordingCollection) else collection  # type: ignore[attr-defined]


def as_recording_database(database: Any) -> Any:
    """A database of a wrapped client, which records."""
    if not isinstance(database, RecordingDatabase):
        database.__class__ = recording_database(type(database))
    return database


# Clients and sessions


class RecordingClient:
    """What makes a client record. It shares everything with the plain client that it holds."""

    __slots__ = ("_antipode", "_antipode_plain")
    _antipode: Binding
    _antipode_plain: Any
    __init__ = refuse_making

    def __getitem__(self, name: str) -> Any:
        return as_recording_database(super().__getitem__(name))  # type: ignore[misc]

    def get_database(self, *args: Any, **kwargs: Any) -> Any:
        return as_recording_database(super().get_database(*args, **kwargs))  # type: ignore[misc]

    def get_default_database(self, *args: Any, **kwargs: Any) -> Any:
        return as_recording_database(super().get_default_database(*args, **kwargs))  # type: ignore[misc]

    def start_session(self, *args: Any, **kwargs: Any) -> Any:
        session = super().start_session(*args, **kwargs)  # type: ignore[misc]
        session.__class__ = _recording_session(type(session))
        return session

    def __del__(self) -> None:
        """Whether it was closed is the plain client's matter."""


@cached
def recording_client(plain: Any) -> type[Any]:
    """The class of a wrapped client: a subclass of the client's own."""
    ways = {name: _wide_method(plain, name, how) for name, how in _OF_CLIENTS.items()}
    members = {"__module__": plain.__module__, "__slots__": (), **ways}
    return type(plain.__name__, (RecordingClient, plain), members)


@cached
def _recording_session(plain: Any) -> type[Any]:
    """The class of a wrapped client's sessions: their transactions' writes are recorded by the commit."""

    def start_transaction(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = plain.start_transaction(self, *args, **kwargs)
        self.__dict__.pop("_antipode_proved", None)  # of the transaction before
        for write in taken(self):  # of a commit whose outcome nobody knows
            write.outcome_unknown()
        return result

    members: dict[str, Any] = {"__module__": plain.__module__, "start_transaction": start_transaction}
    if _is_async(plain):

        async def async_commit(self: Any) -> None:
            await run_async(committed(_binding_of(self.client), self, lambda: plain.commit_transaction(self)))

        async def async_abort(self: Any) -> None:
            await run_async(aborted(self, lambda: plain.abort_transaction(self)))

        members |= {"commit_transaction": async_commit, "abort_transaction": async_abort}
    else:

        def commit(self: Any) -> None:
            run(committed(_binding_of(self.client), self, lambda: plain.commit_transaction(self)))

        def abort(self: Any) -> None:
            run(aborted(self, lambda: plain.abort_transaction(self)))

        members |= {"commit_transaction": commit, "abort_transaction": abort}
    return type(plain.__name__, (plain,), members)
