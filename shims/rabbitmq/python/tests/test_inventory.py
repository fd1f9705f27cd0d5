"""Every public way of pika's and aio-pika's channels, and of what these hand on, is known (SHIM-51)."""

from __future__ import annotations

from typing import Any

import aio_pika
import pytest
from aio_pika.transaction import Transaction
from antipode.testing.inventory import check_inventory, check_makes_none, public_ways
from antipode_rabbitmq.aio import _CarryingTransaction, _channel_class, _exchange_class, _queue_class
from antipode_rabbitmq.channel import _OURS_ASYNC, _OURS_BLOCKING, _wrapped_class
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel

PUBLISHES = {"basic_publish", "tx_commit", "tx_rollback", "tx_select"}
CONSUMES = {"basic_ack", "basic_consume", "basic_get", "basic_nack", "basic_recover", "basic_reject", "consume"}
HEARS = {"add_on_close_callback", "add_on_return_callback"}
"""They give the channel to the application."""
NEITHER = {
    *("CLOSED", "CLOSING", "OPEN", "OPENING", "add_callback", "add_on_cancel_callback", "add_on_flow_callback"),
    *("basic_cancel", "basic_qos", "cancel", "channel_number", "close", "confirm_delivery", "connection"),
    *("consumer_tags", "exchange_bind", "exchange_declare", "exchange_delete", "exchange_unbind", "flow"),
    *("get_waiting_message_count", "is_closed", "is_closing", "is_open", "is_opening", "open", "queue_bind"),
    *("queue_declare", "queue_delete", "queue_purge", "queue_unbind", "start_consuming", "stop_consuming"),
}
CHANNELS = {
    "they hand on": {
        *("declare_exchange", "declare_queue", "get_exchange", "get_queue", "transaction"),
    },
    "they go round": {"channel", "get_underlay_channel"},
    "neither": {
        *("RESTORE_RETRY_DELAY", "close", "closed", "exchange_delete", "flow", "initialize", "is_closed"),
        *("is_initialized", "number", "queue_delete", "ready", "reopen", "restore", "set_qos"),
    },
}
EXCHANGES = {"publishes": {"publish"}, "neither": {"bind", "declare", "delete", "restore", "unbind"}}
QUEUES = {
    "they give messages": {"consume", "get", "iterator"},
    "neither": {
        *("arguments", "auto_delete", "bind", "cancel", "channel", "close_callbacks", "declaration_result"),
        *("declare", "delete", "durable", "exclusive", "name", "passive", "purge", "restore", "unbind"),
    },
}
TRANSACTIONS = {"publishes": {"commit", "rollback", "select"}, "neither": {"channel"}}


def test_every_public_way_of_pikas_channels_is_known() -> None:
    """SHIM-51: a new release of pika that brings one fails here."""
    tables = {"publishes": PUBLISHES, "consumes": CONSUMES, "hears": HEARS, "neither": NEITHER}
    check_inventory(public_ways([BlockingChannel, Channel]), tables)


@pytest.mark.parametrize(
    ("kinds", "tables"),
    [
        ([aio_pika.Channel, aio_pika.RobustChannel], CHANNELS),
        ([aio_pika.Exchange, aio_pika.RobustExchange], EXCHANGES),
        ([aio_pika.Queue, aio_pika.RobustQueue], QUEUES),
        ([Transaction], TRANSACTIONS),
    ],
    ids=["channels", "exchanges", "queues", "transactions"],
)
def test_every_public_way_of_aio_pika_is_known(kinds: list[type], tables: dict[str, set[str]]) -> None:
    """SHIM-51: a new release of aio-pika that brings one fails here."""
    check_inventory(public_ways(kinds), tables)


@pytest.mark.parametrize(("kind", "ours"), [(BlockingChannel, _OURS_BLOCKING), (Channel, _OURS_ASYNC)])
def test_what_pikas_channels_publish_and_consume_is_ours(kind: type, ours: dict[str, Any]) -> None:
    """SHIM-51"""
    assert set(ours) >= (PUBLISHES | CONSUMES) & public_ways([kind])


@pytest.mark.parametrize(
    ("made", "plain", "names"),
    [
        (_channel_class, aio_pika.Channel, {"declare_exchange", "declare_queue", "transaction"}),
        (_channel_class, aio_pika.RobustChannel, {"declare_exchange", "declare_queue", "transaction"}),
        (_exchange_class, aio_pika.Exchange, {"publish"}),
        (_exchange_class, aio_pika.RobustExchange, {"publish"}),
        (_queue_class, aio_pika.Queue, {"consume"}),
        (_queue_class, aio_pika.RobustQueue, {"consume"}),
        (lambda _: _CarryingTransaction, Transaction, TRANSACTIONS["publishes"]),
    ],
)
def test_what_aio_pika_publishes_and_consumes_is_ours(made: Any, plain: Any, names: set[str]) -> None:
    """SHIM-51"""
    for name in sorted(names):
        assert getattr(made(plain), name) is not getattr(plain, name), name


def test_the_class_of_a_wrapped_channel_makes_no_other() -> None:
    """SHIM-50"""
    check_makes_none(_wrapped_class(BlockingChannel), _wrapped_class(Channel))
    check_makes_none(_channel_class(aio_pika.Channel), _channel_class(aio_pika.RobustChannel))
