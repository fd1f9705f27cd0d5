"""SQLAlchemy: an engine whose connections record their writes."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from antipode import ConfigurationError
from antipode.shim import sqlalchemy_sessions
from pymysql.constants import CLIENT
from sqlalchemy import Engine, create_engine, event

from antipode_mysql.leading import look_at_words, targets_of_words
from antipode_mysql.targets import Target, target_of

_DRIVERS = ("pymysql", "mysqlconnector")


def _prepare(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
    """Before a connection is opened: MySQL tells a commit's id in its own answer where that was asked for then."""
    if dialect.driver == "pymysql":
        options["client_flag"] = options.get("client_flag", 0) | CLIENT.SESSION_TRACK
        return
    options.setdefault("use_pure", True)
    flags = options.get("client_flags") or []
    options["client_flags"] = flags | CLIENT.SESSION_TRACK if isinstance(flags, int) else [*flags, CLIENT.SESSION_TRACK]


class Leads(NamedTuple):
    """How a hooked engine is asked where its connections lead (BAR-52)."""

    engine: Any
    opens: Callable[[Any], Any]
    """Opens a plain connection."""
    creator: Any

    def look(self, _: Any = None) -> object:
        """Return what decides it; a listener may be added while the engine is used."""
        return self._listeners(), look_at_words(self._arguments() or {})

    def targets(self) -> list[Target] | None:
        """Return the servers that its words name; None where the application's own code opens its connections."""
        arguments = None if self._listeners() else self._arguments()
        return None if arguments is None else targets_of_words(arguments, self.engine.dialect.driver)

    @property
    def names_servers(self) -> bool:
        """Return whether its words say where the next connection leads."""
        try:
            return self.targets() is not None
        except Exception:  # the driver's own, for words that cannot be
            return False

    def servers(self, _: Any = None) -> list[Target]:
        """Return its servers, by one more connection where its words do not tell. Raises what opening it raises."""
        if (named := self.targets()) is not None:
            return named
        connection = self.opens(None)
        try:
            return [target_of(connection)]
        finally:
            connection.close()

    def _listeners(self) -> list[Any]:
        return [each for each in self.engine.dialect.dispatch.do_connect if each is not _prepare]

    def _arguments(self) -> Mapping[str, Any] | None:
        if getattr(self.creator, "__module__", "") != create_engine.__module__:
            return None
        found: Mapping[str, Any] | None = inspect.getclosurevars(self.creator).nonlocals.get("cparams")
        return found


def hook(engine: Any, wrapped: Callable[[Any], Any], store: str) -> Leads:
    """Have every connection that the engine opens from now on wrapped, whatever opens it; return where they lead.

    Those in its pool are given up.
    """
    if not isinstance(engine, Engine):
        raise TypeError(
            f"wrap() takes a sqlalchemy.Engine, not {type(engine).__name__} (of an AsyncEngine, none of the drivers "
            "is known here)"
        )
    if engine.dialect.driver not in _DRIVERS:
        raise ConfigurationError(
            f"an engine over {engine.dialect.driver}; want one over {' or '.join(_DRIVERS)}: mysql+pymysql://…",
            code="AP501",
        )
    pool: Any = engine.pool
    known = getattr(pool._creator, "_antipode_plain", None)
    if known is None:
        known = pool._creator, pool._invoke_creator
        event.listen(engine, "do_connect", _prepare)

    def connect(connection_record: Any = None) -> Any:
        return wrapped(known[1](connection_record))

    connect._antipode_plain = known  # type: ignore[attr-defined]
    pool._creator = connect
    sqlalchemy_sessions.follow(connect, store)
    engine.dispose()
    return Leads(weakref.proxy(engine), known[1], known[0])
