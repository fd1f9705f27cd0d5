"""SQLAlchemy: an engine whose connections record their writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antipode.errors import ConfigurationError
from pymysql.constants import CLIENT
from sqlalchemy import Engine, event

_DRIVERS = ("pymysql", "mysqlconnector")


def _ask_for_tracking(driver: str, options: dict[str, Any]) -> None:
    """MySQL tells a commit's id in its own answer, on connections that were opened for it."""
    if driver == "pymysql":
        options["client_flag"] = options.get("client_flag", 0) | CLIENT.SESSION_TRACK
        return
    flags = options.get("client_flags") or []
    options["client_flags"] = flags | CLIENT.SESSION_TRACK if isinstance(flags, int) else [*flags, CLIENT.SESSION_TRACK]


def hook(engine: Any, wrapped: Callable[[Any], Any]) -> Any:
    """Has every connection that the engine opens from now on wrapped; those in its pool are given up. The engine."""
    if not isinstance(engine, Engine):
        raise TypeError(
            f"wrap() takes a sqlalchemy.Engine, not {type(engine).__name__} (of an AsyncEngine, none of the drivers "
            "is known here)"
        )
    if engine.dialect.driver not in _DRIVERS:
        raise ConfigurationError(
            f"an engine over {engine.dialect.driver}; want one over {' or '.join(_DRIVERS)}: mysql+pymysql://…"
        )

    def connect(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        if dialect.driver == "mysqlconnector":
            options.setdefault("use_pure", True)
        _ask_for_tracking(dialect.driver, options)
        return wrapped(dialect.connect(*arguments, **options))

    event.listen(engine, "do_connect", connect)
    engine.dispose()
    return engine
