"""SQLAlchemy's sessions: what one has changed and has not flushed is pending for its store (SCOPE-27).

SQLAlchemy says when a session begins a transaction, by its first change at the latest, and when an object joins it: the
scopes in which that was said are those that use it. Whether it is dirty it is asked when a lineage is handed out.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction, object_mapper

from antipode._scope import unflushed_changes
from antipode._scope.pending_write import PendingWrite, current_task
from antipode._scope.scope import Scope, current_scope
from antipode._store.store import registry

_KEY: Final = "antipode: who uses it"
_MOST_TASKS: Final = 64
_FEW: Final = 256


def follow(recorder: Any, store: str) -> None:
    """Ask sessions from now on that are bound to an engine of this store.

    recorder: what has the engine's connections record, by which the engine is known again: its `_antipode_join`, or the
    creator of its pool's connections.
    """
    global _store_names
    _stores[recorder] = store
    if store not in _store_names:
        _store_names += (store,)
    unflushed_changes.ask(_look)
    if not event.contains(Session, "after_transaction_create", _begun):
        event.listen(Session, "after_transaction_create", _begun)
        event.listen(Session, "after_attach", _begun)
        event.listen(Session, "after_begin", _begun)
        event.listen(Session, "after_flush", _flushed)
        event.listen(Session, "after_transaction_end", _ended)


class _SessionUse:
    """A session in a transaction: the scopes that use it, with what is pending in them because of it."""

    def __init__(self, session: Session) -> None:
        self.session = weakref.ref(session)
        self.process = _following
        """Those of its process: a child of a fork has others."""
        self._task = 0
        self._lock = threading.RLock()
        self._scopes: weakref.WeakKeyDictionary[Scope, dict[str, PendingWrite]] = weakref.WeakKeyDictionary()
        self._tasks: set[int] = set()
        """Those that used it, and the threads of those in scopes: one may change it again, of which nobody is told."""
        self._was_outside = False
        """Whether one of them was outside any scope."""

    def use(self) -> None:
        """Note the scope that uses it now."""
        scope = current_scope()
        with self._lock:
            self._task = current_task()
            if len(self._tasks) < _MOST_TASKS:
                self._tasks.add(self._task)
            if scope is None:
                self._was_outside = True
            else:
                self._scopes.setdefault(scope, {})
                self._tasks.add(threading.get_ident())  # a consumer has a task a message
            self.process.add(self, scope, self._tasks)

    def look(self, scope: Scope) -> None:
        """Make pending in a scope what is about to be written there, and end what is not any more."""
        with self._lock:
            session = self.session()
            if session is None:
                self.over()
                return
            writes = self._scopes.get(scope)
            if writes is None and not self._may_be_changed_in(scope):
                return
            stores = _stores_to_write(session)
            if writes is None and stores:
                writes = self._scopes[scope] = {}
                self.process.add(self, scope, ())
            for store in stores.difference(writes or ()):
                self._begin(scope, store)
            for store in (writes or {}).keys() - stores:
                scope.end(self._scopes[scope].pop(store))

    def _may_be_changed_in(self, scope: Scope) -> bool:
        """Return whether a scope that is not known to use it may, because a task of it has it open.

        Where open scopes use it, that is one within them: a thread has one request of many after the other.
        """
        if scope is not current_scope() or self._tasks.isdisjoint((current_task(), threading.get_ident())):
            return False
        users = list(self._scopes)
        return self._was_outside or all(each.closed or scope.is_within(each) for each in users)

    def flush(self, session: Session) -> None:
        """The scope that flushes records the writes; what became of them nobody tells the others."""
        here = current_scope()
        with self._lock:
            for scope, writes in list(self._scopes.items()):
                if scope is not here and not scope.closed:
                    for store in _stores_to_write(session):
                        if store not in writes:
                            self._begin(scope, store)
                        writes.pop(store).unknown = True

    def over(self) -> None:
        """The transaction is over: what was flushed has been recorded, and the rest is not going to be written."""
        with self._lock:
            self.process.drop(self, list(self._scopes), self._tasks)
            for scope, writes in list(self._scopes.items()):
                for write in writes.values():
                    scope.end(write)
            self._scopes.clear()
            self._tasks.clear()
            self._was_outside = False

    def _begin(self, scope: Scope, store: str) -> None:
        write = self._scopes[scope][store] = PendingWrite(store)
        write.task = self._task
        scope.begin(write)


class _OpenSessions:
    """The sessions of this process that are in transactions: a look at a scope meets its own alone."""

    def __init__(self) -> None:
        self._all: set[_SessionUse] = set()
        self._by_scope: weakref.WeakKeyDictionary[Scope, set[_SessionUse]] = weakref.WeakKeyDictionary()
        self._by_task: dict[int, set[_SessionUse]] = {}
        self._lock = threading.RLock()  # taken behind a session's own
        self._due = _FEW

    def add(self, followed: _SessionUse, scope: Scope | None, tasks: Iterable[int]) -> None:
        """Keep one by the scope and the tasks that use it; as they grow, those that nobody has any more go."""
        with self._lock:
            self._all.add(followed)
            for task in tasks:
                self._by_task.setdefault(task, set()).add(followed)
            if scope is not None:
                self._by_scope.setdefault(scope, set()).add(followed)
            if len(self._all) <= self._due:
                return
            over = [each for each in self._all if each.session() is None]
            self._due = max(_FEW, 2 * (len(self._all) - len(over)))
        for each in over:
            each.over()

    def drop(self, followed: _SessionUse, scopes: Iterable[Scope], tasks: Iterable[int]) -> None:
        """Forget one."""
        with self._lock:
            self._all.discard(followed)
            for scope in scopes:
                self._by_scope.get(scope, set()).discard(followed)
            for task in tasks:
                users = self._by_task.get(task, set())
                users.discard(followed)
                if not users:
                    self._by_task.pop(task, None)

    def look(self, scope: Scope) -> None:
        """Have each that may be changed in a scope say so."""
        if not self._all:
            return
        with self._lock:
            found = set(self._by_scope.get(scope, ()))
            for task in (current_task(), threading.get_ident()):
                found.update(self._by_task.get(task, ()))
        for followed in found:
            followed.look(scope)


_following = _OpenSessions()
_stores: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_store_names: tuple[str, ...] = ()
"""All of them: another thread may wrap an engine while one looks."""


def _after_fork() -> None:
    """In the child: no session is used by a scope (SCOPE-13), and a thread that is not here may have held a lock."""
    global _following
    _following = _OpenSessions()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _look(scope: Scope) -> None:
    _following.look(scope)


def _followed(session: Session) -> _SessionUse | None:
    followed: _SessionUse | None = session.info.get(_KEY)
    if followed is None or followed.session() is not session:  # another session's `info` was copied
        return None
    return followed if followed.process is _following else None


def _begun(session: Session, *_: Any) -> None:
    followed = _followed(session)
    if followed is None:
        followed = session.info[_KEY] = _SessionUse(session)
    followed.use()


def _flushed(session: Session, _: Any) -> None:
    if (followed := _followed(session)) is not None:
        followed.flush(session)


def _ended(session: Session, transaction: SessionTransaction) -> None:
    if transaction.parent is None and (followed := _followed(session)) is not None:
        followed.over()


def _stores_to_write(session: Session) -> set[str]:
    """Return the stores to which a session's next flush would write: where it cannot be told, all."""
    try:
        if session._is_clean():
            return set()
        binds = _binds(session)
        names: Iterable[str] = [_store_of(bind.engine) for bind in binds] if binds else _store_names
    except Exception:  # another thread changes it, or a mapping is not finished
        names = _store_names
    return {name for name in names if (store := registry().get(name)) is not None and store.records}


def _binds(session: Session) -> list[Any]:
    """Return what the changes are bound to; nothing where that is decided at the flush."""
    if type(session).get_bind is not Session.get_bind:
        return []
    own = vars(session)
    if not own.get("binds", own.get("_Session__binds", True)) and session.bind is not None:  # 2.1, 2.0: without a look
        return [session.bind]
    return [session.get_bind(mapper) for mapper in {object_mapper(o) for o in _changed(session)}]


def _changed(session: Session) -> list[Any]:
    return [*session.new, *session.deleted, *session.dirty]


def _store_of(engine: Any) -> str:
    recorder = getattr(engine, "_antipode_join", None)
    return _stores.get(engine.pool._creator if recorder is None else recorder, "")
