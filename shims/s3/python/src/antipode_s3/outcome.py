"""One write of an object: its version, what rests beside it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from antipode import EMPTY, Lineage, Ordered, current_scope
from antipode.shim import Write, lineage_unscoped
from antipode.shim.aws import attempts_before

from antipode_s3 import metadata
from antipode_s3.binding import Binding
from antipode_s3.chains import alone

NO_ROOM: Final = (
    "the object's own metadata leaves no room for a version: S3 takes 2 KB an object, names and values together"
)


def outgoing(binding: Binding) -> Lineage:
    """Return what may rest beside a value that is written now."""
    scope = current_scope()
    if scope is not None:
        return scope.outgoing()
    return lineage_unscoped(binding.options.lineage_out) if binding.rests else EMPTY


def key_of(params: Mapping[str, Any]) -> bytes:
    """The canonical key of the object that an operation names: its key's octets (SHIM-21)."""
    return octets(params.get("Key", ""))


def octets(key: Any) -> bytes:
    """A key's octets."""
    return str(key).encode("utf-8", "surrogateescape")


class PendingVersion:
    """A version that is about to be made: its counter, and the metadata that carries it."""

    def __init__(
        self,
        binding: Binding,
        key: bytes,
        given: Mapping[str, Any] | None,
        *,
        beside: Lineage | None = None,
        apart: bool = False,
    ) -> None:
        """apart: other writes of the key may begin and end while this one is under way, however long."""
        lineage = outgoing(binding) if beside is None else beside
        scope = current_scope()
        recorded = EMPTY if scope is None else scope.recorded_lineage
        self._turn = alone() if apart else binding.chains.turn(key)  # before the counter: they grow in a chain
        try:
            counter, self._greater = binding.next_counter(key, recorded)
            if counter > binding.shim.clock.next():  # what the chain gets next would be lesser
                self._turn.end(certain=True)
                self._turn = alone()
            self.version = Ordered(self._turn.name, counter)
            self.metadata = metadata.with_rest(
                given,
                self.version,
                lineage if binding.rests else EMPTY,
                binding.store.name,
                binding.options.lineage_out,
            )
        except BaseException:  # the application's metadata are none, say: nothing was sent
            self._turn.end(certain=True)
            raise

    def record(self, write: Write, answer: Mapping[str, Any]) -> None:
        """The version was made."""
        # An attempt before this one, whose answer was lost, may still be done.
        self._turn.end(certain=not attempts_before(answer))
        if self.metadata is None:
            write.record_incomplete("budget", NO_ROOM)
        elif not self._greater:
            write.record_incomplete("implausible", "no version is left above one that it depends on")
        else:
            write.record(self.version)

    def failed(self, write: Write, sent: bool) -> None:
        """The call ended with an error: the version was not made, or with `sent` nobody knows."""
        self._turn.end(certain=not sent)
        failed(write, sent)


def failed(write: Write, sent: bool) -> None:
    """The call ended with an error: the write did not happen, or with `sent` nobody knows."""
    if sent:
        write.outcome_unknown()
    else:
        write.abandon()
