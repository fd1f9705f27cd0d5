"""The S3 shim: judges versions of objects at a bucket, by HEAD (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antipode import Lineage, Ordered, Store
from antipode.shim import Capabilities, HybridClock, Server, Shim, Visibility
from botocore.exceptions import BotoCoreError

from antipode_s3 import doctor
from antipode_s3.probe import Facts
from antipode_s3.session import POLL_S, Session
from antipode_s3.targets import SCHEMES, target_of


class S3Shim(Shim):
    """What knows S3. Versions: of objects, from a hybrid logical clock in their metadata; of deletes, VersionIds."""

    kind: ClassVar[str] = "s3"
    notes_reads: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(versions="object", tombstones=True, rest=("native",))
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, BotoCoreError)
    own_pace: ClassVar[float] = POLL_S
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    """URLs of these schemes are ours (`antipode doctor`)."""
    preparation_options: ClassVar[Mapping[str, str]] = doctor.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._known: dict[str, tuple[Facts, float]] = {}
        self.clock = HybridClock()
        """Gives this process's writes their versions. Its whole node is drawn by chance: any number of processes of
        any region may write one key, and the store settles nothing among them."""

    def next_counter(self, key: bytes, lineage: Lineage) -> tuple[int, bool]:
        """The version of a write of this key that depends on this lineage; False beside it where it cannot be
        greater than one that it depends on (SHIM-26, SHIM-28)."""
        refused = -1
        if self.store.name in lineage.stores:
            octets = self.store.write_id(key, Ordered("", 0)).key
            for write_id in lineage.of_store(self.store.name):
                version = write_id.version
                if not isinstance(version, Ordered):
                    continue
                if not self.clock.observe(version.counter) and write_id.key == octets:
                    refused = max(refused, version.counter)
        if refused < 0:
            return self.clock.next(), True
        above = self.clock.above(refused)
        return (self.clock.next(), False) if above is None else (above, True)

    def visible(self, ids: Sequence[Any], server: Server) -> Sequence[Visibility]:
        return self._session(server).answers(ids)

    def close(self, server: Server) -> None:
        session, server.session = server.session, None
        if isinstance(session, Session):
            session.close()

    def address(self, target: Any) -> str:
        return target_of(target).address

    # What the command line asks for

    epochs = staticmethod(doctor.epochs)
    settle = staticmethod(doctor.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(doctor.preparations)

    def _session(self, server: Server) -> Session:
        session = server.session
        if not isinstance(session, Session):
            session = server.session = Session(
                target_of(server.target), server.ask_timeout, self.store.name, self._known
            )
        return session
