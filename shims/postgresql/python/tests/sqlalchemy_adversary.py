"""SQLAlchemy on PostgreSQL for the adversary (spec SHIM-49): its connections, sessions, and engines with options."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar

import antipode_postgresql
import psycopg
import sqlalchemy
from pg_adversary import PostgresqlStage
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

INSERT = sqlalchemy.text("INSERT INTO posts (key, value) VALUES (:k, 'v')")
SELECT = sqlalchemy.text("SELECT 1 FROM posts WHERE key = :k")
POSTS = sqlalchemy.table("posts", sqlalchemy.column("key"), sqlalchemy.column("value"))


class Client:
    """A wrapped engine, with one connection and one session that are in use."""

    def __init__(self, stage: SqlalchemyStage, autocommit: bool, *, commits: bool, plain: bool) -> None:
        self._stage = stage
        self._commits = commits
        """Whether what is open when it is closed is committed before."""
        self._autocommit = autocommit
        self.engine = stage.engine("a", plain=plain)
        self.connection = self._connect()
        self.session = Session(self.engine)
        self.nested: list[Any] = []

    def _connect(self) -> Any:
        connection = self.engine.connect()
        return connection.execution_options(isolation_level="AUTOCOMMIT") if self._autocommit else connection

    def close(self) -> None:
        """Close all of it."""
        commits = (self.session.commit, self.connection.commit) if self._commits else ()
        for each in (*commits, self.session.close, self.connection.close, self.engine.dispose):
            try:
                each()
            except (SQLAlchemyError, psycopg.Error):
                continue

    def save(self) -> None:
        """Set a savepoint."""
        self.nested.append(self.connection.begin_nested())

    def end(self, method: str) -> None:
        """End the innermost savepoint."""
        if self.nested:
            getattr(self.nested.pop(), method)()

    def kill(self) -> None:
        """Have the server end the connection."""
        pid = self.connection.connection.driver_connection.info.backend_pid
        with self._stage.lab.connect("a") as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    def renew(self) -> None:
        """Give the connection back in whatever state it is; take another one."""
        self.connection.close()
        self.nested = []
        self.connection = self._connect()


def _in_session(client: Client, row: str) -> None:
    with Session(client.engine) as session, session.begin():
        session.execute(INSERT, {"k": row})


def _with_options(level: str) -> Callable[[Client, str], object]:
    def write(client: Client, row: str) -> None:
        with client.engine.execution_options(isolation_level=level).begin() as connection:
            connection.execute(INSERT, {"k": row})

    return write


def _begun(client: Client, row: str) -> None:
    with client.engine.begin() as connection:
        connection.execute(INSERT, {"k": row})


def _by_driver(client: Client, row: str) -> object:
    inner = client.connection.connection.driver_connection
    return inner.execute("INSERT INTO posts (key, value) VALUES (%s, 'd')", (row,)).rowcount


def _raw(client: Client, row: str) -> None:
    with closing(client.engine.raw_connection()) as raw:
        raw.cursor().execute("INSERT INTO posts (key, value) VALUES (%s, 'r')", (row,))
        raw.commit()


def _selected(reader: Any, row: str) -> Any:
    with reader.connect() as connection:
        return connection.execute(SELECT, {"k": row}).first()


def _streamed(reader: Any, row: str) -> Any:
    with reader.connect() as connection:
        return list(connection.execution_options(stream_results=True).execute(SELECT, {"k": row}))


def _of_session(reader: Any, row: str) -> Any:
    with Session(reader) as session:
        return session.scalar(SELECT, {"k": row})


def _of_driver(reader: Any, row: str) -> Any:
    with reader.connect() as connection:
        inner = connection.connection.driver_connection
        return inner.execute("SELECT 1 FROM posts WHERE key = %s", (row,)).fetchone()


class SqlalchemyStage(PostgresqlStage):
    """The lab of psycopg's stage."""

    errors: ClassVar[tuple[type[Exception], ...]] = (SQLAlchemyError, psycopg.Error)
    writes: ClassVar = {
        "text": lambda client, row: client.connection.execute(INSERT, {"k": row}).rowcount,
        "insert": lambda client, row: client.connection.execute(POSTS.insert().values(key=row, value="i")).rowcount,
        "many": lambda client, row: client.connection.execute(POSTS.insert(), [{"key": row}, {"key": f"{row}-b"}]),
        "returning": lambda client, row: client.connection.scalar(
            POSTS.insert().values(key=row, value="i").returning(POSTS.c.key)
        ),
        "by the driver": lambda client, row: (
            client.connection.exec_driver_sql("INSERT INTO posts (key, value) VALUES (%s, 'x')", (row,)).rowcount
        ),
        "function": lambda client, row: client.connection.scalar(sqlalchemy.select(sqlalchemy.func.book(row))),
        "session": lambda client, row: client.session.execute(INSERT, {"k": row}).rowcount,
        "session of its own": _in_session,
        "engine's block": _begun,
        "engine of autocommit": _with_options("AUTOCOMMIT"),
        "serializable engine": _with_options("SERIALIZABLE"),
        "driver's connection": _by_driver,
        "raw connection": _raw,
    }
    acts: ClassVar = {
        "begin": lambda client: client.connection.begin() and None,
        "commit": lambda client: client.connection.commit(),
        "rollback": lambda client: client.connection.rollback(),
        "savepoint": lambda client: client.save(),
        "release the savepoint": lambda client: client.end("commit"),
        "rollback to the savepoint": lambda client: client.end("rollback"),
        "commit the session": lambda client: client.session.commit(),
        "roll the session back": lambda client: client.session.rollback(),
        "error": lambda client: client.connection.execute(sqlalchemy.text("SELECT 1/0")),
        "read": lambda client: client.connection.scalar(sqlalchemy.text("SELECT count(*) FROM posts")),
        "invalidate": lambda client: client.connection.invalidate(),
        "kill": lambda client: client.kill(),
        "dispose": lambda client: client.engine.dispose(),
        "new connection": lambda client: client.renew(),
    }
    reads: ClassVar = {
        "select": _selected,
        "stream": _streamed,
        "session": _of_session,
        "driver's connection": _of_driver,
        "engine with options": lambda reader, row: _selected(
            reader.execution_options(isolation_level="AUTOCOMMIT"), row
        ),
    }

    def engine(self, server: str, *, plain: bool = False, **options: Any) -> Any:
        """Return a new engine for a server."""
        url = self.lab.url(server).replace("postgresql://", "postgresql+psycopg://")
        made = sqlalchemy.create_engine(url, pool_size=2, max_overflow=2, pool_timeout=1, query_cache_size=50)
        replicas = [self.lab.url("b1")]
        return made if plain else antipode_postgresql.wrap(made, store=self.name, replicas=replicas, **options)

    def open(self, kind: int, *, plain: bool = False) -> Any:
        return Client(self, autocommit=kind % 2 == 0, commits=kind // 2 % 2 == 0, plain=plain)

    def close(self, client: Any) -> None:
        client.close() if isinstance(client, Client) else client.dispose()

    def reader(self) -> Any:
        return self.engine("b1", wait_on_read=True)

    def tell(self, result: Any) -> str:
        said = super().tell(result)
        return said.split("(Background on this error")[0]
