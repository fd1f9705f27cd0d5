"""Questions by messages, and their answers: RabbitMQ's reply queues (spec SCOPE-29)."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from typing import Any, Final

from antipode.shim import Questions, join_message
from antipode.shim.queue_messages import note_unstamped

from antipode_rabbitmq.options import ChannelOptions, headers_of

_DIRECT: Final = "amq.rabbitmq.reply-to"
"""As who asks has it: who answers gets a longer one."""
_TEMPORARY: Final = re.compile(r"amq\.gen-|amq_[0-9a-f]{32}\Z")
"""As the broker names a queue, or a robust channel of aio-pika one that has no name."""


def _is_private(place: Hashable) -> bool:
    """Whether a place is for answers alone: a channel's own, or a queue whose name was made up."""
    return not isinstance(place, str) or _TEMPORARY.match(place) is not None


questions: Final = Questions(_is_private)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=questions.after_fork)


def place_of(channel: Any, queue: Any) -> Hashable | None:
    """Where an answer comes to this queue of a plain channel; None for no queue."""
    queue = text_of(queue)
    if not isinstance(queue, str) or not queue:
        return None
    return channel if queue == _DIRECT else queue


def text_of(name: Any) -> Any:
    """Return what the broker is told by a name or an identifier: pika takes octets, too, and gives back text."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def consuming(channel: Any, queue: Any) -> None:
    """The application takes messages of this queue."""
    place = place_of(channel, queue)
    if place is not None:
        questions.consuming(place)


def came(options: ChannelOptions, channel: Any, queue: Any, properties: Any) -> None:
    """A message came, which may be the answer to one of an open scope; before the application has it."""
    place = place_of(channel, queue)
    if place is None or not options.store.records:  # with mode=off an answer adds nothing (PROP-26)
        return
    headers = headers_of(properties)
    questions.came(
        place,
        text_of(properties.correlation_id),
        lambda scope: join_message(
            scope,
            headers,
            lineage_in=options.lineage_in,
            sender=f"a message of {options.store.name}",
            look=lambda own: note_unstamped(options, own, headers),
        ),
    )
