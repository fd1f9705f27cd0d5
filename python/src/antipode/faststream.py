"""FastStream: a scope a message, and the lineage in the headers of what is published (spec PROP-17, SCOPE-6).

broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])

Of a batch, which FastStream hands over whole, the handler opens one scope a message: `antipode.message_scope(headers)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

from faststream import AckPolicy, BaseMiddleware
from faststream.exceptions import NackMessage
from faststream.message.source_type import SourceType
from faststream.response.publish_type import PublishType

from antipode._base.call_site import skip_packages
from antipode._base.settings import Mode, settings
from antipode._model import display
from antipode._model.result import Redeliver
from antipode._model.scope_values import Delivery
from antipode._propagation.gate import check_takers
from antipode._propagation.questions import Question, join_message
from antipode._scope.scope import Scope, current_scope
from antipode.messages import HEADER, message_scope, outgoing_message
from antipode.shim.queue_messages import redeliver_of

_asked: Final[ContextVar[Question | None]] = ContextVar("antipode_faststream_asked", default=None)
"""What the request was that the answer which comes next in this task answers."""
skip_packages("faststream", "fast_depends", "aio_pika", "aiormq")


class Middleware(BaseMiddleware):
    """For the `middlewares` of a broker. What a handler returns carries the lineage of the handler's scope as well."""

    def __init__(self, msg: Any, /, *, context: Any) -> None:
        super().__init__(msg, context=context)
        self._scope: Scope | None = None

    async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: Any) -> Any:
        """Runs the handler in the message's scope; the answer to a request joins the scope that asked (SCOPE-29)."""
        if msg.source_type is SourceType.RESPONSE:
            question = _asked.get()
            if question is not None and not question.scope.closed:
                join_message(question.scope, msg.headers, sender="an answer of FastStream")
                question.answer()
            return await call_next(msg)
        if not self._is_handled(msg):
            caller = current_scope()
            if caller is not None and not caller.closed:
                join_message(caller, msg.headers, sender="a message of FastStream")
            return await call_next(msg)
        if len(getattr(msg, "batch_headers", None) or ()) > 1:
            return await call_next(msg)
        policy = getattr(self.context.get_local("handler_"), "ack_policy", None)
        can = msg.committed is None and policy is not AckPolicy.ACK_FIRST
        delivery = Delivery(can_redeliver=can, detail="it is acknowledged already")
        with message_scope(msg.headers, delivery=delivery, sender="a message of FastStream") as scope:
            self._scope = scope
            try:
                return await call_next(msg)
            except (Redeliver, BaseExceptionGroup) as asked:
                if redeliver_of(asked) is None:
                    raise
                await asyncio.sleep(settings().redeliver_delay)
                if policy is AckPolicy.MANUAL:  # nobody but the handler would
                    await msg.nack()
                raise NackMessage from asked

    def _is_handled(self, msg: Any) -> bool:
        """Return whether a handler gets the message, not the caller of `get_one()` or of `async for` (SCOPE-29).

        FastStream notes a handler's message before it asks us; another middleware may have put one of its own in.
        """
        handled = self.context.get_local("message")
        return handled is not None and (handled is msg or getattr(handled, "raw_message", None) is self.msg)

    async def publish_scope(self, call_next: Callable[[Any], Awaitable[Any]], cmd: Any) -> Any:
        """Puts the lineage into the headers of what is published; of a handler's answer, when its scope has ended."""
        scope = self._scope or current_scope()
        if scope is not None or HEADER not in (cmd.headers or {}):  # a header of the application's own stays
            if shared := _shared(cmd):
                check_takers(scope, shared)
            text = outgoing_message(scope=scope)
            headers = {name: value for name, value in (cmd.headers or {}).items() if name != HEADER}
            cmd.headers = headers if text is None else {**headers, HEADER: text}
        if scope is not None and cmd.publish_type is PublishType.REQUEST and settings().mode is not Mode.OFF:
            question = Question(scope)
            _asked.set(question)
            question.wait()
        return await call_next(cmd)


def _shared(cmd: Any) -> str:
    """Return the place that may give a message to several takers, or nothing: a queue has one (BRANCH-28)."""
    exchange = getattr(cmd, "exchange", None)
    if exchange is not None:  # RabbitMQ
        return f"exchange {display.shown(str(exchange.name))}" if exchange.name else ""
    if getattr(getattr(cmd, "destination_type", None), "name", "") == "List":  # Redis
        return ""
    return display.shown(str(cmd.destination))
