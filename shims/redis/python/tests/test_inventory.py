"""Every public way of redis-py's clients, pipelines and subscriptions is known (SHIM-43, SHIM-44, SHIM-51)."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import redis
import redis.asyncio
from antipode.testing.inventory import check_inventory, public_ways
from antipode_redis.client import AsyncRecordingRedis, RecordingRedis
from antipode_redis.pipeline import AsyncRecordingPipeline, RecordingPipeline
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.client import Pipeline, PubSub

CLIENTS: list[Any] = [redis.Redis, redis.asyncio.Redis]
MODULES = {"bf", "cf", "cms", "ft", "json", "tdigest", "topk", "ts", "vset"}
"""Commands of modules: what these give sends by the client that made it."""
OWN = {
    "it sends every command": {"execute_command"},
    "they hand on": {"client", "lock", "monitor", "pipeline", "pubsub", "transaction", "keyspace_notifications"},
    "refused: they make a client by its class (SHIM-50)": {"from_pool", "from_url"},
    "neither": {
        *("aclose", "close", "get_cache", "get_connection_kwargs", "get_encoder", "get_retry", "initialize"),
        *("load_external_module", "parse_response", "set_response_callback", "set_retry"),
        *("himport_discard", "himport_discard_all", "himport_prepare", "himport_registry"),  # sets of names
    },
}
BY_OTHERS = {
    "by a command of another name": {
        *("georadius", "georadiusbymember", "geosearch", "geosearchstore", "sort_ro", "scan_iter", "sscan_iter"),
        *("hscan_iter", "zscan_iter", "zinter", "zinterstore", "zrange", "zrangestore", "zunion", "zunionstore"),
        *("client_tracking_on", "client_tracking_off", "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall"),
        *("fcall_ro", "sentinel"),
    },
    "they hand on": {"bitfield", "register_script", *MODULES},
    "of pipelines alone": {"watch", "unwatch"},
    "refused by redis-py": {
        *("command_docs", "command_info", "debug_segfault", "failover", "hello", "latency_doctor", "latency_graph"),
        *("latency_histogram", "memory_doctor", "memory_help", "script_debug"),
    },
    "neither": {"digest_local"},
}
QUEUES = {"execute", "immediate_execute_command", "pipeline_execute_command"}
PIPELINES = {
    "they send": QUEUES,
    "it goes by one of those": {"execute_command"},
    "neither": {"UNWATCH_COMMANDS", "annotate_exception", "discard", "load_scripts", "multi", "raise_first_error"},
}
SUBSCRIPTIONS = {
    "neither: messages are published, and no data": {
        *("HEALTH_CHECK_MESSAGE", "PUBLISH_MESSAGE_TYPES", "UNSUBSCRIBE_MESSAGE_TYPES", "check_health"),
        *("clean_health_check_responses", "close", "execute_command", "get_message", "get_sharded_message"),
        *("handle_message", "is_health_check_response", "listen", "on_connect", "parse_response", "ping"),
        *("psubscribe", "punsubscribe", "reset", "run_in_thread", "ssubscribe", "subscribe", "subscribed"),
        *("sunsubscribe", "unsubscribe"),
    }
}
_SENDS = re.compile(r"self\.execute_command\(")


def commands(kind: Any) -> dict[str, Any]:
    """The methods of redis-py's classes of commands."""
    return {
        name: method
        for each in kind.__mro__
        if each.__module__.startswith("redis.commands")
        for name, method in vars(each).items()
        if not name.startswith("_") and callable(method)
    }


def test_every_public_way_is_known() -> None:
    """SHIM-51: a new release of redis-py that brings one fails here, unless it is a command."""
    check_inventory(public_ways(CLIENTS) - set(commands(redis.Redis)), OWN)
    check_inventory(public_ways([PubSub]), SUBSCRIPTIONS)
    ways = public_ways([Pipeline, AsyncPipeline]) - public_ways(CLIENTS)
    check_inventory(ways | {"execute_command"}, PIPELINES)


@pytest.mark.parametrize("kind", CLIENTS)
def test_every_command_goes_by_the_one_way_that_sends(kind: Any) -> None:
    """SHIM-51: what `execute_command` is given it knows, or takes for both a write and a read (SHIM-43)."""
    others = {name for name, method in commands(redis.Redis).items() if not _SENDS.search(inspect.getsource(method))}
    check_inventory(others, BY_OTHERS)
    assert set(commands(kind)) == set(commands(redis.Redis))


@pytest.mark.parametrize(
    ("made", "plain", "names"),
    [
        (RecordingRedis, redis.Redis, {"client", "close", "execute_command", "ft", "json", "pipeline", "ts"}),
        (AsyncRecordingRedis, redis.asyncio.Redis, {"client", "execute_command", "ft", "json", "pipeline", "ts"}),
        (RecordingPipeline, Pipeline, QUEUES),
        (AsyncRecordingPipeline, AsyncPipeline, QUEUES),
    ],
)
def test_what_sends_or_hands_on_is_ours(made: Any, plain: Any, names: set[str]) -> None:
    """SHIM-51"""
    for name in sorted(names):
        assert getattr(made, name) is not getattr(plain, name), name
