"""SQLAlchemy's sessions over a wrapped engine: what they have not flushed is pending (spec SCOPE-27)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import copy_context
from typing import Any, Final

import antipode
import antipode.asgi
import antipode.httpx
import antipode_postgresql
import fastapi
import httpx
import pytest
import sqlalchemy
from antipode._scope.scope import Scope
from antipode.shim import sqlalchemy_sessions
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import STORE, Posts, proved
from sqlalchemy import JSON, ForeignKey
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.ext.mutable import MutableDict
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, scoped_session, sessionmaker

MARKED: Final = f"1~_.i.{STORE}"


class Base(DeclarativeBase):
    pass


class Node(Base):
    __tablename__ = "nodes"
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str] = mapped_column(default="")
    things: Mapped[dict[str, int]] = mapped_column(MutableDict.as_mutable(JSON), default=dict)
    parent: Mapped[str | None] = mapped_column(ForeignKey("nodes.key"))
    children: Mapped[list[Node]] = relationship("Node")


def _url(lab: PostgresqlStore, driver: str = "psycopg") -> str:
    return lab.url("a").replace("postgresql://", f"postgresql+{driver}://")


@pytest.fixture
def plain(quiet_lab: PostgresqlStore) -> Iterator[sqlalchemy.Engine]:
    """With two nodes, `1` and `2`."""
    engine = sqlalchemy.create_engine(_url(quiet_lab))
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add_all([Node(key="1"), Node(key="2")])
    yield engine
    engine.dispose()


@pytest.fixture
def engine(plain: sqlalchemy.Engine, quiet_lab: PostgresqlStore, quiet_posts: Posts) -> Iterator[sqlalchemy.Engine]:
    own = sqlalchemy.create_engine(_url(quiet_lab))
    yield antipode_postgresql.wrap(own, STORE, replicas=[quiet_lab.url("b1")])
    own.dispose()


@pytest.fixture
async def aengine(engine: sqlalchemy.Engine, quiet_lab: PostgresqlStore) -> AsyncIterator[AsyncEngine]:
    own = create_async_engine(_url(quiet_lab, "psycopg_async"))
    yield antipode_postgresql.wrap(own, STORE, replicas=[quiet_lab.url("b1")])
    await own.dispose()


def is_marked(scope: Scope) -> bool:
    return STORE in scope.outgoing().incomplete


def _adds(session: Session) -> None:
    session.add(Node(key="3"))


def _sets(session: Session) -> None:
    session.get_one(Node, "1").value = "changed"


def _changes_in_place(session: Session) -> None:
    node = session.get_one(Node, "1")
    node.things["a"] = 1


def _deletes(session: Session) -> None:
    session.delete(session.get_one(Node, "1"))


def _relates(session: Session) -> None:
    node, child = session.get_one(Node, "1"), session.get_one(Node, "2")
    node.children.append(child)


def _nests(session: Session) -> None:
    with session.begin_nested():
        _adds(session)
        assert antipode.serialize() == MARKED


CHANGES: Final = (_adds, _sets, _changes_in_place, _deletes, _relates)


@pytest.mark.parametrize("change", [_sets, _changes_in_place, _deletes])
def test_a_change_within_a_scope_within_that_of_the_session(
    engine: sqlalchemy.Engine, change: Callable[[Session], None]
) -> None:
    """SCOPE-27: of an attribute nobody is told, so every scope within one that uses the session may have changed it."""
    with antipode.scope() as outer, Session(engine) as session:
        node = session.get_one(Node, "1")
        with antipode.scope() as between, antipode.scope() as scope:
            assert not is_marked(scope)
            change(session)
            assert node in [*session.dirty, *session.deleted]
            assert is_marked(scope)
            assert is_marked(outer)
        session.rollback()
        assert not is_marked(scope)
        assert not is_marked(outer)
    assert not is_marked(between)


def test_a_scope_that_is_not_within_that_of_the_session_is_not_marked(engine: sqlalchemy.Engine) -> None:
    """SCOPE-15: a thread may have a request while an elder one goes on elsewhere."""
    elsewhere = copy_context()
    elder = elsewhere.run(antipode.root)
    with Session(engine) as session:
        elsewhere.run(_sets, session)
        assert elsewhere.run(is_marked, elder)
        with antipode.scope() as scope:
            assert not is_marked(scope)
        session.rollback()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_pending_until_it_is_flushed_and_committed(
    engine: sqlalchemy.Engine, change: Callable[[Session], None]
) -> None:
    """SCOPE-27, SCOPE-15."""
    with antipode.scope() as scope:
        with Session(engine) as session:
            assert session.get(Node, "1") is not None
            assert antipode.serialize() == "1"  # it has only read
            change(session)
            assert antipode.serialize() == MARKED
            session.flush()
            assert antipode.serialize() == MARKED  # the transaction is
            session.commit()
        assert proved(scope)
        assert not is_marked(scope)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("end", [Session.rollback, Session.close, Session.expunge_all, Session.reset])
def test_a_change_that_will_not_be_written_is_not_pending(
    engine: sqlalchemy.Engine, change: Callable[[Session], None], end: Callable[[Session], None]
) -> None:
    """SCOPE-17, SCOPE-27."""
    with antipode.scope(), Session(engine) as session:
        with session.no_autoflush:
            change(session)
        assert antipode.serialize() == MARKED
        end(session)
        assert antipode.serialize() == "1"


def test_a_session_that_nobody_has_any_more(engine: sqlalchemy.Engine) -> None:
    with antipode.scope():
        session = Session(engine)
        session.add(Node(key="3"))
        assert antipode.serialize() == MARKED
        del session
        gc.collect()
        assert antipode.serialize() == "1"


def test_sessions_that_nobody_has_any_more_do_not_stay(engine: sqlalchemy.Engine) -> None:
    """SCOPE-27: in a process that never looks, either."""
    made = []
    for number in range(1000):
        session = Session(engine)
        session.add(Node(key=str(number)))
        made.append(weakref.ref(session.info[sqlalchemy_sessions._KEY]))
        del session
    gc.collect()
    with Session(engine) as session:
        session.add(Node(key="3"))
    assert sum(each() is not None for each in made) < 600


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_session_behind_a_fork(engine: sqlalchemy.Engine) -> None:
    """SCOPE-13: a thread that the child does not have was at work with it, and has forgotten it just now."""
    session = Session(engine)
    with antipode.scope():
        session.add(Node(key="3"))
    followed = session.info[sqlalchemy_sessions._KEY]
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with followed._lock:
            followed.over()
            is_held.set()
            is_over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        with antipode.scope():
            session.add(Node(key="4"))
            os._exit(0 if antipode.serialize() == MARKED else 1)
    assert os.waitpid(child, 0)[1] == 0
    is_over.set()
    thread.join()
    session.close()


def test_an_engine_that_is_wrapped_while_a_session_is_asked(
    engine: sqlalchemy.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCOPE-27: neither fails, where it is not known yet what the session is bound to."""
    made = list[Any]()

    class Recorder:
        pass

    class Stores(weakref.WeakKeyDictionary[Any, str]):
        def values(self) -> Any:
            for each in super().values():
                made.append(Recorder())
                self[made[-1]] = STORE
                yield each

    monkeypatch.setattr(sqlalchemy_sessions, "_stores", Stores(sqlalchemy_sessions._stores))
    with antipode.scope(), Session() as session:
        session.add(Node(key="3"))
        assert antipode.serialize() == MARKED


class _Routed(Session):
    engine: Any

    def get_bind(self, *_: Any, **__: Any) -> Any:
        return self.engine


@pytest.mark.parametrize("kind", ["connection", "binds", "routed", "scoped", "maker", "options", "later", "two phases"])
def test_however_a_session_is_bound(engine: sqlalchemy.Engine, kind: str) -> None:
    """SCOPE-27."""
    _Routed.engine = engine
    made: dict[str, Callable[[], Any]] = {
        "connection": lambda: Session(engine.connect()),
        "binds": lambda: Session(binds={Node: engine}),
        "routed": _Routed,
        "scoped": lambda: scoped_session(sessionmaker(engine)),
        "maker": sessionmaker(engine),
        "options": lambda: Session(engine.execution_options(isolation_level="SERIALIZABLE")),
        "later": Session,
        "two phases": lambda: Session(engine, twophase=True),
    }
    session = made[kind]()
    with antipode.scope():
        session.add(Node(key="3"))
        assert antipode.serialize() == MARKED
        if kind == "later":
            session.bind = engine
            assert antipode.serialize() == MARKED
        session.rollback()
        assert antipode.serialize() == "1"
    session.close()


def test_a_session_of_an_engine_that_nobody_wrapped(engine: sqlalchemy.Engine, plain: sqlalchemy.Engine) -> None:
    """SCOPE-15: neither it nor what has no part in it."""
    with antipode.scope(), Session(plain) as session, Session(binds={Node: plain}) as other:
        session.add(Node(key="3"))
        other.add(Node(key="4"))
        assert antipode.serialize() == "1"


def test_a_savepoint(engine: sqlalchemy.Engine) -> None:
    with antipode.scope(), Session(engine) as session, session.begin():
        _nests(session)
        session.rollback()
        assert antipode.serialize() == "1"


async def test_sessions_of_asyncio(aengine: AsyncEngine) -> None:
    """SCOPE-27."""
    with antipode.scope() as scope:
        async with AsyncSession(aengine) as session:
            session.add(Node(key="3"))
            assert antipode.serialize() == MARKED
            await session.rollback()
            assert antipode.serialize() == "1"
        async with async_sessionmaker(aengine).begin() as session:
            (await session.get_one(Node, "1")).value = "changed"
            assert antipode.serialize() == MARKED
            assert await asyncio.create_task(_serialized()) == MARKED
        assert proved(scope)


async def _serialized() -> str:
    return antipode.serialize()


def test_only_the_scope_that_uses_a_session(engine: sqlalchemy.Engine) -> None:
    """SCOPE-15, SCOPE-24: where another scope flushes, nobody tells the first what became of it."""
    with Session(engine) as session, antipode.scope() as first:
        session.add(Node(key="3"))
        with antipode.scope() as other:
            assert is_marked(other)  # it is within the first, and may have changed an attribute
            assert is_marked(first)
            session.commit()
            assert proved(other)
            assert not is_marked(other)
        assert is_marked(first)


def test_who_commits_what_others_flushed(engine: sqlalchemy.Engine) -> None:
    """SCOPE-24: also where those have ended."""
    with Session(engine) as session:
        with antipode.scope():
            session.add(Node(key="3"))
            session.flush()
        with antipode.scope() as committing:
            session.commit()
            assert proved(committing)


def test_a_session_that_began_outside_any_scope(engine: sqlalchemy.Engine) -> None:
    """SCOPE-27: its task may have changed it since, and no other one."""
    with Session(engine) as session:
        node = session.get_one(Node, "1")
        with antipode.scope() as scope:
            node.value = "changed"
            assert is_marked(scope)
        seen = []
        with antipode.scope() as scope:
            thread = threading.Thread(target=lambda: seen.append(is_marked(scope)))
            thread.start()
            thread.join()
        assert seen == [False]


@pytest.mark.parametrize("change", [_sets, _deletes, _changes_in_place])
def test_a_session_whose_transaction_began_in_a_scope_that_has_ended(
    engine: sqlalchemy.Engine, change: Callable[[Session], None]
) -> None:
    """SCOPE-27: a consumer's own, which read for one message and changes for the next one."""
    with Session(engine) as session:
        with antipode.scope():
            nodes = session.scalars(sqlalchemy.select(Node)).all()
        with antipode.scope() as scope, session.no_autoflush:
            assert antipode.serialize() == "1"
            change(session)
            assert antipode.serialize() == MARKED
            session.commit()
            assert proved(scope)
            assert not is_marked(scope)
        assert len(nodes) == 2


async def test_a_session_of_asyncio_whose_transaction_began_in_another_task(aengine: AsyncEngine) -> None:
    """SCOPE-27: a consumer has a task a message."""
    async with AsyncSession(aengine) as session:

        async def first() -> Node:
            with antipode.scope():
                return await session.get_one(Node, "1")

        async def second(node: Node) -> str:
            with antipode.scope():
                node.value = "changed"
                return antipode.serialize()

        node = await asyncio.create_task(first())
        assert await asyncio.create_task(second(node)) == MARKED


def test_a_session_that_has_the_info_of_another_one(engine: sqlalchemy.Engine) -> None:
    """SCOPE-27"""
    with antipode.scope(), Session(engine) as session:
        session.get(Node, "1")
        with Session(engine, info=session.info) as copy:
            copy.add(Node(key="3"))
            assert antipode.serialize() == MARKED
            session.rollback()
            assert antipode.serialize() == MARKED


def test_work_that_carries_the_scope(engine: sqlalchemy.Engine) -> None:
    """SCOPE-12, SCOPE-27: it is looked at where the work is made."""
    seen: list[str] = []

    def look() -> None:
        seen.append(antipode.serialize())

    with Session(engine) as session:
        node = session.get_one(Node, "1")
        with antipode.scope():
            node.value = "changed"
            thread = threading.Thread(target=antipode.carry(look))
            thread.start()
            thread.join()
    assert seen == [MARKED]


def test_its_own_barrier(engine: sqlalchemy.Engine) -> None:
    """BAR-56."""
    with antipode.scope(), Session(engine) as session:
        assert antipode.barrier(timeout=5).complete
        session.add(Node(key="3"))
        result = antipode.barrier(timeout=5)
        assert not result.complete
        assert [gap.store for gap in result.gaps] == [STORE]
        session.rollback()
        assert antipode.barrier(timeout=5).complete


def test_what_is_sent_before_its_flush_can_raise(engine: sqlalchemy.Engine) -> None:
    """SCOPE-18, SCOPE-19."""
    with antipode.scope() as scope, Session(engine) as session:
        session.add(Node(key="3"))
        assert [write.store for write in scope.published_before_commit()] == [STORE]


def test_a_dependency_of_fastapi_that_commits_behind_its_yield(engine: sqlalchemy.Engine) -> None:
    """SCOPE-27, PROP-13: the response leaves before the flush, from other threads than the endpoint's."""
    app = fastapi.FastAPI()

    def opened() -> Iterator[Session]:
        with Session(engine) as session, session.begin():
            yield session

    used = fastapi.Depends(opened)

    @app.post("/{key}")
    def add(key: str, session: Session = used) -> str:
        session.add(Node(key=key))
        return key

    async def posts() -> None:
        transport = httpx.ASGITransport(antipode.asgi.Middleware(app), client=("127.0.0.1", 1))
        async with antipode.httpx.wrap(httpx.AsyncClient(transport=transport, base_url="http://localhost")) as client:
            assert (await client.post("/3")).status_code == 200

    with antipode.scope() as scope:
        asyncio.run(posts())
        assert STORE in scope.lineage.stores or STORE in scope.lineage.incomplete
