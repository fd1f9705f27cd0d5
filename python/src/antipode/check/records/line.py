"""One line of a dry-run record, decoded and held against its schema at once (REC-1, REC-3 to REC-7, REC-11)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

FORM: Final = 1
_LONGEST: Final = 4096
_LATEST: Final = 2**40
"""Seconds since 1970 beyond it are nobody's."""
_MOST: Final = 2**32
"""Counts of a minute beyond it are nobody's, and sums of them would overflow."""

Text: TypeAlias = Annotated[str, Meta(max_length=_LONGEST)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=_LONGEST)]
Site: TypeAlias = Annotated[str, Meta(pattern=r"^(.+:[1-9][0-9]*|other)$", max_length=_LONGEST)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=_LATEST)]
Late: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
"""Seconds for which something was followed: days, at most."""
Verdict: TypeAlias = Literal["visible", "not_yet", "timed_out", "unproven", "elsewhere"]


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a lineage came from."""

    scope: Literal["request", "message", "task", "detached", "root"]
    opened_by: Text = ""
    store: Text = ""


class Look(msgspec.Struct, gc=False):
    """What a barrier saw of one store."""

    store: Text
    verdict: Verdict
    store_kind: Text = ""
    servers: list[Text] | None = None
    visible_after: Late | None = None


class Count(msgspec.Struct, gc=False):
    """One number of a summary."""

    what: Name
    count: Annotated[int, Meta(ge=0, le=_MOST)]
    site: Site | Literal[""] = ""
    store: Text = ""


class Record(msgspec.Struct, kw_only=True, tag_field="kind", gc=False):
    """The head that all kinds have (REC-3)."""

    record: Literal[1]
    time: Seconds
    service: Text
    region: Text
    process: Text
    trace_id: Text = ""


class Finding(Record, kw_only=True):
    """What may stand for several: those of a minute that were held back."""

    count: Annotated[int, Meta(ge=1, le=_MOST)] = 1


class Barrier(Record, kw_only=True, tag="barrier"):
    """A barrier's call (REC-5)."""

    site: Site
    origin: Origin
    reach: Text
    satisfied: bool
    complete: bool
    stores: list[Look]


class Behind(Record, kw_only=True, tag="behind"):
    """A read from a server that had not reached the lineage's position (REC-6)."""

    site: Site
    origin: Origin
    store: Name
    store_kind: Text
    server: Text
    visible_after: Late | None
    barrier: Site | Literal[""] = ""


class Stale(Record, kw_only=True, tag="stale"):
    """A read that is known to have returned an older value (REC-6)."""

    site: Site
    origin: Origin
    store: Name
    store_kind: Text
    server: Text
    visible_after: Late | None
    confirmed: Literal["version", "repeat"]
    barrier: Site | Literal[""] = ""


class PublishedBeforeCommit(Finding, kw_only=True, tag="published_before_commit"):
    """A lineage left before the commit of its own task's write."""

    site: Site
    store: Name
    target: Text
    written_at: Site | Literal[""] = ""
    origin: Origin | None = None


class ConcurrentWrite(Finding, kw_only=True, tag="concurrent_write"):
    """A lineage left while another task's write was pending: no violation."""

    site: Site
    store: Name
    target: Text
    written_at: Site | Literal[""] = ""
    origin: Origin | None = None


class Orphan(Finding, kw_only=True, tag="orphan"):
    """A write outside any scope."""

    site: Site
    store: Name
    reason: Text = ""


class LateWrite(Finding, kw_only=True, tag="late_write"):
    """A write in a scope that had ended, or after the response's header had left."""

    site: Site
    store: Name
    reason: Text = ""


class Vacuous(Finding, kw_only=True, tag="vacuous"):
    """A barrier none of whose stores is registered here."""

    site: Site
    origin: Origin
    lineage_stores: list[Text]
    registered: list[Text]


class Incomplete(Finding, kw_only=True, tag="incomplete"):
    """A lineage from which something is missing."""

    origin: Origin
    reason: Name
    site: Site | Literal[""] = ""
    store: Text = ""


class PassedOn(Record, kw_only=True, tag="passed_on"):
    """A lineage that a message or request had brought left with a call: for following a trace to where it began."""

    site: Site
    origin: Origin
    target: Text


class Summary(Record, kw_only=True, tag="summary"):
    """Counts since the last one."""

    since: Seconds
    counts: list[Count]
    sample: Annotated[float, Meta(ge=0, le=1)] | None = None


Line: TypeAlias = (
    Barrier
    | Behind
    | Stale
    | PublishedBeforeCommit
    | ConcurrentWrite
    | Orphan
    | LateWrite
    | Vacuous
    | Incomplete
    | PassedOn
    | Summary
)
KINDS: Final = frozenset(
    str(each.__struct_config__.tag)
    for each in (
        Barrier,
        Behind,
        Stale,
        PublishedBeforeCommit,
        ConcurrentWrite,
        Orphan,
        LateWrite,
        Vacuous,
        Incomplete,
        PassedOn,
        Summary,
    )
)

decode: Final = msgspec.json.Decoder[Line](Line).decode
"""A line of octets as a record.

Raises:
    msgspec.MsgspecError: it is none, with the field.
    UnicodeDecodeError, RecursionError: it cannot be taken apart.
"""


def convert(fields: dict[str, Any]) -> Line:
    """A record from fields that came by another form; numbers may be spelled as texts.

    Raises:
        msgspec.ValidationError: they make none.
    """
    made: Line = msgspec.convert(fields, Line, strict=False)
    return made
