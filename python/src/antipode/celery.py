"""Celery: a task's message carries the lineage of who sent it, and the task runs in a scope of its own (spec PROP-17).

app = antipode.celery.instrument(Celery("blog", broker=...))    # where it is made: workers and senders alike

Retries and redeliveries keep the lineage, chains and callbacks hand on what the task before them wrote. A barrier that
must give the task back raises into Celery's own retries: `@app.task(autoretry_for=(antipode.BarrierTimeout,))`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Final

from celery import Celery, signals  # type: ignore[import-untyped]
from celery.utils.imports import symbol_by_name  # type: ignore[import-untyped]

from antipode.messages import HEADER, message_scope, outgoing_message
from antipode.scope import current_scope
from antipode.scope_values import Delivery
from antipode.site import skip_packages

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
        signals.task_prerun.connect(_open, weak=False, dispatch_uid="antipode")
        signals.task_postrun.connect(_close, weak=False, dispatch_uid="antipode")
    return app


def _carrying(base: type[Any]) -> type[Any]:
    class Carrying(base):  # type: ignore[misc]
        """Sends tasks; `on_pending=raise` reaches who sends, as no signal's receiver could have it."""

        carries_lineages = True

        @cached_property
        def send_task_message(self) -> Callable[..., Any]:
            return _with_lineage(self._create_task_sender())

    return Carrying


def _with_lineage(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def send_now(producer: Any, name: str, message: Any, *args: Any, headers: Any = None, **kwargs: Any) -> Any:
        if current_scope() is not None:  # else a header of the application's own stays: an outbox relay's
            text = outgoing_message()
            headers = {key: value for key, value in (headers or {}).items() if key != HEADER}
            if text is not None:
                headers[HEADER] = text
        return send(producer, name, message, *args, headers=headers, **kwargs)

    return send_now


def _is_ours(task: Any) -> bool:
    return getattr(symbol_by_name(task.app.amqp_cls), "carries_lineages", False) is True


def _open(task: Any, **_: Any) -> None:
    if not _is_ours(task):
        return
    request = task.request
    caller = current_scope() if request.is_eager else None
    opened = message_scope(request.headers, delivery=Delivery(False, _CANNOT), sender=f"task {task.name}")
    scope = opened.__enter__()
    if caller is not None:  # run in its place instead of being sent
        scope.receive(caller.marked())
    scope.endpoint = lambda: f"task {task.name}"
    setattr(request, _OPEN, opened)


def _close(task: Any, **_: Any) -> None:
    opened = task.request.__dict__.pop(_OPEN, None)
    if opened is not None:
        opened.__exit__(None, None, None)
