"""Reads: what was asked for is what the plain client gives, and the versions and lineages beside it are ours."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import bson
from antipode.errors import UnfitStoreError
from antipode.followed_reads import FollowedRead, followed_read
from antipode.lineage import EMPTY, Lineage
from antipode.reading import Reading, current_reading
from antipode.scope import current_scope
from antipode.settings import Mode
from antipode.verdict import unproven
from antipode.wait_on_read import lineage_before, required_ids, wait_first, waited_in_vain
from antipode.writeid import Opaque, WriteId
from bson.codec_options import CodecOptions
from bson.errors import BSONError

from antipode_mongodb.binding import Binding
from antipode_mongodb.fields import OURS, identity_of, stripped, texts_of
from antipode_mongodb.flavour import counter_of
from antipode_mongodb.keys import key_octets
from antipode_mongodb.steps import Blocking, Steps

_LASTING = ("majority", "linearizable", "snapshot")
"""Read concerns whose values no election takes back."""
_PAST = (
    "what it fetches is of a moment that is past, and the read depends on more than was waited for then: open the "
    "cursor anew, or fetch all of it before; begin another transaction or snapshot"
)


def moment_of(session: Any) -> Lineage | None:
    """Return what was proved when a session's transaction or snapshot took its moment; None where no moment is taken.

    Of a moment that a write has taken, or nobody saw being taken, nothing was proved.
    """
    if session is None:
        return None
    if session.in_transaction:
        is_taken = not session._starting_transaction
    else:
        is_taken = bool(session.options.snapshot) and session._snapshot_time is not None
    return session.__dict__.get("_antipode_proved", EMPTY) if is_taken else None


class Read:
    """One read: who wants to know what its values depend on."""

    def __init__(self, binding: Binding, client: Any = None, past: Lineage | None = None, session: Any = None) -> None:
        """client: the one that reads; where it is not given, nothing that is read is covered.

        past: of data that was taken before, and is fetched now: what was waited for then (SHIM-48). session: the one
        in which it reads, which may show a moment that is past, or takes it now.
        """
        self.binding = binding
        self._past = moment_of(session) if past is None else past
        self._client = client
        self._epoch = binding.flavour.epoch
        self._sure = True
        self._followed: FollowedRead | None = None
        self._reading = current_reading() if binding.records else None
        self._scope = current_scope() if binding.records else None
        self._merged = Reading() if binding.records and binding.merges and self._scope is not None else None
        self.told = False
        """Return whether it is known what a document depends on that a write has given."""
        self.covers: WriteId | None = None
        """The position that goes into lineages with the values."""
        if session is not None and self._past is None:
            session.__dict__["_antipode_proved"] = self.wanted

    @property
    def collects(self) -> bool:
        """Whether the versions and lineages are to be had beside the values."""
        return self._reading is not None or self._merged is not None

    @property
    def asks(self) -> bool:
        """Whether it is not known what the server is, which tells what covers its values."""
        return self.collects and self._client is not None and not self.binding.known(self._client)

    @property
    def waits(self) -> bool:
        """Whether there may be something that the read has to come after."""
        if self.asks:
            return True
        after = self._reading is not None and self._reading.after is not None
        waits = after or (self.binding.waits and self._scope is not None)
        return self.binding.records and waits and not self.binding.store.dry_run

    def wait(self) -> None:
        """Waits for what the read has to come after (wait on read, `reading(after=…)`). Blocks."""
        own = self.binding
        if self.asks:
            self.ask()
            self._epoch = own.flavour.epoch
        if self._past is None:
            wait_first(own.server, own.store.timeout, self._reading, self._scope, waits=own.waits)
        elif own.store.mode is Mode.ENFORCE and not self.wanted <= self._past:
            words = f"{own.store.name} at {own.server.address}: {_PAST}"
            waited_in_vain(own.store.name, words, 0.0, unproven(_PAST), is_past=True)

    @property
    def wanted(self) -> Lineage:
        """What the read has to come after."""
        lineage = lineage_before(self._reading, self._scope, waits=self.binding.waits)
        return Lineage(required_ids(self.binding.store, lineage))

    def follow(self) -> None:
        """In dry-run: what follows this read, where it is in the sample."""
        self._followed = followed_read(self.binding.store, self._reading) if self.binding.store.dry_run else None

    def came(self, client: Any, address: tuple[str, int | None] | None = None) -> None:
        """What was read by a client has come; `address`: of the server, as far as that is known."""
        server = None if self._followed is None else self.binding.server_at(client, address)
        if server is not None and self._followed is not None:
            self._followed.over(server)

    def ask(self) -> None:
        """Asks what the server is, before the read and where a new connection was made for it. Blocks."""
        self._sure = False
        with suppress(UnfitStoreError):  # the read is the application's own
            self._sure = self.binding.learn(self._client)

    def waiting(self) -> Steps[None]:
        """The same as a step."""
        if self.waits:
            yield Blocking(self.wait)

    def _told(self) -> list[Reading]:
        return [reading for reading in (self._reading, self._merged) if reading is not None]

    def unknown(self) -> None:
        """A value was read of which nobody can tell what it depends on."""
        for reading in self._told():
            reading.marked(self.binding.store.name)
        self.finish()

    def saw(self, namespace: str, document: Any, codec: CodecOptions[Any], *, whole: bool) -> None:
        """A document was read; `whole`: with every field that it has."""
        store, version = self.binding.store, identity_of(document)
        beside = self.binding.lineage_of(texts_of(document))
        for reading in self._told():
            reading.saw(lineage=beside)
            if self.binding.flavour.positions or self.binding.unknown:
                continue  # it is the server's answer that is covered, or not (`answered`)
            if "_id" not in document or (version is None and not whole):
                reading.marked(store.name)
                continue
            covers = content_version(document, codec) if version is None else version
            if covers is None:
                reading.marked(store.name)
            else:
                reading.saw(store.write_id(key_octets(namespace, document["_id"], codec), covers))

    def gave(self, namespace: str, document: Any, codec: CodecOptions[Any], *, whole: bool) -> None:
        """A write has given this document, with our fields in it, or found none."""
        self.told = True
        if document is not None and self.collects:
            self.saw(namespace, document, codec, whole=whole)
            self.finish()

    def answered(self, session: Any, level: str | None) -> None:
        """A server has answered: on a replica set its time covers what was read, where no election takes that back."""
        binding = self.binding
        if binding.unknown:
            for reading in self._told():
                reading.marked(binding.store.name)
        if not binding.flavour.positions:
            return
        same = self._sure and binding.flavour.epoch == self._epoch
        time = session.operation_time if session is not None and same else None
        for reading in self._told():
            if time is None or level not in _LASTING:
                reading.marked(binding.store.name)
            else:
                self.covers = WriteId.position(binding.store.name, binding.flavour.epoch, counter_of(time))
                reading.saw(self.covers)

    def finish(self) -> None:
        """Automatic merging."""
        if self._merged is not None and self._scope is not None:
            self._scope.transfer_read(self._merged.lineage)


def content_version(document: Mapping[str, Any], codec: CodecOptions[Any] | None = None) -> Opaque | None:
    """The version of a whole document that has none: a digest of what it holds, which covers that value (SHIM-13)."""
    kept = {name: value for name, value in document.items() if name not in OURS}
    try:
        octets = bson.encode(kept, codec_options=codec or CodecOptions())
    except (BSONError, TypeError, ValueError, OverflowError):
        return None
    return Opaque("h" + hashlib.sha256(octets).hexdigest()[:32])


def is_content(version: Opaque) -> bool:
    """Whether a version is a digest of what a document holds."""
    return len(version.mark) == 33 and version.mark.startswith("h")


class Seen:
    """What a cursor knows of its read, from `find` on."""

    __slots__ = ("binding", "namespace", "raw", "whole", "wide", "without_id")

    def __init__(
        self, binding: Binding, namespace: str, *, wide: bool, whole: bool, without_id: bool, raw: bool = False
    ) -> None:
        self.binding = binding
        self.namespace = namespace
        self.wide = wide
        """Whether our fields were asked for, to be seen and taken out of what the application gets."""
        self.whole = whole
        self.without_id = without_id
        self.raw = raw
        """Whether what comes is octets, not documents."""

    def batch(self, read: Read, documents: Any, codec: CodecOptions[Any], session: Any, level: str | None) -> None:
        """Documents have come."""
        if read.collects and not self.wide:
            read.unknown()
        elif read.collects:
            for document in documents:
                read.saw(self.namespace, document, codec, whole=self.whole)
            read.answered(session, level)
            read.finish()
        if self.wide:
            for document in documents:
                stripped(document)
                if self.without_id:
                    document.pop("_id", None)


def can_strip(codec: CodecOptions[Any]) -> bool:
    """Whether our fields can be taken out of documents as the client gives them."""
    kind = codec.document_class
    return isinstance(kind, type) and issubclass(kind, MutableMapping)
