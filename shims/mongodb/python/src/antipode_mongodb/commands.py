"""Commands of a database, by their words: what may write, what gives data (spec SHIM-43, SHIM-44)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode.shim.both_ways import Steps

from antipode_mongodb.binding import Binding
from antipode_mongodb.reading import DocumentRead

READING_COMMANDS: Final = frozenset(
    [
        "aggregate",
        "buildinfo",
        "collstats",
        "connectionstatus",
        "count",
        "currentop",
        "dbstats",
        "distinct",
        "explain",
        "find",
        "getmore",
        "hello",
        "hostinfo",
        "ismaster",
        "isself",
        "killcursors",
        "listcollections",
        "listcommands",
        "listdatabases",
        "listindexes",
        "ping",
        "replsetgetconfig",
        "replsetgetstatus",
        "serverstatus",
        "top",
        "validate",
        "whatsmyuri",
        "getparameter",
        "dbhash",
        "datasize",
        "endsessions",
        "refreshsessions",
        "getdefaultrwconcern",
        "saslstart",
        "saslcontinue",
        "authenticate",
        "logout",
        "getlog",
    ]
)
"""Commands that change no data; whatever else `command` sends may."""
_DATA_COMMANDS: Final = frozenset(
    [
        *("aggregate", "collstats", "count", "datasize", "dbhash", "dbstats", "distinct", "explain", "find", "getmore"),
        *("listcollections", "listdatabases", "listindexes", "validate"),
    ]
)
_GIVING_NOTHING: Final = frozenset(
    [
        *("insert", "update", "delete", "bulkwrite", "create", "createindexes", "drop", "dropindexes", "dropdatabase"),
        *("collmod", "renamecollection", "committransaction", "aborttransaction", "createuser", "grantrolestouser"),
    ]
)
"""Commands that may write, and answer with counts and names alone."""


def command_of(given: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document that a call of `command` sends: its arguments, and the others that go into it."""
    command = given["command"]
    if isinstance(command, Mapping):
        return {**command, **more}
    return {str(command): given.get("value", 1), **more}


def may_write(command: Mapping[str, Any]) -> bool:
    """Return whether a database's command may change data."""
    name = str(next(iter(command), "")).lower()
    return writes_out(command.get("pipeline")) if name == "aggregate" else name not in READING_COMMANDS


def reads_data(command: Mapping[str, Any]) -> bool:
    """Return whether a command that does not write answers with what writes have left."""
    return str(next(iter(command), "")).lower() in _DATA_COMMANDS


def gives_data(command: Mapping[str, Any]) -> bool:
    """Whether a command that may write may answer with what writes have left, or copy it; what is not known may."""
    return str(next(iter(command), "")).lower() not in _GIVING_NOTHING


def is_of_one(command: Mapping[str, Any]) -> bool:
    """Whether a command that writes is of one document, or happens as a whole: what is refused has left nothing."""
    name = str(next(iter(command), "")).lower()
    statements = command.get({"insert": "documents", "update": "updates", "delete": "deletes"}.get(name, ""))
    if statements is None:
        return name in ("findandmodify", "create", "createindexes", "drop", "dropindexes")
    if not isinstance(statements, Sequence) or len(statements) != 1:
        return False
    [only] = statements
    if name == "insert":
        return True
    return isinstance(only, Mapping) and (only.get("limit") == 1 if name == "delete" else not only.get("multi"))


def writes_out(pipeline: Any) -> bool:
    """Return whether a pipeline writes."""
    stages = pipeline if isinstance(pipeline, Sequence) else []
    return any(next(iter(stage), "") in ("$out", "$merge") for stage in stages if isinstance(stage, Mapping))


def given_back(binding: Binding, session: Any, steps: Steps[Any]) -> Steps[Any]:
    """A write that may answer with data, or copy them: it waits as a read does."""
    with DocumentRead(binding, session=session) as read:
        yield from read.waiting()
        result = yield from steps
        read.mark()
        return result
