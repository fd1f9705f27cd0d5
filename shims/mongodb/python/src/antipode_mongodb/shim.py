"""The MongoDB shim: reads versions of documents, or a replica set's committed time, at one server (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar, Final

from antipode import Ordered, Store, UnfitStoreError, WriteId
from antipode.shim import Capabilities, HybridClock, Server, Shim, UnprovenKind, Visibility, not_yet, unproven
from pymongo.errors import AutoReconnect, ConnectionFailure, OperationFailure

from antipode_mongodb import doctor, judging, marks, preparing
from antipode_mongodb.flavour import Flavour, examine
from antipode_mongodb.targets import SCHEMES, connections_of, target_of

_numbers: Final = count()
REPLACED: Final = "the connection was replaced, and may lead to another server"


class MongoShim(Shim):
    """What knows MongoDB.

    On a replica set writes have positions, and the server itself waits for its committed time. Elsewhere documents
    have versions of their own, from a hybrid logical clock.
    """

    kind: ClassVar[str] = "mongodb"
    capabilities = Capabilities(versions="object", tombstones=True, rest=("field",))
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, ConnectionFailure)
    notes_reads: ClassVar[bool] = True
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    """URLs of these schemes are ours (`antipode doctor`, `antipode init`)."""
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.clock = HybridClock()
        """The clock of this process's writes; one for all its clients, and all of them write to one primary."""

    # Answers

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        return self._answers(ids, server, 0)

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """The replica set's own wait: a majority read after the first of these times."""
        return self._answers(ids, server, round(timeout * 1000))

    def _answers(self, ids: Sequence[WriteId], server: Server, wait_ms: int) -> list[Visibility]:
        session = self._session(server)
        session.asked += 1
        if not ids:
            session.client.admin.command("ping")
            return []
        answers: list[Visibility] = [not_yet("not asked", unanswered=True)] * len(ids)
        of_documents = [index for index, each in enumerate(ids) if not each.is_position]
        of_times = [index for index, each in enumerate(ids) if each.is_position]
        if of_documents:
            told = judging.documents(session.client, [ids[index] for index in of_documents])
            for index, answer in zip(of_documents, told, strict=True):
                answers[index] = answer
        if of_times:
            for index, answer in zip(of_times, self._times(ids, of_times, server, session, wait_ms), strict=True):
                answers[index] = answer
        return answers

    def _times(
        self,
        ids: Sequence[WriteId],
        indexes: Sequence[int],
        server: Server,
        session: _Session,
        wait_ms: int,
        *,
        again: bool = True,
    ) -> list[Visibility]:
        flavour = session.flavour(self.store.name)
        if not flavour.positions:
            why = unproven(f"{flavour.product} gives no positions: {flavour.why_none}", UnprovenKind.UNFIT)
            return [why] * len(indexes)
        if not self.capabilities.blocking_wait:
            self.__dict__["capabilities"] = replace(self.capabilities, blocking_wait=True)  # of this store alone
        entries = [version for index in indexes if isinstance(version := ids[index].version, Ordered)]
        try:
            answers, at = judging.positions(session.client, flavour, entries, wait_ms)
        except OperationFailure as error:
            return [judging.refused(error)] * len(indexes)
        if not session.is_same:
            if again:
                return self._times(ids, indexes, server, session, wait_ms, again=False)
            raise AutoReconnect(REPLACED)
        if at is not None:
            server.applied(session.instance, flavour.epoch, {flavour.epoch: at})
        return answers

    def _session(self, server: Server) -> _Session:
        session = server.session
        if not isinstance(session, _Session):
            session = server.session = _Session(server)
        return session

    def close(self, server: Server) -> None:
        session, server.session = server.session, None
        if isinstance(session, _Session):
            session.client.close()

    def address(self, target: Any) -> str:
        return target_of(target).address

    # What the command line asks for

    epochs = staticmethod(doctor.epochs)
    settle = staticmethod(marks.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)


class _Session:
    """The engine's own client of one server."""

    def __init__(self, server: Server) -> None:
        self._number = next(_numbers)
        self.client = target_of(server.target).connect(server.ask_timeout)
        self._flavour: Flavour | None = None
        self._connections: tuple[int, ...] = ()
        """The connections that had been made when the server was asked what it is."""
        self.asked = 0
        """How often the engine has asked by it."""

    def flavour(self, store: str) -> Flavour:
        """What the server is, as long as this connection to it lasts."""
        if self._flavour is None or not self.is_same:
            self.client.admin.command("ping")  # by a connection that the questions have in common
            self._connections = connections_of(self.client)
            try:
                self._flavour = examine(self.client, store)
            except UnfitStoreError as error:
                self._flavour = Flavour("MongoDB", why_none=str(error))
            if not self.is_same:
                raise AutoReconnect(REPLACED)
        return self._flavour

    @property
    def instance(self) -> str:
        """What the proofs are of: they do not outlive the connection (BAR-33)."""
        return f"{self._number} {self._connections}"

    @property
    def is_same(self) -> bool:
        """Whether the client has made no connection, without a word, since the server was asked what it is."""
        return connections_of(self.client) == self._connections
