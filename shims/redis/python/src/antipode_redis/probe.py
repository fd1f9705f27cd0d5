"""What a server allows and how it is set up, asked once when a client is wrapped (spec SHIM-3)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from antipode.shim import logs

from antipode_redis.info import QUESTION, Replication, parse
from antipode_redis.resp import ServerError, pack
from antipode_redis.session import Session


class Facts(NamedTuple):
    """What was found out about a server."""

    reached: bool = False
    cluster: bool = False
    """It is part of a Redis Cluster, where data move between histories."""
    replication: Replication | None = None
    """None where it refuses to say (no right to INFO)."""
    refusal: str = ""
    """Its words, where it refused."""
    version: str = ""
    policy: str = ""
    """`maxmemory-policy`."""
    marks_readable: bool = True
    marks_refusal: str = ""


def probe(session: Session, store: str, key: str) -> Facts:
    """Asks a server, and logs once what it lacks."""
    facts = ask(session, key)
    if facts.refusal:
        logs.warn(
            f"rights {store}",
            f"writes to {store} are recorded as incomplete: its user may not ask where they are ({facts.refusal}). "
            f"{grant(key)}",
            code="AP506",
        )
    if facts.policy.startswith("allkeys"):
        logs.warn(
            f"policy {store}",
            f"{store} has maxmemory-policy {facts.policy}, which may evict the marks in {key}: older epochs are then "
            "unproven. Set a volatile-* policy or noeviction.",
            code="AP508",
        )
    return facts


def ask(session: Session, key: str) -> Facts:
    """Asks a server what it allows."""
    info, memory, cluster, found = session.ask(
        QUESTION, pack("INFO", "memory"), pack("INFO", "cluster"), pack("HMGET", key, "-")
    )
    refused = isinstance(info, ServerError)
    if refused and info.code in {"LOADING", "MASTERDOWN", "NOAUTH"}:
        raise info
    return Facts(
        reached=True,
        cluster=session.hello.get("mode") == "cluster" or _word(cluster, "cluster_enabled") == "1",
        replication=None if refused else parse(info),
        refusal=str(info) if refused else "",
        version=session.hello.get("version", ""),
        policy=_word(memory, "maxmemory_policy"),
        marks_readable=not isinstance(found, ServerError),
        marks_refusal=str(found) if isinstance(found, ServerError) else "",
    )


RIGHTS: Final = "+info +hget +hmget +hset +hdel +hlen +hgetall +time +eval +evalsha +multi +exec +client|tracking"
"""The commands that a wrapped client's user needs besides its own, on the key of the marks."""


def grant(key: str) -> str:
    """The sentence with the exact right."""
    return f"Grant it: ACL SETUSER <user> {RIGHTS} ~{key}"


CLUSTER = (
    "is part of a Redis Cluster: slots move between its servers, so a position would not speak of the data any more. "
    "Antipode does not support it yet"
)


def _word(reply: Any, name: str) -> str:
    if isinstance(reply, ServerError):
        return ""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(f"{name}:")), "")
