"""Celery's chords and errbacks: what a result backend sends is joined of all tasks that it speaks of (spec PROP-35).

The lineage of each part of a chord rests in the backend beside its result, and is there before it; whoever sends the
body joins them. What a worker's main process says for a task that was killed has the lineage that the task began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from antipode._base import logs
from antipode._model.lineage import EMPTY, Lineage
from antipode._propagation.gate import leaving
from antipode._scope.scope import Scope, current_scope
from antipode.messages import HEADER, message_scope, message_text

UNLOCK: Final = "celery.chord_unlock"
"""The task that sends the body where the backend does not count the parts of a chord."""
_PREFIX: Final = "antipode-"
_RESTING: Final = "ANTIPODE"
"""The state of what rests; backends keep the first text of one that is a success (PROP-35)."""
_joining: ContextVar[tuple[Any, str] | None] = ContextVar("antipode-chord", default=None)
"""The backend and the chord whose body, or errback, is sent now."""


def carry_lineages(backend: Any) -> Any:
    """Have this backend of an application carry lineages; returns it.

    Its methods are replaced, and its class stays what it is: backends are pickled by its name.
    """
    for name in ("mark_as_done", "mark_as_failure", "mark_as_revoked"):
        setattr(backend, name, _for_a_task(backend, getattr(backend, name)))
    backend.READY_STATES = {*backend.READY_STATES, _RESTING}  # so that it has a date, and expires
    backend.chord_error_from_stack = _failed(backend.chord_error_from_stack)
    backend.on_chord_part_return = _counted(backend, backend.on_chord_part_return)
    backend.apply_chord = _begun(backend, backend.apply_chord)
    backend.add_to_chord = _added(backend, backend.add_to_chord)
    return backend


def fan_in(running: Any) -> Lineage:
    """Return what the message that is sent now depends on beside the scope's lineage: of a chord, all its parts.

    `running`: the request of the task that sends it.
    """
    found = _joining.get()
    if found is None and running is not None and running.task == UNLOCK and running.args:
        found = (running_backend(), str(running.args[0]))
    return EMPTY if found is None else _parts(*found)


def running_backend() -> Any:
    """Return the backend of the application whose task is running."""
    from celery import current_task  # type: ignore[import-untyped]

    return current_task.backend


def _for_a_task(backend: Any, mark: Callable[..., Any]) -> Callable[..., Any]:
    """The end of a task: its lineage rests before its result does, and is current for its errbacks."""

    @wraps(mark)
    def mark_now(task_id: str, *args: Any, **kwargs: Any) -> Any:
        request = kwargs.get("request") or next((each for each in args if hasattr(each, "errbacks")), None)
        if request is None:
            return mark(task_id, *args, **kwargs)
        with nullcontext(current_scope()) if current_scope() is not None else _scope_of(request) as scope:
            if request.chord and scope is not None:
                joined = leaving(scope) | _judged(_resting(backend, task_id))  # of a run of the same task before
                _rest(backend, task_id, message_text(joined, sender=scope) or EMPTY.serialize())
            return mark(task_id, *args, **kwargs)

    return mark_now


@contextmanager
def _scope_of(request: Any) -> Iterator[Scope]:
    """The scope of a task that another process runs, or ran: what it wrote until then is not known here."""
    with message_scope(request.headers, sender="a task of Celery") as scope:
        scope.mark_incomplete("unanswered", detail="a task's own process did not say what it wrote")
        yield scope


def _counted(backend: Any, count: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(count)
    def count_now(request: Any, *args: Any, **kwargs: Any) -> Any:
        token = _joining.set((backend, request.group) if request.group else None)
        try:
            return count(request, *args, **kwargs)
        finally:
            _joining.reset(token)

    return count_now


def _failed(fail: Callable[..., Any]) -> Callable[..., Any]:
    """A chord fails: an errback that takes the exception runs here, and not by a message of its own."""

    @wraps(fail)
    def fail_now(*args: Any, **kwargs: Any) -> Any:
        from celery import current_task

        scope, parts = current_scope(), fan_in(current_task.request if current_task else None)
        if scope is not None and parts:
            scope.receive(parts)
        return fail(*args, **kwargs)

    return fail_now


def _begun(backend: Any, apply: Callable[..., Any]) -> Callable[..., Any]:
    """A chord begins: the names of its parts rest, for whoever sends its body."""

    @wraps(apply)
    def apply_now(header_result_args: Any, body: Any, **kwargs: Any) -> Any:
        group, results = header_result_args[0], header_result_args[1]
        _rest(backend, group, " ".join(_ids(results)))
        return apply(header_result_args, body, **kwargs)

    return apply_now


def _added(backend: Any, add: Callable[..., Any]) -> Callable[..., Any]:
    """A part joins a chord that runs: the names of its parts are not known any more."""

    @wraps(add)
    def add_now(group: str, result: Any) -> Any:
        _rest(backend, f"{group}-added", "added")
        return add(group, result)

    return add_now


def _ids(results: Any) -> Iterator[str]:
    for result in results:
        inner = getattr(result, "results", None)
        if inner is None:
            yield result.id
        else:
            yield from _ids(inner)


def _rest(backend: Any, name: str, text: str) -> None:
    """Put a text beside the results; the task, or who sends it, does not fail by that."""
    try:
        backend.store_result(f"{_PREFIX}{name}", text, _RESTING)
    except Exception as error:
        logs.warn("celery result", f"a lineage could not be put beside a result: {error!r}", code="AP405")


def _resting(backend: Any, name: str) -> str | None:
    """Return the text that rests by a name; empty where none is there, None where it could not be read."""
    try:
        meta = backend.get_task_meta(f"{_PREFIX}{name}", cache=False)
    except Exception as error:
        logs.warn("celery result", f"a lineage beside a result could not be read: {error!r}", code="AP405")
        return None
    text = meta.get("result") if meta.get("status") == _RESTING else ""
    return text if isinstance(text, str) else ""


def _parts(backend: Any, group: str) -> Lineage:
    """Return the join of what rests for the parts of a chord; incomplete where one of them is not there."""
    ids = (_resting(backend, group) or "").split()
    texts = [_resting(backend, name) for name in ids]
    is_whole = bool(ids) and all(texts) and _resting(backend, f"{group}-added") == ""
    joined = EMPTY if is_whole else EMPTY.marked_incomplete()
    for text in dict.fromkeys(texts):
        joined |= _judged(text)
    return joined


def _judged(text: str | None) -> Lineage:
    """Return what a text brings that rested, as far as it is believed; incomplete where it could not be read."""
    if not text:
        return EMPTY if text == "" else EMPTY.marked_incomplete()
    with message_scope({HEADER: text}, sender="a task of Celery") as part:
        return part.lineage
