"""Celery: a task's message carries the lineage of who sent it, and the task runs in a scope of its own (spec PROP-17).

app = antipode.celery.instrument(Celery("blog", broker=...))    # where it is made: workers and senders alike

Retries and redeliveries keep the lineage, chains and callbacks hand on what the task before them wrote. A barrier that
must give the task back raises into Celery's own retries: `@app.task(autoretry_for=(antipode.BarrierTimeout,))`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import Any, Final

from celery import Celery, canvas, current_task, signals  # type: ignore[import-untyped]
from celery.utils.imports import symbol_by_name  # type: ignore[import-untyped]

from antipode._base.call_site import skip_packages
from antipode._diagnostics.dryrun import records
from antipode._diagnostics.history import recorder
from antipode._facade.celery_results import carry_lineages, fan_in
from antipode._model import display
from antipode._model.branch_ids import TASK
from antipode._model.errors import PendingWriteError
from antipode._model.lineage import Lineage
from antipode._model.scope_values import Delivery
from antipode._propagation.gate import check_takers, leaving
from antipode._scope.scope import Scope, current_scope
from antipode.messages import HEADER, message_scope, message_text, outgoing_message

_OPEN: Final = "_antipode_scope"
_CANNOT: Final = "a Celery task is given back by Celery: @app.task(autoretry_for=(antipode.BarrierTimeout,))"

skip_packages("celery", "kombu", "billiard", "vine")


def instrument(app: Celery) -> Celery:
    """Has this application's tasks carry lineages, and run in scopes; returns it. Twice is harmless.

    To be called before the application sends its first task.
    """
    base: Any = symbol_by_name(app.amqp_cls or "celery.app.amqp:AMQP")
    if not getattr(base, "carries_lineages", False):
        app.amqp_cls = _carrying(base)
        _carry_results(app)
        _join_eager(canvas._chain)
        _join_eager(canvas._chord)
        signals.task_prerun.connect(_open, weak=False, dispatch_uid="antipode")
        signals.task_postrun.connect(_close, weak=False, dispatch_uid="antipode")
        signals.worker_process_shutdown.connect(_end, weak=False, dispatch_uid="antipode")
    return app


def _carry_results(app: Celery) -> None:
    make = app._get_backend
    app._get_backend = wraps(make)(lambda: carry_lineages(make()))
    if app._backend is not None:  # somebody has asked for it before
        carry_lineages(app._backend)


def _carrying(base: type[Any]) -> type[Any]:
    class TaskSender(base):  # type: ignore[misc]
        """Sends tasks; `on_pending=raise` reaches who sends, as no signal's receiver could have it."""

        carries_lineages = True

        @cached_property
        def send_task_message(self) -> Callable[..., Any]:
            return _with_lineage(self, self._create_task_sender())

    return TaskSender


def _with_lineage(amqp: Any, send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def send_now(producer: Any, name: str, message: Any, *args: Any, headers: Any = None, **kwargs: Any) -> Any:
        if current_scope() is not None or HEADER not in (headers or {}):  # an outbox relay's own stays
            if shared := _shared(amqp, *args, **kwargs):
                check_takers(current_scope(), shared)
            text = _sent_again() if _is_running(message) else _sent()
            headers = {key: value for key, value in (headers or {}).items() if key != HEADER}
            if text is not None:
                headers[HEADER] = text
        return send(producer, name, message, *args, headers=headers, **kwargs)

    return send_now


def _shared(
    amqp: Any,
    exchange: Any = None,
    routing_key: Any = None,
    queue: Any = None,
    *_: Any,
    exchange_type: Any = None,
    **__: Any,
) -> str:
    """Return the exchange that may give a task to several queues; nothing where Celery names the queue (BRANCH-28)."""
    if isinstance(queue, str):
        queue = amqp.queues[queue]
    elif queue is None and exchange is None:
        queue = amqp.default_queue
    place = exchange or getattr(queue, "exchange", None)
    kind = exchange_type or getattr(getattr(queue, "exchange", None), "type", None) or "direct"
    is_shared = kind != "direct" or (exchange and routing_key)
    return f"exchange {display.shown(str(getattr(place, 'name', place)))}" if is_shared else ""


def _sent() -> str | None:
    """The lineage for another task: the body of a chord has those of all its parts."""
    scope = current_scope()
    parts = fan_in(current_task.request if current_task else None)
    if scope is None or not parts:
        return outgoing_message()
    return message_text(leaving(scope) | parts, sender=scope)


def _is_running(message: Any) -> bool:
    """Whether a message is for the very task that sends it: a retry."""
    running = current_task.request if current_task else None
    identifier = message.headers.get("id") or message.body.get("id")
    return running is not None and identifier is not None and running.id == identifier


def _sent_again() -> str | None:
    """The lineage for a retry, which has the branches of the task that it takes the place of (BRANCH-6)."""
    scope = current_scope()
    if scope is None:
        return outgoing_message()
    lineage = leaving(scope)
    tasks = [branch.extension(TASK) for branch in scope.tasks]
    return message_text(lineage.with_extensions([*lineage.extensions, *tasks]) if tasks else lineage, sender=scope)


def _handed_over(caller: Scope) -> str | None:
    """What an eager task gets, which runs in its sender's place; nothing leaves, so `on_pending` does not raise."""
    try:
        return outgoing_message(scope=caller)
    except PendingWriteError:
        return caller.lineage.serialize()


def _is_ours(task: Any) -> bool:
    return getattr(symbol_by_name(task.app.amqp_cls), "carries_lineages", False) is True


def _open(task: Any, **_: Any) -> None:
    if not _is_ours(task):
        return
    request = task.request
    caller = current_scope() if request.is_eager else None
    if caller is not None and HEADER not in (request.headers or {}):
        request.headers = {**(request.headers or {}), HEADER: _handed_over(caller)}  # an eager retry keeps it
    opened = message_scope(request.headers, delivery=Delivery(False, _CANNOT), sender=f"task {task.name}")
    scope = opened.__enter__()
    if request.is_eager:
        for lineage in _done.get() or ():
            scope.receive(lineage)
    scope.endpoint = lambda: f"task {task.name}"
    setattr(request, _OPEN, opened)


def _close(task: Any, **_: Any) -> None:
    opened = task.request.__dict__.pop(_OPEN, None)
    if opened is None:
        return
    done, scope = _done.get(), current_scope()
    if done is not None and scope is not None and task.request.is_eager:
        done.append(scope.lineage)
    opened.__exit__(None, None, None)


_done: Final[ContextVar[list[Lineage] | None]] = ContextVar("antipode-canvas", default=None)
"""The lineages of the tasks of an eager chain or chord that have run: the next one depends on them."""


def _join_eager(kind: type[Any]) -> None:
    """Has each task of a chain or chord that runs in its sender's place know what those before it wrote."""
    apply = kind.apply
    if getattr(apply, "carries_lineages", False):
        return

    @wraps(apply)
    def apply_now(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _done.get() is not None:
            return apply(self, *args, **kwargs)
        token = _done.set([])
        try:
            return apply(self, *args, **kwargs)
        finally:
            _done.reset(token)

    apply_now.carries_lineages = True  # type: ignore[attr-defined]
    kind.apply = apply_now


def _end(**_: Any) -> None:
    """A child of a preforked worker ends, without exit hooks: records go to disk first."""
    records.end()
    recorder.end()
