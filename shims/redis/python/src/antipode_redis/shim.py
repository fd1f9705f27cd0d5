"""The Redis shim: judges positions at a server, and hears of changes by client-side tracking (spec SHIM, EPOCH)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from antipode import Ordered, Store, WriteId
from antipode.shim import BranchTable, Capabilities, Server, Shim, UnprovenKind, Visibility, unproven
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from antipode_redis import branch_rows, doctor, marks, preparing
from antipode_redis.judging import judge
from antipode_redis.marker import Marker
from antipode_redis.probe import CLUSTER, grant
from antipode_redis.resp import ServerError
from antipode_redis.session import Session
from antipode_redis.targets import SCHEMES, target_of


class RedisShim(Shim, BranchTable):
    """What knows Redis. Positions: epoch = first 16 hex digits of the replication id, counter = its offset."""

    kind: ClassVar[str] = "redis"
    notes_reads: ClassVar[bool] = True
    renews: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(
        versions="position", push=True, tombstones=True, rest=("field", "envelope"), marks="in_band"
    )
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    """URLs of these schemes are ours (`antipode epoch`, `antipode doctor`, `antipode init`)."""
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.markers: dict[str, Marker] = {}
        """By server address: the threads that write marks."""
        self._rows = branch_rows.row_writer(store)

    @property
    def marks_key(self) -> str:
        """The key of the hash of marks."""
        return str(self.store.options.extra.get("marks_key", marks.DEFAULT_KEY))

    def forget(self) -> None:
        for each in self.markers.values():
            each.stop()
        self._rows.end()

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        session = self._session(server)
        epochs = sorted({w.version.epoch for w in ids if isinstance(w.version, Ordered) and not w.key})
        try:
            seen = session.look(epochs, self.marks_key)
        except ServerError as error:
            if error.code != "NOPERM":
                raise
            words = f"its user may not ask where it is ({error}). {grant(self.marks_key)}"
            refused = unproven(words, UnprovenKind.RIGHT)
            return [refused] * len(ids)
        if session.hello.get("mode") == "cluster":
            return [unproven(f"it {CLUSTER}", UnprovenKind.UNFIT)] * len(ids)
        server.applied(session.run_id, seen.replication.epoch, seen.proved())
        return [judge(write_id, seen) for write_id in ids]

    def check_branches(self) -> None:
        self._rows.each(lambda session, server: branch_rows.check(session, server, self.store.name))

    def find_branches(self, ids: Sequence[str], server: Server) -> Mapping[str, str]:
        return branch_rows.find(self._session(server), ids)

    def close_branch(self, branch: str, text: str, life: float) -> bool:
        return self._rows.run(lambda session: branch_rows.close(session, branch, text, life))

    def watch(self, server: Server, on_change: Callable[[], None]) -> _TrackingWatch:
        session = self._session(server)
        session.on_reset, session.on_change = server.reset, on_change
        try:
            session.track()
        except ServerError as error:
            raise NotImplementedError(f"client-side tracking is not to be had there ({error})") from error
        return _TrackingWatch(session, on_change)

    def renew(self, server: Server) -> Session:
        return Session(target_of(server.target), server.ask_timeout)

    def close(self, server: Server) -> None:
        session, server.session = server.session, None
        if isinstance(session, Session):
            session.close()

    def kind_of(self, error: Exception) -> UnprovenKind:
        return UnprovenKind.CONNECTION if isinstance(error, AuthenticationError) else UnprovenKind.OTHER

    def address(self, target: Any) -> str:
        return target_of(target).address

    def _session(self, server: Server) -> Session:
        session = server.session
        if not isinstance(session, Session):
            try:
                session = server.session = self.renew(server)
            except AuthenticationError:
                raise  # the server's own answer, though redis-py calls it a connection's error
            except (RedisConnectionError, RedisTimeoutError) as error:
                raise OSError(str(error)) from error  # out of reach (BAR-26)
        session.timeout = server.ask_timeout
        return session

    # What the command line asks for; of a URL or a client

    epochs = staticmethod(doctor.list_epochs)
    settle = staticmethod(doctor.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)


class _TrackingWatch:
    """A live push channel: the session that `visible` asks on, too."""

    def __init__(self, session: Session, on_change: Callable[[], None]) -> None:
        self._session = session
        self._on_change = on_change

    def fileno(self) -> int | None:
        return self._session.fileno()

    def pump(self) -> None:
        if self._session.pump():
            self._on_change()

    def close(self) -> None:
        self._session.close()
