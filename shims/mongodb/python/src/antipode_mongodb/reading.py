"""Reads: what was asked for is what the plain client gives, and the versions and lineages beside it are ours."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import bson
from antipode import EMPTY, Lineage, Mode, Opaque, UnfitStoreError, WriteId
from antipode.shim import Read, unproven
from antipode.shim.both_ways import BlockingCall, Steps
from antipode.shim.objects import content_mark
from bson.codec_options import CodecOptions
from bson.errors import BSONError

from antipode_mongodb.binding import Binding
from antipode_mongodb.fields import OURS, identity_of, stripped, texts_of
from antipode_mongodb.flavour import counter_of
from antipode_mongodb.keys import key_octets

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


class DocumentRead(Read):
    """One read of documents."""

    __slots__ = ("_epoch", "_is_sure", "_native", "_past", "_session", "binding", "covers", "proved", "told")

    def __init__(
        self,
        binding: Binding,
        client: Any = None,
        past: Lineage | None = None,
        session: Any = None,
        *,
        is_told: bool = False,
    ) -> None:
        """client: the one that reads; where it is not given, nothing that is read is covered.

        past: of data that was taken before, and is fetched now: what was waited for then (SHIM-48). session: the one
        in which it reads, which may show a moment that is past, or takes it now.
        """
        binding.refresh()
        super().__init__(binding, binding.server, is_told=is_told)
        self.binding = binding
        self._past = moment_of(session) if past is None else past
        self._native = client
        self._epoch = binding.flavour.epoch
        self._is_sure = True
        self._session = session if self._past is None else None
        self.proved: Lineage = EMPTY
        """What it has waited for."""
        self.told = False
        """Return whether it is known what a document depends on that a write has given."""
        self.covers: WriteId | None = None
        """The position that goes into lineages with the values."""
        if self._session is not None:
            self._session.__dict__["_antipode_proved"] = EMPTY

    @property
    def asks(self) -> bool:
        """Whether it is not known what the server is, which tells what covers its values."""
        own = self.binding
        return self.collects and own.records and self._native is not None and not own.known(self._native)

    @property
    def waits(self) -> bool:
        """Whether there may be something that the read has to come after."""
        return self.asks or (self.after is not EMPTY and self.binding.store.mode is Mode.ENFORCE)

    def wait(self) -> None:
        """Wait for what the read has to come after (wait on read, `reading(after=…)`). Blocks."""
        own = self.binding
        if self.asks:
            self.ask()
            self._epoch = own.flavour.epoch
        self.proved = Lineage(self.required())
        if self._session is not None:
            self._session.__dict__["_antipode_proved"] = self.proved
        if self._past is None:
            super().wait()
        elif not self.proved <= self._past:
            self.refuse(unproven(_PAST), own.server.address, is_past=True)

    def ask(self) -> None:
        """Ask what the server is, before the read and where a new connection was made for it. Blocks."""
        self._is_sure = False
        with suppress(UnfitStoreError):  # the read is the application's own
            self._is_sure = self.binding.learn(self._native)

    def waiting(self) -> Steps[None]:
        """Wait, as a step."""
        if self.waits:
            yield BlockingCall(self.wait)

    def saw_document(self, namespace: str, document: Any, codec: CodecOptions[Any], *, whole: bool) -> None:
        """Add what a document depends on; `whole`: it has every field that it has at the server."""
        store, version = self.binding.store, identity_of(document)
        self.saw(lineage=self.binding.lineage_of(texts_of(document)))
        if self.binding.flavour.positions or self.binding.unknown:
            return  # it is the server's answer that is covered, or not (`answered`)
        if "_id" not in document or (version is None and not whole):
            self.mark()
            return
        covers = content_version(document, codec) if version is None else version
        if covers is None:
            self.mark()
        else:
            self.saw(store.write_id(key_octets(namespace, document["_id"], codec), covers))

    def gave(self, namespace: str, document: Any, codec: CodecOptions[Any], *, whole: bool) -> None:
        """Add what a document depends on that a write has given, with our fields in it; None: it found none."""
        self.told = True
        if document is not None and self.collects:
            self.saw_document(namespace, document, codec, whole=whole)

    def answered(self, session: Any, level: str | None) -> None:
        """Cover what was read by the server's time, on a replica set, where no election takes it back."""
        binding = self.binding
        if binding.unknown:
            self.mark()
        if not binding.flavour.positions:
            return
        same = self._is_sure and binding.flavour.epoch == self._epoch
        time = session.operation_time if session is not None and same else None
        if time is None or level not in _LASTING:
            self.mark()
        elif self.collects:
            self.covers = WriteId.position(binding.store.name, binding.flavour.epoch, counter_of(time))


def content_version(document: Mapping[str, Any], codec: CodecOptions[Any] | None = None) -> Opaque | None:
    """The version of a whole document that has none: a digest of what it holds, which covers that value (SHIM-13)."""
    kept = {name: value for name, value in document.items() if name not in OURS}
    try:
        octets = bson.encode(kept, codec_options=codec or CodecOptions())
    except (BSONError, TypeError, ValueError, OverflowError):
        return None
    return content_mark(octets)


class CursorRead:
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

    def batch(
        self, read: DocumentRead, documents: Any, codec: CodecOptions[Any], session: Any, level: str | None
    ) -> None:
        """Take what documents depend on that have come, and our fields out of them."""
        if read.collects and not self.wide:
            read.mark()
        elif read.collects:
            for document in documents:
                read.saw_document(self.namespace, document, codec, whole=self.whole)
            read.answered(session, level)
        if self.wide:
            for document in documents:
                stripped(document)
                if self.without_id:
                    document.pop("_id", None)


def can_strip(codec: CodecOptions[Any]) -> bool:
    """Whether our fields can be taken out of documents as the client gives them."""
    kind = codec.document_class
    return isinstance(kind, type) and issubclass(kind, MutableMapping)
