"""Session lineage: a user's request depends on what the same user's requests before it wrote (paper 4.3, spec SESS).

app = antipode.asgi.Middleware(app, session=antipode.session.Cookie())    # likewise antipode.wsgi.Middleware

Where the application has sessions of its own, at their server or signed:

    app = antipode.asgi.Middleware(app, session=antipode.session.Entry(lambda scope: scope["session"]))
    app = SessionMiddleware(app, ...)    # outside of it: Starlette's

or, from a framework's own hooks, `join_from(flask.session)` before the request and `keep_in(flask.session)` after it.
"""

from __future__ import annotations

import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from antipode._base import logs
from antipode._base.observers import events
from antipode._base.seal_keys import Keys
from antipode._base.settings import Mode, settings
from antipode._model.errors import ConfigurationError, MalformedLineageError
from antipode._model.lineage import EMPTY, Lineage
from antipode._propagation.gate import fitted
from antipode._scope.scope import Scope, current_scope
from antipode._trust.seal import SealState, open_seal, seal
from antipode._trust.trust import Direction, trust_settings

__all__ = ["Cookie", "Entry", "Session", "forget", "join_from", "keep_in"]

Request = Mapping[str, Any]
_PURPOSE: Final = b"antipode session"
_MOST_IN_COOKIE: Final = 1024
"""Answers side by side leave one each, and servers refuse a `Cookie` header of over 8 KiB."""
_NAME_OCTETS: Final = 8
"""No two answers to one user may give a cookie the same name."""
_HOST_PREFIX: Final = "__Host-"
"""Of cookies that no sibling host can plant (SESS-9)."""
_BETWEEN: Final = re.compile("[;,]")
"""Between cookies; some servers join several lines by a comma, which no value of ours has."""
_T = TypeVar("_T")
_forgotten: Final[WeakSet[Scope]] = WeakSet()
_loaded: Final[WeakKeyDictionary[Scope, set[str]]] = WeakKeyDictionary()
"""The entries of a session that a scope has joined."""
_ENTRY: Final = "antipode"
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Arrival(NamedTuple):
    """A request as it comes to its session: ASGI's scope or WSGI's environ, and the lines of its `Cookie` header."""

    request: Request
    cookies: tuple[str, ...]
    scope: Scope | None = None
    """Whose changes stay longest where not all fits (WIRE-33)."""


class Session(ABC):
    """Where a user's lineage is between two requests."""

    @abstractmethod
    def load(self, arrival: Arrival) -> Lineage:
        """What the session has."""

    @abstractmethod
    def keep(self, arrival: Arrival, came: Lineage, lineage: Lineage) -> list[str]:
        """Keeps a lineage where `came` was loaded, beside what other requests have kept since (SESS-14).

        Returns the values of `Set-Cookie` headers where that is how.
        """

    @abstractmethod
    def forget(self, arrival: Arrival) -> list[str]:
        """End what the session has (SESS-15); returns as `keep` does."""

    def is_scattered(self, arrival: Arrival) -> bool:
        """Whether the session is in several pieces, so that keeping would tidy it."""
        return False

    def holds(self, arrival: Arrival, lineage: Lineage) -> bool:
        """Whether the session that had this lineage has it still: the application may have cleared it (SESS-16)."""
        return True


class Cookie(Session):
    """In a sealed cookie that scripts cannot read; the user can: names of stores and keys, unless keys are hashed.

    `secure=False` is for a service that is reached over plain HTTP. `bind` gives the subject of a request (ASGI's
    scope, WSGI's environ), a user's or session's id, or None: what was kept for another subject is dropped (SESS-15).
    Raises ConfigurationError for a name, path or domain that no cookie can have, for `same_site="None"` without
    `secure`, and where there is no key to seal with (`ANTIPODE_KEYS_FILE`).
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        path: str = "/",
        domain: str | None = None,
        secure: bool = True,
        same_site: Literal["Lax", "Strict", "None"] = "Lax",
        bind: Callable[[Any], str | None] | None = None,
    ) -> None:
        is_host_only = secure and path == "/" and not domain
        if name is None:
            name = f"{_HOST_PREFIX}antipode" if is_host_only else "antipode"
        if name.lower().startswith(_HOST_PREFIX.lower()) and not is_host_only:
            raise ConfigurationError(
                f"{name}: browsers take a {_HOST_PREFIX} cookie with secure, path=/ and no domain", code="AP306"
            )
        if not name or not _TOKEN.issuperset(name):
            raise ConfigurationError(f"no name of a cookie: {name!r}", code="AP306")
        for part in (path, domain or ""):
            if not part.isascii() or not part.isprintable() or ";" in part:
                raise ConfigurationError(f"no path or domain of a cookie: {part!r}", code="AP306")
        if same_site not in ("Lax", "Strict", "None"):
            raise ConfigurationError(f"same_site={same_site!r}: want Lax, Strict or None", code="AP306")
        if same_site == "None" and not secure:
            raise ConfigurationError('same_site="None" without secure: browsers refuse such a cookie', code="AP306")
        self._bind = bind
        self._name = name
        self._attributes = f"; Path={path}" + (f"; Domain={domain}" if domain else "")
        self._attributes += f"; HttpOnly; SameSite={same_site}" + ("; Secure" if secure else "")
        _session_keys()

    def load(self, arrival: Arrival) -> Lineage:
        """As the base says; of several cookies, those with a valid seal (SESS-10, SESS-11)."""
        found = EMPTY
        for _, text, state in self._opened(arrival):
            if state is SealState.VALID:
                found |= _parsed(text)
            elif state is not SealState.EXPIRED:
                events.on_lineage_dropped("seal", Direction.SESSION_IN)
                logs.warn(
                    "session",
                    f"a session's lineage was dropped, for its seal is {state}.",
                    count_as="dropped",
                    code="AP410",
                )
        return found

    def keep(self, arrival: Arrival, came: Lineage, lineage: Lineage) -> list[str]:
        """As the base says: a cookie of its own, in place of those that it holds (SESS-14)."""
        keys, ttl = self._keys(arrival), settings().session_ttl
        text = fitted(lineage, _MOST_IN_COOKIE - keys.seal_length, Direction.SESSION_OUT, arrival.scope).serialize()
        sealed = seal(text, keys, time.time(), ttl)
        name = f"{self._name}.{secrets.token_hex(_NAME_OCTETS)}"
        return [
            f"{name}={sealed}; Max-Age={max(int(ttl), 1)}{self._attributes}",
            *self._ended(self._valid(arrival)),
        ]

    def forget(self, arrival: Arrival) -> list[str]:
        """As the base says: each cookie of the name, whatever its seal is worth."""
        return self._ended(dict.fromkeys(name for name, _, _ in self._opened(arrival)))

    def _ended(self, names: Iterable[str]) -> list[str]:
        return [f"{name}=; Max-Age=0{self._attributes}" for name in names]

    def _keys(self, arrival: Arrival) -> Keys:
        subject = None if self._bind is None else _asked(self._bind, arrival.request)
        return _session_keys("" if subject is None else f" {subject}")

    def is_scattered(self, arrival: Arrival) -> bool:
        """As the base says."""
        return len(self._valid(arrival)) > 1

    def _valid(self, arrival: Arrival) -> list[str]:
        names = [name for name, _, state in self._opened(arrival) if state is SealState.VALID]
        return list(dict.fromkeys(names))

    def _opened(self, arrival: Arrival) -> Iterator[tuple[str, str, SealState]]:
        """Our cookies: name, text without its seal, and what the seal is worth."""
        keys, now = self._keys(arrival), time.time()
        for line in arrival.cookies:
            for pair in _BETWEEN.split(line):
                name, equals, value = pair.strip(" \t").partition("=")
                if equals and (name == self._name or name.startswith(self._name + ".")):
                    yield name, *open_seal(value.removeprefix('"').removesuffix('"'), keys, now)


class Entry(Session):
    """In a session that the application has: `of` finds its mapping in a request, or None where there is none.

    A request in which `of` raises KeyError fails with ConfigurationError: whatever makes the session stands inside of
    this middleware then, and comes too late. `has_rows=True` is for a mapping of which each entry is stored by itself,
    as `keep_in` says.
    """

    def __init__(self, of: Callable[[Any], MutableMapping[str, Any] | None], *, has_rows: bool = False) -> None:
        self._of = of
        self._has_rows = has_rows

    def forget(self, arrival: Arrival) -> list[str]:
        """As the base says."""
        kept = self._kept(arrival.request)
        if kept is not None:
            _end(kept)
        return []

    def is_scattered(self, arrival: Arrival) -> bool:
        """As the base says."""
        kept = self._kept(arrival.request)
        return kept is not None and self._has_rows and len(_entries(kept)) > 1

    def holds(self, arrival: Arrival, lineage: Lineage) -> bool:
        """As the base says."""
        kept = self._kept(arrival.request)
        return kept is None or _load(kept) == lineage

    def _kept(self, request: Request) -> MutableMapping[str, Any] | None:
        return _asked(self._of, request)

    def load(self, arrival: Arrival) -> Lineage:
        """As the base says."""
        kept = self._kept(arrival.request)
        return EMPTY if kept is None else _load(kept, arrival.scope)

    def keep(self, arrival: Arrival, came: Lineage, lineage: Lineage) -> list[str]:
        """As the base says."""
        kept = self._kept(arrival.request)
        if kept is None:
            logs.warn(
                "session", "what a request wrote was not kept: it has no session.", count_as="dropped", code="AP410"
            )
        else:
            _keep(kept, lineage, came, arrival.scope, self._has_rows)
        return []


def _asked(function: Callable[[Any], _T], request: Request) -> _T:
    try:
        return function(request)
    except KeyError as error:
        raise ConfigurationError(
            f"the request has no {error} yet: put the middleware that makes the session outside of antipode's",
            code="AP306",
        ) from error


def forget() -> None:
    """Forget the session's lineage, as where its user logs out: its cookies, or entry, end with the response (SESS-15).

    Raises ConfigurationError outside any scope.
    """
    scope = current_scope()
    if scope is None:
        raise ConfigurationError(
            "no scope whose session to forget: add a middleware, or open antipode.scope()", code="AP101"
        )
    _forgotten.add(scope)


def join_from(kept: Mapping[str, Any]) -> None:
    """Joins what an application's session has into the current scope (SESS-2, SESS-13)."""
    scope = current_scope()
    if scope is None:
        raise ConfigurationError(
            "no scope to join a session into: add a middleware, or open antipode.scope()", code="AP101"
        )
    if settings().mode is not Mode.OFF:
        came = _load(kept, scope)
        scope.session_came |= came
        scope.bring(came)


def keep_in(kept: MutableMapping[str, Any], *, has_rows: bool = False) -> None:
    """Keeps what the current scope has added in an application's session, beside what others have (SESS-3, SESS-14).

    `has_rows=True`: each entry of `kept` is stored by itself (a row of a table, a field of a Redis hash), so requests
    side by side undo nothing of one another's (SESS-17). A session that is loaded and saved as a whole, as Django's is,
    keeps the last one's alone: have such a mapping beside it.
    """
    scope = current_scope()
    if scope is None:
        raise ConfigurationError(
            "no scope whose additions to keep: add a middleware, or open antipode.scope()", code="AP101"
        )
    if settings().mode is Mode.OFF:
        return
    if scope in _forgotten:
        _end(kept)
        return
    there, lineage = _load(kept), _with_additions(scope, scope.session_came)
    if lineage | there.added_to(scope.session_came) != there or (has_rows and len(_entries(kept)) > 1):
        _keep(kept, lineage, scope.session_came, scope, has_rows)


class Visit:
    """One request of a session, for a middleware."""

    __slots__ = ("_arrival", "_came", "_is_loaded", "_is_scattered", "_kept", "_scope", "_session")

    def __init__(self, session: Session, request: Request, cookies: Iterable[str], scope: Scope) -> None:
        self._session = session
        self._arrival = Arrival(request, tuple(cookies), scope)
        self._scope = scope
        self._came = self._kept = EMPTY
        self._is_loaded = self._is_scattered = False
        self._load()

    def _load(self) -> None:
        """Joins what the session has; what was not loaded is neither ended nor removed (SESS-18)."""
        if self._is_loaded or settings().mode is Mode.OFF:
            return
        self._is_loaded = True
        self._came = self._kept = self._session.load(self._arrival)
        self._is_scattered = self._session.is_scattered(self._arrival)
        self._scope.bring(self._came)

    def set_cookies(self, *, public: bool = False) -> list[str]:
        """Keeps what the scope has added when the header leaves; the values of its `Set-Cookie` headers."""
        self._scope.sent = True
        if settings().mode is Mode.OFF:
            return []
        if self._scope in _forgotten:
            return self._session.forget(self._arrival)
        self._load()
        lineage = _with_additions(self._scope, self._came)
        is_kept = lineage == self._kept and self._session.holds(self._arrival, lineage)
        if is_kept and (public or not self._is_scattered):
            return []
        if public:
            logs.warn(
                "session",
                "what a request wrote was not kept for its session: shared caches may keep the response.",
                count_as="dropped",
                code="AP410",
            )
            return []
        self._kept, self._is_scattered = lineage, False
        return self._session.keep(self._arrival, self._came, lineage)


def _with_additions(scope: Scope, came: Lineage) -> Lineage:
    """What the session had, but for what the scope removed since, and what the scope has added (SESS-3)."""
    removed = came.beyond(scope.lineage)
    return came.added_to(removed) | scope.additions()


def _session_keys(subject: str = "") -> Keys:
    """Those of lineages, made others: what a browser has is worth nothing as a lineage's seal (SESS-8)."""
    keys = trust_settings().keys
    if not keys:
        raise ConfigurationError(
            "no key to seal sessions with: set ANTIPODE_KEYS_FILE, and ANTIPODE_TRUST as it was", code="AP303"
        )
    return keys.for_purpose(_PURPOSE + subject.encode("utf-8", "surrogatepass"))


def _parsed(text: str) -> Lineage:
    try:
        lineage = Lineage.deserialize(text)
    except MalformedLineageError:
        events.on_lineage_dropped("malformed", Direction.SESSION_IN)
        events.on_lineage_incomplete("malformed", "")
        logs.warn(
            "session",
            "a session's lineage could not be read: what it held is missing.",
            count_as="dropped",
            code="AP410",
        )
        return EMPTY.marked_incomplete()
    if lineage:
        events.on_lineage_sized(Direction.SESSION_IN, len(text))
    return lineage


_IDS: Final = ("session_key", "sid")
"""What sessions have that their server loads and saves as a whole: Django's, Flask-Session's."""
_WHOLE: Final = (
    "a session that is saved as a whole keeps its lineage in one entry: of two requests side by side the last one's "
    "alone. Keep lineages in a mapping of rows beside it: keep_in(rows, has_rows=True)."
)


def _entries(kept: Mapping[str, Any]) -> list[str]:
    """The names of our entries: one, or one a request where each is stored by itself (SESS-17)."""
    names = kept.keys()  # Django's session has no iterator
    return [name for name in names if name == _ENTRY or (isinstance(name, str) and name.startswith(_ENTRY + "."))]


def _load(kept: Mapping[str, Any], scope: Scope | None = None) -> Lineage:
    """Return what a session has; `scope` notes which entries that was."""
    found, names = EMPTY, _entries(kept)
    for name in names:
        entry = kept.get(name)
        if entry is not None:
            found |= _read(entry)
    if scope is not None:
        _loaded.setdefault(scope, set()).update(names)
    return found


def _read(entry: Any) -> Lineage:
    until = entry.get("until") if isinstance(entry, Mapping) else None
    text = entry.get("lineage") if isinstance(entry, Mapping) else None
    if not isinstance(until, int | float) or not isinstance(text, str):
        return _parsed("")
    return _parsed(text) if time.time() < until else EMPTY


def _keep(kept: MutableMapping[str, Any], lineage: Lineage, came: Lineage, scope: Scope | None, has_rows: bool) -> None:
    """Keep a lineage: in the one entry, beside what is there by now, or in a row of its own for those loaded."""
    now = settings()
    if not has_rows:
        if any(hasattr(kept, name) for name in _IDS):
            logs.warn("session whole", _WHOLE, code="AP410")
        lineage |= _load(kept).added_to(came)
    text = fitted(lineage, now.budget_bytes, Direction.SESSION_OUT, scope).serialize()
    events.on_lineage_sized(Direction.SESSION_OUT, len(text))
    name = f"{_ENTRY}.{secrets.token_hex(_NAME_OCTETS)}" if has_rows else _ENTRY
    kept[name] = {"lineage": text, "until": time.time() + now.session_ttl}
    if has_rows and scope is not None:
        for other in _loaded.pop(scope, ()):
            kept.pop(other, None)
        _loaded[scope] = {name}


def _end(kept: MutableMapping[str, Any]) -> None:
    for name in _entries(kept):
        kept.pop(name, None)
