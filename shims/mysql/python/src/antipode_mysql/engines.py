"""SQLAlchemy: an engine whose connections record their writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from antipode.errors import ConfigurationError
from pymysql.constants import CLIENT
from sqlalchemy import Engine, create_engine, event

_DRIVERS = ("pymysql", "mysqlconnector")


def _prepare(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
    """Before a connection is opened: MySQL tells a commit's id in its own answer where that was asked for then."""
    if dialect.driver == "pymysql":
        options["client_flag"] = options.get("client_flag", 0) | CLIENT.SESSION_TRACK
        return
    options.setdefault("use_pure", True)
    flags = options.get("client_flags") or []
    options["client_flags"] = flags | CLIENT.SESSION_TRACK if isinstance(flags, int) else [*flags, CLIENT.SESSION_TRACK]


def hook(engine: Any, wrapped: Callable[[Any], Any]) -> tuple[Mapping[str, Any] | None, Callable[[Any], Any]]:
    """Have every connection that the engine opens from now on wrapped, whatever opens it.

    Those in its pool are given up. Return the arguments of its connections, None where the application's own code opens
    them (`creator=`, `do_connect`), and what opens a plain one.
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
        is_own = pool._creator.__module__ != create_engine.__module__ or list(engine.dialect.dispatch.do_connect)
        options = None if is_own else inspect.getclosurevars(pool._creator).nonlocals["cparams"]
        known = options, pool._invoke_creator
        event.listen(engine, "do_connect", _prepare)

    def connect(connection_record: Any = None) -> Any:
        return wrapped(known[1](connection_record))

    connect._antipode_plain = known  # type: ignore[attr-defined]
    pool._creator = connect
    engine.dispose()
    return known
